// What the machine says of itself: a written /proc, and a library that answers as NVML does.

#include "executor/session/machine_metrics.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sim/input/document.hpp"

namespace orrery::executor {
namespace {

namespace fs = std::filesystem;

std::map<std::string, double> by_name(const std::vector<NamedMetric>& metrics) {
  std::map<std::string, double> values;
  for (const NamedMetric& each : metrics) values[each.name] = each.value;
  return values;
}

struct WrittenProc {
  fs::path path = fs::temp_directory_path() / ("orrery-metrics-" + std::to_string(std::rand()));
  WrittenProc() { fs::create_directories(path / "net"); }
  ~WrittenProc() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream{path / name} << text;
  }
};

TEST_CASE("The host's numbers are those of /proc, in seconds and bytes") {
  const WrittenProc proc;
  proc.write("stat", "cpu  300 100 200 1000 50 10 20 0 0 0\ncpu0 1 1 1 1\n");
  proc.write("loadavg", "1.50 2.25 3.00 1/100 7\n");
  proc.write("meminfo", "MemTotal:  1000 kB\nMemAvailable:  400 kB\nDirty: 8 kB\n");
  proc.write(
      "net/dev",
      "Inter-| Receive | Transmit\n face |bytes\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n"
      "  eth0: 100 1 2 3 0 0 0 0 50 1 4 5 0 0 0 0\n  ib0:10 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n");
  proc.write("diskstats",
             "8 0 sda 1 0 10 0 1 0 20 0 0 1500 0\n8 1 sda1 1 0 10 0 1 0 20 0 0 1500 0\n"
             "259 0 nvme0n1 1 0 4 0 1 0 2 0 0 500 0\n259 1 nvme0n1p1 1 0 4 0 1 0 2 0 0 500 0\n");
  const auto values = by_name(host_metrics(proc.path.string()));
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  CHECK(values.at("orrery_host_cpu_seconds_total{mode=\"user\"}") == 400 / ticks);
  CHECK(values.at("orrery_host_cpu_seconds_total{mode=\"system\"}") == 230 / ticks);
  CHECK(values.at("orrery_host_load5") == 2.25);
  CHECK(values.at("orrery_host_memory_available_bytes") == 400 * 1024);
  CHECK(values.at("orrery_host_network_receive_bytes_total") == 110);
  CHECK(values.at("orrery_host_network_transmit_bytes_total") == 55);
  CHECK(values.at("orrery_host_network_errors_total") == 6);
  CHECK(values.at("orrery_host_network_drops_total") == 8);
  // 14 sectors of 512 bytes, without the partitions.
  CHECK(values.at("orrery_host_drive_read_bytes_total") == 14 * 512);
  CHECK(values.at("orrery_host_drive_written_bytes_total") == 22 * 512);
  CHECK(values.at("orrery_host_drive_busy_seconds_total") == 2);
  CHECK_FALSE(values.contains("orrery_process_threads"));  // there is no self/status
}

TEST_CASE("This process has threads, memory and files open") {
  const auto values = by_name(host_metrics());
  CHECK(values.at("orrery_process_threads") >= 1);
  CHECK(values.at("orrery_process_resident_bytes") > 1e6);
  CHECK(values.at("orrery_process_open_files") >= 3);
  CHECK(values.contains("orrery_process_cpu_seconds_total"));
  CHECK(values.size() >= 25);
}

TEST_CASE("A GPU's numbers are NVML's; without the library there are none") {
  CHECK(GpuMetrics{"no-such-library.so"}.read().empty());
  const auto values = by_name(GpuMetrics{ORRERY_FAKE_NVML}.read());
  CHECK(values.at("orrery_gpu_utilization_ratio{gpu=\"1\"}") == Approx(0.91));
  CHECK(values.at("orrery_gpu_memory_used_bytes{gpu=\"0\"}") == 30e9);
  CHECK(values.at("orrery_gpu_power_watts{gpu=\"0\"}") == Approx(650.5));
  CHECK(values.at("orrery_gpu_temperature_celsius{gpu=\"1\"}") == 61);
  CHECK(values.at("orrery_gpu_clock_hertz{gpu=\"0\",of=\"sm\"}") == Approx(1.98e9));
  CHECK(values.at("orrery_gpu_ecc_errors_total{gpu=\"0\",kind=\"uncorrected\"}") == 2);
  CHECK(values.at("orrery_gpu_throttled{gpu=\"1\"}") == 1);
  CHECK(values.at("orrery_gpu_throttled{gpu=\"0\"}") == 0);  // idle alone
  // It has no function for the power limit.
  CHECK_FALSE(values.contains("orrery_gpu_power_limit_watts{gpu=\"0\"}"));
}

TEST_CASE("The dashboard asks for metrics that there are") {
  std::set<std::string> known{"orrery_step", "orrery_loss"};
  for (const auto& metrics : {host_metrics(), GpuMetrics{ORRERY_FAKE_NVML}.read()}) {
    for (const NamedMetric& each : metrics) known.insert(each.name.substr(0, each.name.find('{')));
  }
  std::ifstream source{std::string{ORRERY_SOURCE} + "/executor/session/step_log.cpp"};
  std::stringstream text;
  text << source.rdbuf();
  const Document dashboard =
      Document::load(std::string{ORRERY_SOURCE} + "/executor/session/dashboard.json");
  int queries = 0;
  for (const Json& panel : dashboard.json()["panels"]) {
    for (const Json& target : panel.value("targets", Json::array())) {
      const std::string query = target["expr"];
      for (std::size_t at = query.find("orrery_"); at != std::string::npos;
           at = query.find("orrery_", at + 1)) {
        const std::string name = query.substr(
            at, query.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", at) - at);
        INFO(name);
        CHECK((known.contains(name) || text.str().find('"' + name + '"') != std::string::npos));
        ++queries;
      }
    }
  }
  CHECK(queries >= 20);
}

}  // namespace
}  // namespace orrery::executor

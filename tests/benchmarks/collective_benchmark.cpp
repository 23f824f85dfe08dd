// `orrery collective` on fabrics on which closed forms hold: one GPU and one NIC of 50 GB/s a host,
// 16 hosts a leaf, 500 ns a cable, no software. 1 GiB a rank; all-to-all-v of distinct sizes.
// Errors  a simulated time off its closed form by more than 1e-9
// Source  of the forms: sim/flows' tests; ring 2 (n-1) (S / (n B) + 2 us)

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "scenarios/collective/collective_request.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {
namespace {

/// Files of one case, gone with it.
class CaseFolder {
 public:
  CaseFolder() { std::filesystem::create_directories(path_); }
  CaseFolder(const CaseFolder&) = delete;
  CaseFolder& operator=(const CaseFolder&) = delete;
  ~CaseFolder() { std::filesystem::remove_all(path_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream{path_ / name} << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("orrery-benchmark-" + std::to_string(getpid()));
};

struct CollectiveCase {
  int hosts = 0, spines = 0;
  std::string operation, network;
  double limit = 0;                  // ms, where the heap takes 67 ns
  std::optional<double> exact = {};  // ms
};

std::string cluster_of(const CollectiveCase& of) {
  const Json cluster = {{"name", "ideal"},
                        {"node", {{"like", "gh200-1x"}, {"gpus", 1}, {"nics", 1}}},
                        {"nodes", of.hosts},
                        {"fabric",
                         {{"kind", "fat_tree"},
                          {"levels", 2},
                          {"nodes_per_leaf", 16},
                          {"spines", of.spines},
                          {"bandwidth", "50 GB/s"},
                          {"hop_latency", "500 ns"},
                          {"routing", "d-mod-k"},
                          {"latency_class", "ideal"}}}};
  return cluster.dump();
}

/// Every pair a size of its own: multiples of 1,009 B, in no order.
std::string distinct_counts(int hosts) {
  std::string text;
  const std::int64_t pairs = std::int64_t{hosts} * (hosts - 1);
  std::int64_t at = 0;
  for (int from = 0; from < hosts; ++from) {
    for (int to = 0; to < hosts; ++to) {
      // 7,919 is prime to both numbers of pairs.
      const std::int64_t bytes = from == to ? 0 : 500'000 + 1'009 * (at++ * 7'919 % pairs);
      text += std::to_string(bytes) + (to + 1 < hosts ? "," : "\n");
    }
  }
  return text;
}

void collective(benchmark::State& state, const CollectiveCase& of) {
  const CaseFolder folder;
  CollectiveRequest request{.cluster = folder.write("cluster.json", cluster_of(of)),
                            .operation = of.operation,
                            .sizes = {"1GiB"},
                            .network = of.network};
  if (of.operation == "all_reduce") request.algorithm = "ring";
  if (of.operation == "all_to_all_v") {
    request.sizes = {};
    request.counts = folder.write("counts.csv", distinct_counts(of.hosts));
  }
  double found = 0, transfers = 0;
  for (auto each : state) {
    const CollectiveReport report = answer(request);
    state.SetIterationTime(report.simulate_seconds);
    found = seconds(report.rows.at(0).price.time) * 1e3;
    if (report.rows[0].run) transfers = static_cast<double>(report.rows[0].run->transfers);
  }
  ensure(!of.exact || std::abs(found / *of.exact - 1) < 1e-9, "a closed form does not hold");
  state.counters["limit_ms"] = of.limit;
  state.counters["found_ms"] = found;
  state.counters["transfers"] = transfers;
  if (of.exact) state.counters["exact_ms"] = *of.exact;
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  state.counters["peak_mib"] = static_cast<double>(used.ru_maxrss) / 1024;
}

void add(const std::string& name, CollectiveCase of) {
  benchmark::RegisterBenchmark(("collective/" + name).c_str(),
                               [of](benchmark::State& state) { collective(state, of); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

const bool added = [] {
  add("ring_1024_steps", {1024, 16, "all_reduce", "steps", 500, 46.999729920});
  add("ring_1024_events", {1024, 16, "all_reduce", "events", 1, 46.999729920});
  add("ring_2048_events", {2048, 16, "all_reduce", "events", 1, 51.116701440});
  add("all_to_all_256_steps", {256, 16, "all_to_all", "steps", 25, 21.391950400});
  add("all_to_all_128_steps_4_spines", {128, 4, "all_to_all", "steps", 5, 75.163927680});
  add("all_to_all_v_64_steps", {64, 16, "all_to_all_v", "steps", 400});
  add("all_to_all_v_128_steps", {128, 16, "all_to_all_v", "steps", 8000});
  return true;
}();

}  // namespace
}  // namespace orrery::scenarios

#include "executor/session/machine_metrics.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace orrery::executor {

namespace {

using Kind = MetricsPage::Kind;
using Metrics = std::vector<NamedMetric>;

double ticks_per_second() {
  return static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Numbers behind a key such as "MemTotal:" at the begin of a line.
double number_after(const std::string& file, std::string_view key, double otherwise = -1) {
  std::ifstream in{file};
  std::string line;
  while (std::getline(in, line)) {
    if (line.compare(0, key.size(), key) != 0) continue;
    std::istringstream rest{line.substr(key.size())};
    double value = 0;
    return rest >> value ? value : otherwise;
  }
  return otherwise;
}

void add_if_known(Metrics& all, NamedMetric metric) {
  if (metric.value >= 0) all.push_back(std::move(metric));
}

void add_cpu(const std::string& proc, Metrics& all) {
  std::ifstream in{proc + "/stat"};
  std::string cpu;
  std::array<double, 7> ticks{};  // user, nice, system, idle, iowait, irq, softirq
  if (!(in >> cpu)) return;
  for (double& each : ticks) in >> each;
  const auto add = [&](const char* mode, double count) {
    all.push_back({fmt::format("orrery_host_cpu_seconds_total{{mode=\"{}\"}}", mode), Kind::counter,
                   "Time of the host's cores", count / ticks_per_second()});
  };
  add("user", ticks[0] + ticks[1]);
  add("system", ticks[2] + ticks[5] + ticks[6]);
  add("idle", ticks[3]);
  add("iowait", ticks[4]);
  std::ifstream load{proc + "/loadavg"};
  double one = 0, five = 0;
  if (!(load >> one >> five)) return;
  all.push_back({"orrery_host_load1", Kind::gauge, "Runnable processes, mean of a minute", one});
  all.push_back({"orrery_host_load5", Kind::gauge, "Runnable processes, mean of 5 minutes", five});
}

void add_memory(const std::string& proc, Metrics& all) {
  const std::string file = proc + "/meminfo";
  const auto add = [&](const char* name, const char* key, const char* help) {
    const double kib = number_after(file, key);
    if (kib >= 0) all.push_back({name, Kind::gauge, help, kib * 1024});
  };
  add("orrery_host_memory_bytes", "MemTotal:", "Memory of the host");
  add("orrery_host_memory_available_bytes", "MemAvailable:", "Memory that programs can still get");
  add("orrery_host_memory_dirty_bytes", "Dirty:", "Memory that waits to be written to drives");
  add("orrery_host_swap_free_bytes", "SwapFree:", "Swap that is not used");
}

/// All interfaces but the loopback together.
void add_network(const std::string& proc, Metrics& all) {
  std::ifstream in{proc + "/net/dev"};
  std::string line;
  std::array<double, 16> sums{};
  bool any = false;
  while (std::getline(in, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream name{line.substr(0, colon)}, counts{line.substr(colon + 1)};
    std::string interface;
    if (!(name >> interface) || interface == "lo") continue;
    any = true;
    double count = 0;
    for (std::size_t i = 0; i < sums.size() && counts >> count; ++i) sums[i] += count;
  }
  if (!any) return;
  const auto add = [&](const char* name, const char* help, double value) {
    all.push_back({name, Kind::counter, help, value});
  };
  add("orrery_host_network_receive_bytes_total", "Received over all interfaces", sums[0]);
  add("orrery_host_network_transmit_bytes_total", "Sent over all interfaces", sums[8]);
  add("orrery_host_network_errors_total", "Faulty packets, both ways", sums[2] + sums[10]);
  add("orrery_host_network_drops_total", "Dropped packets, both ways", sums[3] + sums[11]);
}

/// Whole drives; partitions would count twice.
void add_drives(const std::string& proc, Metrics& all) {
  std::ifstream in{proc + "/diskstats"};
  std::string line;
  double read = 0, written = 0, busy = 0;
  bool any = false;
  while (std::getline(in, line)) {
    std::istringstream words{line};
    double major = 0, minor = 0;
    std::string name;
    std::array<double, 10> of{};
    if (!(words >> major >> minor >> name)) continue;
    for (double& each : of) words >> each;
    const bool partition = name.rfind("nvme", 0) == 0 ? name.find('p') != std::string::npos
                                                      : std::isdigit(name.back()) != 0;
    if (!words || partition || name.rfind("loop", 0) == 0) continue;
    any = true;
    read += of[2] * 512;  // sectors
    written += of[6] * 512;
    busy += of[9] / 1000;
  }
  if (!any) return;
  all.push_back(
      {"orrery_host_drive_read_bytes_total", Kind::counter, "Read from all drives", read});
  all.push_back(
      {"orrery_host_drive_written_bytes_total", Kind::counter, "Written to all drives", written});
  all.push_back({"orrery_host_drive_busy_seconds_total", Kind::counter,
                 "Time that drives were busy, added over drives", busy});
}

double open_files(const std::string& proc) {
  std::error_code failed;
  double count = 0;
  for (std::filesystem::directory_iterator at{proc + "/self/fd", failed}, end; !failed && at != end;
       at.increment(failed)) {
    ++count;
  }
  return failed ? -1 : count;
}

void add_process(const std::string& proc, Metrics& all) {
  const std::string status = proc + "/self/status";
  const auto kib = [&](const char* name, const char* key, const char* help) {
    const double value = number_after(status, key);
    if (value >= 0) all.push_back({name, Kind::gauge, help, value * 1024});
  };
  kib("orrery_process_resident_bytes", "VmRSS:", "Memory of rank 0's process");
  kib("orrery_process_peak_resident_bytes", "VmHWM:", "The most memory of rank 0's process");
  kib("orrery_process_virtual_bytes", "VmSize:", "Addresses of rank 0's process");
  add_if_known(all, {"orrery_process_threads", Kind::gauge, "Threads of rank 0's process",
                     number_after(status, "Threads:")});
  const auto switches = [&](const char* kind, const char* key) {
    add_if_known(all, {fmt::format("orrery_process_switches_total{{kind=\"{}\"}}", kind),
                       Kind::counter, "Context switches", number_after(status, key)});
  };
  switches("voluntary", "voluntary_ctxt_switches:");
  switches("involuntary", "nonvoluntary_ctxt_switches:");
  add_if_known(
      all, {"orrery_process_open_files", Kind::gauge, "Open files and sockets", open_files(proc)});
  const std::string io = proc + "/self/io";
  add_if_known(all, {"orrery_process_read_bytes_total", Kind::counter, "Read from drives",
                     number_after(io, "read_bytes:")});
  add_if_known(all, {"orrery_process_written_bytes_total", Kind::counter, "Written to drives",
                     number_after(io, "write_bytes:")});

  std::ifstream in{proc + "/self/stat"};
  std::string text;
  std::getline(in, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream rest{text.substr(name_end + 1)};
  std::vector<std::string> words;
  for (std::string word; rest >> word;) words.push_back(word);
  constexpr std::size_t major_faults = 9, user = 11, system = 12;  // behind the name
  if (words.size() <= system) return;
  const auto ticks = [&](std::size_t at) { return std::strtod(words[at].c_str(), nullptr); };
  all.push_back({"orrery_process_major_faults_total", Kind::counter, "Pages read from drives",
                 ticks(major_faults)});
  all.push_back({"orrery_process_cpu_seconds_total", Kind::counter, "CPU time of rank 0's process",
                 (ticks(user) + ticks(system)) / ticks_per_second()});
}

// NVML's functions and structures, as nvml.h declares them for this version of their names.
using NvmlDevice = void*;
struct NvmlUtilization {
  unsigned gpu = 0, memory = 0;  // percent
};
struct NvmlMemory {
  unsigned long long total = 0, free = 0, used = 0;
};
constexpr int nvml_success = 0;

}  // namespace

std::vector<NamedMetric> host_metrics(const std::string& proc) {
  Metrics all;
  add_cpu(proc, all);
  add_memory(proc, all);
  add_network(proc, all);
  add_drives(proc, all);
  add_process(proc, all);
  return all;
}

struct GpuMetrics::Library {
  explicit Library(const std::string& file) : handle{dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)} {
    const auto start = function<int (*)()>("nvmlInit_v2");
    if (start == nullptr || start() != nvml_success) return;
    started = true;
    const auto count_of = function<int (*)(unsigned*)>("nvmlDeviceGetCount_v2");
    const auto device_at =
        function<int (*)(unsigned, NvmlDevice*)>("nvmlDeviceGetHandleByIndex_v2");
    unsigned count = 0;
    if (count_of == nullptr || device_at == nullptr || count_of(&count) != nvml_success) return;
    for (unsigned i = 0; i < count; ++i) {
      NvmlDevice device = nullptr;
      if (device_at(i, &device) == nvml_success) devices.emplace_back(i, device);
    }
  }
  ~Library() {
    if (handle == nullptr) return;
    const auto stop = function<int (*)()>("nvmlShutdown");
    if (started && stop != nullptr) stop();
    dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class Function>
  Function function(const char* name) const {
    return handle == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle, name));
  }

  void* handle;
  bool started = false;
  std::vector<std::pair<unsigned, NvmlDevice>> devices;  // and their indices
};

GpuMetrics::GpuMetrics(const std::string& library) : library_{std::make_unique<Library>(library)} {}
GpuMetrics::~GpuMetrics() = default;

std::vector<NamedMetric> GpuMetrics::read() const {
  Metrics all;
  for (const auto& [index, device] : library_->devices) {
    const auto add = [&, index = index](const std::string& name, Kind kind, const char* help,
                                        double value, const std::string& label = "") {
      all.push_back({fmt::format("orrery_gpu_{}{{gpu=\"{}\"{}}}", name, index,
                                 label.empty() ? "" : "," + label),
                     kind, help, value});
    };
    NvmlUtilization busy;
    const auto utilization =
        library_->function<int (*)(NvmlDevice, NvmlUtilization*)>("nvmlDeviceGetUtilizationRates");
    if (utilization != nullptr && utilization(device, &busy) == nvml_success) {
      add("utilization_ratio", Kind::gauge, "Share of time with a kernel running", busy.gpu / 100.);
      add("memory_busy_ratio", Kind::gauge, "Share of time with memory read or written",
          busy.memory / 100.);
    }
    NvmlMemory memory;
    const auto memory_of =
        library_->function<int (*)(NvmlDevice, NvmlMemory*)>("nvmlDeviceGetMemoryInfo");
    if (memory_of != nullptr && memory_of(device, &memory) == nvml_success) {
      add("memory_used_bytes", Kind::gauge, "Memory in use", static_cast<double>(memory.used));
      add("memory_bytes", Kind::gauge, "Memory", static_cast<double>(memory.total));
    }
    const auto plain = [&](const char* function, const std::string& name, const char* help,
                           double unit) {
      const auto of = library_->function<int (*)(NvmlDevice, unsigned*)>(function);
      unsigned value = 0;
      if (of != nullptr && of(device, &value) == nvml_success) {
        add(name, Kind::gauge, help, value * unit);
      }
    };
    plain("nvmlDeviceGetPowerUsage", "power_watts", "Power drawn", 1e-3);
    plain("nvmlDeviceGetEnforcedPowerLimit", "power_limit_watts", "Power limit", 1e-3);
    // (device, which of a kind, &value)
    const auto chosen = [&](const char* function, unsigned which, const std::string& name,
                            const char* help, double unit, const std::string& label = "") {
      const auto of = library_->function<int (*)(NvmlDevice, unsigned, unsigned*)>(function);
      unsigned value = 0;
      if (of != nullptr && of(device, which, &value) == nvml_success) {
        add(name, Kind::gauge, help, value * unit, label);
      }
    };
    chosen("nvmlDeviceGetTemperature", 0, "temperature_celsius", "Temperature of the die", 1);
    chosen("nvmlDeviceGetClockInfo", 1, "clock_hertz", "Clock", 1e6, "of=\"sm\"");
    chosen("nvmlDeviceGetClockInfo", 2, "clock_hertz", "Clock", 1e6, "of=\"memory\"");
    const auto ecc =
        library_->function<int (*)(NvmlDevice, unsigned, unsigned, unsigned long long*)>(
            "nvmlDeviceGetTotalEccErrors");
    for (const unsigned kind : {0U, 1U}) {
      unsigned long long errors = 0;
      if (ecc == nullptr || ecc(device, kind, 0, &errors) != nvml_success) continue;
      add("ecc_errors_total", Kind::counter, "Memory errors since the driver was loaded",
          static_cast<double>(errors), kind == 0 ? "kind=\"corrected\"" : "kind=\"uncorrected\"");
    }
    const auto reasons_of = library_->function<int (*)(NvmlDevice, unsigned long long*)>(
        "nvmlDeviceGetCurrentClocksThrottleReasons");
    unsigned long long reasons = 0;
    if (reasons_of != nullptr && reasons_of(device, &reasons) == nvml_success) {
      // nvmlClocksThrottleReason: power cap, slowdown of hardware, heat, power brake
      constexpr unsigned long long slowed = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;
      add("throttled", Kind::gauge, "1 where power, heat or a fault lowers the clock",
          (reasons & slowed) != 0 ? 1 : 0);
    }
  }
  return all;
}

}  // namespace orrery::executor

#include "calibrate/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

namespace orrery::calibrate {

namespace {

/// The `model name` of /proc/cpuinfo.
std::string processor_name() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

std::string system_name() {
  utsname names{};
  if (uname(&names) != 0) return "unknown system";
  return fmt::format("{} {}", names.sysname, names.release);
}

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

Machine this_machine(const std::string& device_description) {
  Machine machine;
  machine.processor = processor_name();
  machine.cores = usable_cores();
  machine.memory =
      Bytes{static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)};
  machine.system = system_name();
  machine.compiler = compiler_name();
  machine.library = device_description;
  machine.date = today();
  return machine;
}

std::string source_line(const Machine& machine) {
  return fmt::format("calibrated {} on {}, {} core{}; {}; {}; {}", machine.date, machine.processor,
                     machine.cores, machine.cores == 1 ? "" : "s", machine.library,
                     machine.compiler, machine.system);
}

Json to_json(const Machine& machine) {
  return {{"processor", machine.processor},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory.count()},
          {"system", machine.system},
          {"compiler", machine.compiler},
          {"library", machine.library},
          {"date", machine.date}};
}

}  // namespace orrery::calibrate

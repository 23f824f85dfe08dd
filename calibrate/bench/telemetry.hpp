#pragma once
// Telemetry of a GPU while it works: clocks, power, and reasons for throttling. Without NVML, or if
// NVML does not know the GPU, these are reported as unknown.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::calibrate {

/// One reading. `reasons` are NVML's bits for why clocks are not higher.
struct Reading {
  Frequency processor{}, memory{};
  Power power{};
  std::uint64_t reasons = 0;
};

/// Bits of `reasons`.
/// Source  NVML API, "NvmlClocksEventReasons"
inline constexpr std::uint64_t power_cap = 0x4;
inline constexpr std::uint64_t hardware_slowdown = 0x8;
inline constexpr std::uint64_t software_thermal = 0x20;
inline constexpr std::uint64_t hardware_thermal = 0x40;
inline constexpr std::uint64_t power_brake = 0x80;

/// True if heat or an external power brake slows the GPU down. A power cap does not count: a large
/// GEMM reaches it on every such board, also in training.
bool throttled(std::uint64_t reasons);
/// Text for those of the bits above that are set: "power cap, too hot (hardware)"; empty if none
/// is.
std::string words(std::uint64_t reasons);

class Telemetry {
 public:
  virtual ~Telemetry() = default;
  virtual std::optional<Reading> read() = 0;
};

/// Telemetry of the GPU with this UUID, 32 hexadecimal digits. Null without libnvidia-ml.so.1, or
/// if it does not know the GPU.
std::unique_ptr<Telemetry> nvml_telemetry(const std::string& unique);

/// Summary of readings over a period.
struct Conditions {
  int readings = 0;
  Frequency processor{}, slowest_processor{}, memory{};  // medians, and the lowest
  Power power{}, most_power{};
  std::uint64_t reasons = 0;  // all bits that were reported
  double power_capped = 0;    // share of readings
};

Conditions summary(const std::vector<Reading>& readings);
/// `{processor_mhz, ..., watts, reasons}`; null where nothing is known.
Json to_json(const Conditions& conditions);

/// Takes readings periodically on a thread of its own; seldom, as each one takes the driver's lock.
class ClockMonitor {
 public:
  /// `telemetry` may be null: then nothing is known.
  explicit ClockMonitor(std::unique_ptr<Telemetry> telemetry, Time between = 100_ms);
  ~ClockMonitor();
  ClockMonitor(const ClockMonitor&) = delete;
  ClockMonitor& operator=(const ClockMonitor&) = delete;

  bool knows() const { return telemetry_ != nullptr; }
  /// As of the last reading.
  bool throttled() const { return throttled_; }
  void forget();
  /// Summary since the start or the last `forget`; takes a reading if there was none.
  Conditions seen();

 private:
  void look();

  std::unique_ptr<Telemetry> telemetry_;
  std::mutex lock_;  // guards readings_ and telemetry_
  std::vector<Reading> readings_;
  std::atomic<bool> throttled_{false}, ends_{false};
  std::thread thread_;
};

}  // namespace orrery::calibrate

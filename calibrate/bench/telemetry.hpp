#pragma once
// What a GPU says of itself while it works: clocks, power, and why it slows down. Without NVML, or
// where it does not know the GPU, nothing is known, and nothing is made up.

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

/// One look. `reasons` are NVML's bits of why clocks are not higher.
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

/// Is the GPU too hot, or braked from outside? A power cap is not meant: a large product runs into
/// it on every such board, also in training.
bool throttled(std::uint64_t reasons);
/// "power cap, too hot (hardware)": of those bits that are here; empty: none of them.
std::string words(std::uint64_t reasons);

class Telemetry {
 public:
  virtual ~Telemetry() = default;
  virtual std::optional<Reading> read() = 0;
};

/// By its UUID, 32 hexadecimal digits. Nothing: no libnvidia-ml.so.1, or it does not know the GPU.
std::unique_ptr<Telemetry> nvml_telemetry(const std::string& unique);

/// What was seen over a while.
struct Conditions {
  int readings = 0;
  Frequency processor{}, slowest_processor{}, memory{};  // medians, and the lowest
  Power power{}, most_power{};
  std::uint64_t reasons = 0;  // all that were given
  double power_capped = 0;    // share of readings
};

Conditions summary(const std::vector<Reading>& readings);
/// `{processor_mhz, ..., watts, reasons}`; null where nothing is known.
Json to_json(const Conditions& conditions);

/// Looks again and again, from a thread of its own; seldom, as each look takes the driver's lock.
class ClockMonitor {
 public:
  /// Without telemetry it knows nothing.
  explicit ClockMonitor(std::unique_ptr<Telemetry> telemetry, Time between = 100_ms);
  ~ClockMonitor();
  ClockMonitor(const ClockMonitor&) = delete;
  ClockMonitor& operator=(const ClockMonitor&) = delete;

  bool knows() const { return telemetry_ != nullptr; }
  /// By the last look.
  bool throttled() const { return throttled_; }
  void forget();
  /// Since the start or the last `forget`; with one more look where there was none.
  Conditions seen();

 private:
  void look();

  std::unique_ptr<Telemetry> telemetry_;
  std::mutex lock_;  // of the readings, and of telemetry itself
  std::vector<Reading> readings_;
  std::atomic<bool> throttled_{false}, ends_{false};
  std::thread thread_;
};

}  // namespace orrery::calibrate

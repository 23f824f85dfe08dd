#include "calibrate/bench/telemetry.hpp"

#include <algorithm>
#include <chrono>

#include "sim/statistics.hpp"

namespace orrery::calibrate {

namespace {

struct Reason {
  std::uint64_t bit;
  const char* words;
};
constexpr Reason known_reasons[] = {{power_cap, "power cap"},
                                    {hardware_slowdown, "hardware slowdown"},
                                    {software_thermal, "too hot"},
                                    {hardware_thermal, "too hot (hardware)"},
                                    {power_brake, "power brake"}};

template <class Get>
double middle(const std::vector<Reading>& readings, Get get) {
  std::vector<double> values;
  for (const Reading& each : readings) values.push_back(get(each).count());
  return median(std::move(values));
}

}  // namespace

bool throttled(std::uint64_t reasons) {
  return (reasons & (hardware_slowdown | software_thermal | hardware_thermal | power_brake)) != 0;
}

std::string words(std::uint64_t reasons) {
  std::string text;
  for (const Reason& each : known_reasons) {
    if ((reasons & each.bit) != 0) text += (text.empty() ? "" : ", ") + std::string{each.words};
  }
  return text;
}

Conditions summary(const std::vector<Reading>& readings) {
  Conditions seen;
  if (readings.empty()) return seen;
  seen.readings = static_cast<int>(readings.size());
  seen.processor = Frequency{middle(readings, [](const Reading& of) { return of.processor; })};
  seen.memory = Frequency{middle(readings, [](const Reading& of) { return of.memory; })};
  seen.power = Power{middle(readings, [](const Reading& of) { return of.power; })};
  seen.slowest_processor = readings.front().processor;
  int capped = 0;
  for (const Reading& each : readings) {
    seen.slowest_processor = std::min(seen.slowest_processor, each.processor);
    seen.most_power = std::max(seen.most_power, each.power);
    seen.reasons |= each.reasons;
    capped += (each.reasons & power_cap) != 0 ? 1 : 0;
  }
  seen.power_capped = static_cast<double>(capped) / seen.readings;
  return seen;
}

Json to_json(const Conditions& seen) {
  if (seen.readings == 0) return nullptr;
  return {{"readings", seen.readings},
          {"processor_mhz", seen.processor.count() / 1e6},
          {"slowest_processor_mhz", seen.slowest_processor.count() / 1e6},
          {"memory_mhz", seen.memory.count() / 1e6},
          {"watts", seen.power.count()},
          {"most_watts", seen.most_power.count()},
          {"power_capped_share", seen.power_capped},
          {"reasons", words(seen.reasons)}};
}

ClockMonitor::ClockMonitor(std::unique_ptr<Telemetry> telemetry, Time between)
    : telemetry_{std::move(telemetry)} {
  if (!knows()) return;
  look();
  const std::chrono::nanoseconds pause{between.count() / 1000};
  thread_ = std::thread{[this, pause] {
    while (!ends_) {
      std::this_thread::sleep_for(pause);
      look();
    }
  }};
}

ClockMonitor::~ClockMonitor() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void ClockMonitor::look() {
  const std::lock_guard held{lock_};
  const auto found = telemetry_->read();
  if (!found) return;
  throttled_ = calibrate::throttled(found->reasons);
  readings_.push_back(*found);
}

void ClockMonitor::forget() {
  const std::lock_guard held{lock_};
  readings_.clear();
}

Conditions ClockMonitor::seen() {
  if (!knows()) return {};
  bool none = false;
  {
    const std::lock_guard held{lock_};
    none = readings_.empty();
  }
  if (none) look();
  const std::lock_guard held{lock_};
  return summary(readings_);
}

}  // namespace orrery::calibrate

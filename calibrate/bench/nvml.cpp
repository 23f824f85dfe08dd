// Loads NVML at run time, without its header: the library comes with the driver, while the toolkit
// may not be installed.
// Source  NVML API reference: nvmlInit_v2, nvmlDeviceGetHandleByUUID, nvmlDeviceGetClockInfo (MHz;
//         1 is the multiprocessors', 2 the memory's), nvmlDeviceGetPowerUsage (mW),
//         nvmlDeviceGetCurrentClocksThrottleReasons; 0 is success

#include <dlfcn.h>

#include "calibrate/bench/telemetry.hpp"

namespace orrery::calibrate {

namespace {

using NvmlDevice = void*;

template <class Function>
bool bound(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

/// The 32 digits as NVML writes a UUID: "GPU-8a7b...".
std::string uuid_of(const std::string& digits) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    text += digits[i];
  }
  return text;
}

class Nvml final : public Telemetry {
 public:
  /// Loads NVML and finds the GPU; false if anything is missing.
  bool open(const std::string& unique) {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return false;
    int (*start)() = nullptr;
    int (*find)(const char*, NvmlDevice*) = nullptr;
    const bool all = bound(library_, "nvmlInit_v2", start) &&
                     bound(library_, "nvmlShutdown", stop_) &&
                     bound(library_, "nvmlDeviceGetHandleByUUID", find) &&
                     bound(library_, "nvmlDeviceGetClockInfo", clock_) &&
                     bound(library_, "nvmlDeviceGetPowerUsage", power_) &&
                     bound(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", reasons_);
    if (!all) return false;
    started_ = start() == 0;
    return started_ && find(uuid_of(unique).c_str(), &device_) == 0 && read().has_value();
  }

  ~Nvml() override {
    if (started_) stop_();
    if (library_ != nullptr) dlclose(library_);
  }

  std::optional<Reading> read() override {
    constexpr int of_multiprocessors = 1, of_memory = 2;
    unsigned processor = 0, memory = 0, milliwatts = 0;
    unsigned long long reasons = 0;
    if (clock_(device_, of_multiprocessors, &processor) != 0) return std::nullopt;
    if (clock_(device_, of_memory, &memory) != 0) return std::nullopt;
    if (power_(device_, &milliwatts) != 0) return std::nullopt;
    if (reasons_(device_, &reasons) != 0) reasons = 0;
    return Reading{.processor = Frequency{processor * 1e6},
                   .memory = Frequency{memory * 1e6},
                   .power = Power{milliwatts / 1e3},
                   .reasons = reasons};
  }

 private:
  void* library_ = nullptr;
  bool started_ = false;
  NvmlDevice device_ = nullptr;
  int (*stop_)() = nullptr;
  int (*clock_)(NvmlDevice, int, unsigned*) = nullptr;
  int (*power_)(NvmlDevice, unsigned*) = nullptr;
  int (*reasons_)(NvmlDevice, unsigned long long*) = nullptr;
};

}  // namespace

std::unique_ptr<Telemetry> nvml_telemetry(const std::string& unique) {
  auto nvml = std::make_unique<Nvml>();
  if (!nvml->open(unique)) return nullptr;
  return nvml;
}

}  // namespace orrery::calibrate

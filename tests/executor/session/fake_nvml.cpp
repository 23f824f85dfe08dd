// Answers as NVIDIA's management library does, for two GPUs. It lacks
// nvmlDeviceGetEnforcedPowerLimit and supports no PCIe counters, as some GPUs do.

namespace {
int devices[2] = {0, 1};
int index_of(void* device) {
  return *static_cast<int*>(device);
}
struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
}  // namespace

extern "C" {
int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* out) {
  *out = {90U + static_cast<unsigned>(index_of(device)), 40};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* out) {
  *out = {80'000'000'000, 50'000'000'000, 30'000'000'000};
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* mw) {
  *mw = 650'500;
  return 0;
}
int nvmlDeviceGetTemperature(void* device, unsigned, unsigned* celsius) {
  *celsius = 60U + static_cast<unsigned>(index_of(device));
  return 0;
}
int nvmlDeviceGetClockInfo(void*, unsigned kind, unsigned* mhz) {
  *mhz = kind == 1 ? 1980 : 2619;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void*, unsigned kind, unsigned, unsigned long long* errors) {
  *errors = kind == 0 ? 7 : 2;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = index_of(device) == 0 ? 1 : 4;
  return 0;
}
}

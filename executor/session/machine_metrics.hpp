#pragma once
// What a machine says of itself while a run is on it: the host and this process by Linux's /proc,
// GPUs by NVIDIA's management library (NVML) where it is installed. Leaves out what other processes
// on the machine do with it.
//
// Source  proc(5): stat, loadavg, meminfo, net/dev, diskstats, self/stat, self/status, self/io;
//         NVIDIA, "NVML API Reference Guide": the functions named in machine_metrics.cpp

#include <memory>
#include <string>
#include <vector>

#include "executor/session/metrics_page.hpp"

namespace orrery::executor {

/// One number with its name as Prometheus writes it, labels included.
struct NamedMetric {
  std::string name;
  MetricsPage::Kind kind = MetricsPage::Kind::gauge;
  std::string help;
  double value = 0;
};

/// Host and process; what /proc lacks is left out. `proc` is a folder like /proc.
std::vector<NamedMetric> host_metrics(const std::string& proc = "/proc");

/// The GPUs of this machine.
class GpuMetrics {
 public:
  /// Without the library, or where it finds no driver, there are no GPUs.
  explicit GpuMetrics(const std::string& library = "libnvidia-ml.so.1");
  ~GpuMetrics();
  GpuMetrics(const GpuMetrics&) = delete;
  GpuMetrics& operator=(const GpuMetrics&) = delete;

  /// A number that a GPU does not support is left out.
  std::vector<NamedMetric> read() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace orrery::executor

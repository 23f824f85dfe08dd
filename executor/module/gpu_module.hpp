#pragma once
// The interface that a vendor's module exports (liborrery_cuda.so), in plain C++: orrery itself
// uses no header of a vendor.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/cuda/attention/fused_attention.hpp"
#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"
#include "executor/launch/store.hpp"
#include "sim/quantity.hpp"

namespace orrery::executor {

/// A GPU that this process sees.
struct VisibleGpu {
  std::string name;    // "NVIDIA H200"
  std::string unique;  // its UUID: the same in every process
  Bytes memory{};
  int capability = 0;  // 90 is 9.0
};

/// The loaded module.
class GpuModule {
 public:
  virtual ~GpuModule() = default;

  /// Why there is no GPU to run on, as the end of a sentence; empty: there is one.
  virtual std::string absence() const = 0;
  /// The visible GPUs, in CUDA's order. Errors: RunFailure{local_failure}, where `absence` is not
  /// empty too.
  virtual std::vector<VisibleGpu> gpus() const = 0;
  /// "CUDA 13.0, driver 580.65.06, cuBLASLt 13.1.0, NCCL 2.28.9".
  virtual std::string versions() const = 0;

  /// Makes a device for the calling thread. ORRERY_ATTENTION selects the implementation of
  /// attention (attentions.hpp).
  virtual std::unique_ptr<Device> make_device(int ordinal) const = 0;
  /// What a device has chosen by itself so far, a line each: a library's algorithm for a shape.
  virtual std::vector<std::string> notes(const Device& /*device*/) const { return {}; }
  virtual FusedAttention attention(const Device& /*device*/) const { return {}; }

  /// Whether it was built with the vendor's collective library.
  virtual bool has_collectives() const = 0;
  /// Collective over all ranks, which find each other in the store. `device` is from `make_device`.
  virtual std::unique_ptr<Fabric> make_fabric(Device& device, Store& store, int rank, int ranks,
                                              std::chrono::milliseconds patience) const = 0;
};

/// The name of the CUDA module's one exported function. What such a function returns is never
/// destroyed.
inline constexpr const char* cuda_module_symbol = "orrery_cuda_module";
using GpuModuleFunction = const GpuModule* (*)();

}  // namespace orrery::executor

// A liborrery_cuda.so for machines without a GPU: its GPUs are threads that run queues
// (queued_device .hpp), so that `orrery execute --backend cuda` is tested from its flags to its
// report.
//
//   STAND_IN_GPU   what they are called, "NVIDIA H200" by default
//   STAND_IN_GPUS  how many there are: 1 by default; 0 is a machine whose GPU is hidden
//   STAND_IN_NCCL  set: says that it has NCCL

#include <cstdlib>

#include "executor/errors.hpp"
#include "executor/module/gpu_module.hpp"
#include "tests/executor/queued_device.hpp"

namespace orrery::executor {

namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

class StandIn final : public GpuModule {
 public:
  std::string absence() const override {
    return gpus().empty() ? "no GPU is visible (CUDA_VISIBLE_DEVICES is '')" : "";
  }
  std::vector<VisibleGpu> gpus() const override {
    std::vector<VisibleGpu> found;
    const int count = std::atoi(variable("STAND_IN_GPUS", "1").c_str());
    for (int i = 0; i < count; ++i) {
      found.push_back({.name = variable("STAND_IN_GPU", "NVIDIA H200"),
                       .unique = "stand-in " + std::to_string(i),
                       .memory = Bytes{std::int64_t{143771} << 20},
                       .capability = 90});
    }
    return found;
  }
  std::string versions() const override { return "no CUDA"; }
  std::unique_ptr<Device> make_device(int) const override {
    return std::make_unique<QueuedDevice>(QueuedSettings{});
  }
  bool has_collectives() const override { return !variable("STAND_IN_NCCL", "").empty(); }
  std::unique_ptr<Fabric> make_fabric(Device&, Store&, int, int,
                                      std::chrono::milliseconds) const override {
    throw RunFailure{Exit::local_failure, "the stand-in's NCCL was chosen"};
  }
};

}  // namespace

}  // namespace orrery::executor

extern "C" const orrery::executor::GpuModule* orrery_cuda_module() {
  static const orrery::executor::StandIn module;
  return &module;
}

#pragma once
// One NVIDIA GPU as a device: a stream for each queue but the host's, on which the kernels of this
// folder and cuBLASLt's GEMMs run, with events as marks. `run`, `copy` and `zero` return before
// their work has ended; `read` and `finish` wait for all work, `write` for its own.

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/device/cuda/attention/attentions.hpp"
#include "executor/device/cuda/cuda_graphs.hpp"
#include "executor/device/cuda/products/gemms.hpp"
#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// Used only by the thread that made it.
/// Errors  of all: RunFailure{local_failure} in CUDA's own words, with the operation that was
///         started last
class CudaDevice final : public Device {
 public:
  /// Kernels here are compiled for GPUs from Ampere on.
  static constexpr int least_capability = 80;

  /// Errors  RunFailure{local_failure}: an older GPU; no room for what every run needs; InputError
  ///         where `attention` asks for a library that is not here
  explicit CudaDevice(int ordinal, AttentionOptions attention = {});
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  /// "NVIDIA H200, CUDA 13.0, driver 580.65.06, cuBLASLt 13.1.0", and whose kernels fused attention
  /// has used so far.
  std::string description() const override {
    return description_ + attention_text(attentions_->use());
  }
  bool synchronous() const override { return false; }
  std::string refusal(const models::Operation& operation) const override;

  std::byte* allocate(Bytes size) override;
  void release(std::byte* memory) noexcept override;
  std::byte* allocate_host(Bytes size) override;
  void release_host(std::byte* memory) noexcept override;
  void read(const std::byte* from, void* to, Bytes size) override;
  void write(const void* from, std::byte* to, Bytes size) override;
  void zero(std::byte* memory, Bytes size) override;

  void run(const Kernel& kernel) override;
  Graphs* graphs() const override { return graphs_.get(); }
  void copy(const std::byte* from, std::byte* to, Bytes size, models::Lane queue) override;

  Mark mark(models::Lane queue) override;
  void wait(models::Lane queue, Mark until) override;
  void finish() override;
  Time time_of(Mark mark) override;
  void forget_marks() override;

  int ordinal() const { return ordinal_; }
  /// For fabrics that put their own work on a queue.
  Stream stream(models::Lane queue) const;
  const Gemms& products() const { return *gemms_; }
  const Attentions& attentions() const { return *attentions_; }

 private:
  using Clock = std::chrono::steady_clock;

  void start(const Kernel& kernel, Stream stream);
  void product(const Kernel& kernel, Stream stream);
  void fp8_product(const Kernel& kernel, Stream stream);
  void block_product(const Kernel& kernel, Stream stream);
  void multiply(const Kernel& kernel, const float* factors, Stream stream, std::byte* sums);
  void own_kernel(const Kernel& kernel, Stream stream);
  std::byte* scratch(Bytes size);
  TokenPlaces places_of(const TokenMap* map);
  void require_room(cudaError_t status, Bytes asked) const;
  std::string doing(const char* what) const;

  int ordinal_;
  int capability_ = 0;  // compute capability: 90 is 9.0
  std::string name_, description_;
  std::array<Stream, models::lane_count> streams_{};  // the host has none
  std::vector<cudaEvent_t> events_;  // of marks; `forget_marks` frees them for reuse
  std::uint32_t marks_ = 0;
  cudaEvent_t origin_ = nullptr;  // marks are timed from here,
  Time origin_time_{};            // which is this long after the start
  Clock::time_point started_ = Clock::now();
  std::byte* workspace_ = nullptr;  // of GEMMs
  std::byte* scratch_ = nullptr;    // of kernels, on the compute queue
  Bytes scratch_size_{};
  std::map<std::uint64_t, std::byte*> maps_;  // token maps in device memory, by id
  std::vector<std::byte*> outgrown_;          // former scratch whose addresses graphs hold
  std::unique_ptr<CudaGraphs> graphs_;
  std::unique_ptr<Gemms> gemms_;
  std::unique_ptr<Attentions> attentions_;
  std::string last_ = "start";  // the operation that was started last
};

}  // namespace orrery::executor::cuda

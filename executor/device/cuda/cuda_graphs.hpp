#pragma once
// CUDA graphs of a GPU's compute stream, made by stream capture: what is enqueued there between
// begin and end becomes a chain of nodes in stream order.

#include <cuda_runtime_api.h>

#include <vector>

#include "executor/device/cuda/stream.hpp"
#include "executor/device/graphs.hpp"

namespace orrery::executor::cuda {

/// CUDA calls of other threads, such as a fabric's, continue while this thread captures.
class CudaGraphs final : public Graphs {
 public:
  /// `stream` is of the current GPU and must outlive the graphs.
  explicit CudaGraphs(Stream stream) : stream_{stream} {}
  ~CudaGraphs() override;
  CudaGraphs(const CudaGraphs&) = delete;
  CudaGraphs& operator=(const CudaGraphs&) = delete;

  Graph capture(const std::function<void()>& work) override;
  void launch(const Graph& graph) override;
  void release(const Graph& graph) noexcept override;

  bool capturing() const { return capturing_; }
  /// Is there any graph? Its kernels hold addresses of memory.
  bool any() const { return held_ > 0; }

 private:
  cudaGraph_t record(const std::function<void()>& work);

  Stream stream_;
  bool capturing_ = false;
  std::vector<cudaGraphExec_t> made_;  // by id; null: released
  int held_ = 0;
};

}  // namespace orrery::executor::cuda

#pragma once
// Graphs of a GPU's compute stream, by stream capture: what is enqueued there between begin and
// end becomes nodes, one after another as on the stream.

#include <cuda_runtime_api.h>

#include <vector>

#include "executor/device/cuda/stream.hpp"
#include "executor/device/graphs.hpp"

namespace orrery::executor::cuda {

/// Calls of other threads, a fabric's, go on while this one captures.
class CudaGraphs final : public Graphs {
 public:
  /// `stream` outlives the graphs, of the current GPU.
  explicit CudaGraphs(Stream stream) : stream_{stream} {}
  ~CudaGraphs() override;
  CudaGraphs(const CudaGraphs&) = delete;
  CudaGraphs& operator=(const CudaGraphs&) = delete;

  Graph capture(const std::function<void()>& work) override;
  void launch(const Graph& graph) override;
  void release(const Graph& graph) noexcept override;

  bool capturing() const { return capturing_; }
  /// Is there a graph, whose kernels hold addresses?
  bool any() const { return held_ > 0; }

 private:
  cudaGraph_t record(const std::function<void()>& work);

  Stream stream_;
  bool capturing_ = false;
  std::vector<cudaGraphExec_t> made_;  // by id; null: released
  int held_ = 0;
};

}  // namespace orrery::executor::cuda

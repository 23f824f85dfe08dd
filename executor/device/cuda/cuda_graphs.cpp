#include "executor/device/cuda/cuda_graphs.hpp"

#include "executor/device/cuda/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

CudaGraphs::~CudaGraphs() {
  for (const cudaGraphExec_t each : made_) {
    if (each != nullptr) cudaGraphExecDestroy(each);
  }
}

/// A capture that fails leaves the stream as it was: what had been recorded is dropped.
cudaGraph_t CudaGraphs::record(const std::function<void()>& work) {
  ensure(!capturing_, "a capture inside a capture");
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  capturing_ = true;
  cudaGraph_t recorded = nullptr;
  try {
    work();
  } catch (...) {
    capturing_ = false;
    cudaStreamEndCapture(stream_, &recorded);
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    cudaGetLastError();
    throw;
  }
  capturing_ = false;
  check(cudaStreamEndCapture(stream_, &recorded), "ending a capture");
  return recorded;
}

Graph CudaGraphs::capture(const std::function<void()>& work) {
  const cudaGraph_t recorded = record(work);
  std::size_t nodes = 0;
  cudaGraphExec_t ready = nullptr;
  cudaError_t status = cudaGraphGetNodes(recorded, nullptr, &nodes);
  if (status == cudaSuccess) status = cudaGraphInstantiate(&ready, recorded, 0);
  cudaGraphDestroy(recorded);
  check(status, "making a graph ready");
  made_.push_back(ready);
  ++held_;
  return {static_cast<std::uint32_t>(made_.size() - 1), static_cast<std::int64_t>(nodes)};
}

void CudaGraphs::launch(const Graph& graph) {
  check(cudaGraphLaunch(made_.at(graph.id), stream_), "launching a graph");
}

void CudaGraphs::release(const Graph& graph) noexcept {
  cudaGraphExecDestroy(made_[graph.id]);  // CUDA frees it once its last launch has ended
  made_[graph.id] = nullptr;
  --held_;
}

}  // namespace orrery::executor::cuda

// The functions of CUDA that the NCCL fabric calls.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/executor/fabric/nccl/stand_in.hpp"

namespace orrery::executor {

QueuedDevice*& current_device() {
  static thread_local QueuedDevice* device = nullptr;
  return device;
}

}  // namespace orrery::executor

using orrery::executor::current_device;
using orrery::executor::HappensBefore;
using orrery::executor::Mark;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = new CUstream_st{current_device(), current_device()->add_lane()};
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  *event = {stream->device, stream->device->mark_lane(stream->lane)};
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->device != nullptr) stream->device->wait_lane(stream->lane, event->mark);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const bool reached = event->device == nullptr || event->device->reached(event->mark);
  return reached ? cudaSuccess : cudaErrorNotReady;
}
/// The host that finds a stream empty has seen all that was on it.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Mark mark = stream->device->mark_lane(stream->lane);
  for (int look = 0; look < 20; ++look) {
    if (stream->device->reached(mark)) {
      stream->device->wait_lane(HappensBefore::host, mark);
      return cudaSuccess;
    }
    std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
  return cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  if (current_device() != nullptr) current_device()->drain();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
/// A GPU for each ordinal below 16.
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int ordinal) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", ordinal % 16);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "an error";
}
const char* cudaGetErrorName(cudaError_t) {
  return "cudaError";
}
const char* cublasLtGetStatusName(cublasStatus_t) {
  return "CUBLAS_STATUS";
}
const char* cublasLtGetStatusString(cublasStatus_t) {
  return "an error";
}

}  // extern "C"

#include "executor/device/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "executor/device/cuda/errors.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/cuda/products/fp8_product.hpp"
#include "executor/device/cuda/versions.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

namespace {

using models::DType;
using models::Lane;
using models::Operation;
using models::OpKind;

std::size_t index_of(Lane queue) {
  return static_cast<std::size_t>(queue);
}

std::size_t size_of(Bytes size) {
  return static_cast<std::size_t>(size.count());
}

bool is_attention(OpKind kind) {
  return kind == OpKind::attention || kind == OpKind::attention_backward;
}

}  // namespace

CudaDevice::CudaDevice(int ordinal, AttentionOptions attention) : ordinal_{ordinal} {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "querying the GPU");
  name_ = properties.name;
  description_ = fmt::format("{}, {}", name_, versions_text());
  capability_ = 10 * properties.major + properties.minor;
  if (capability_ < least_capability) {
    throw RunFailure{Exit::local_failure,
                     fmt::format("{} has compute capability {}.{}, the kernels need 8.0 or later",
                                 name_, properties.major, properties.minor)};
  }
  check(cudaSetDevice(ordinal), "starting the GPU");
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "making streams");
  for (const Lane queue : {Lane::compute, Lane::tensor, Lane::data, Lane::copy}) {
    const bool talks = queue == Lane::tensor || queue == Lane::data;
    check(cudaStreamCreateWithPriority(&streams_[index_of(queue)], cudaStreamNonBlocking,
                                       talks ? greatest : least),
          "making streams");
  }
  check(cudaEventCreate(&origin_), "making events");
  workspace_ = allocate(Gemms::workspace_size);
  graphs_ = std::make_unique<CudaGraphs>(stream(Lane::compute));
  gemms_ = std::make_unique<Gemms>(workspace_);
  attentions_ = std::make_unique<Attentions>(
      attention.choice, [&] { return open_attention(capability_, attention.sums); });
  forget_marks();
}

CudaDevice::~CudaDevice() {
  cudaSetDevice(ordinal_);
  cudaDeviceSynchronize();
  graphs_.reset();
  gemms_.reset();
  attentions_.reset();
  cudaFree(scratch_);
  for (std::byte* const each : outgrown_) cudaFree(each);
  for (const auto& [id, numbers] : maps_) cudaFree(numbers);
  cudaFree(workspace_);
  for (const cudaEvent_t each : events_) cudaEventDestroy(each);
  if (origin_ != nullptr) cudaEventDestroy(origin_);
  for (const Stream each : streams_) {
    if (each != nullptr) cudaStreamDestroy(each);
  }
}

std::string CudaDevice::doing(const char* what) const {
  return fmt::format("{} after '{}'", what, last_);
}

std::string CudaDevice::refusal(const Operation& op) const {
  if (op.dtype == DType::fp4) return "the CUDA backend does not support fp4";
  if (op.dtype == DType::fp8 && capability_ < fp8_capability) {
    return fmt::format("fp8 needs a GPU of compute capability 8.9 or later, {} has {}.{}", name_,
                       capability_ / 10, capability_ % 10);
  }
  if (std::string part = part_refusal(op); !part.empty()) return part;
  if (op.attention().crosses) return "the CUDA backend does not support cross-attention";
  if (op.seq_len > 0) return "the CUDA backend does not support sequences of an encoder";
  if (op.first_column()) return "the CUDA backend does not add to some columns of a tensor";
  switch (op.kind) {
    case OpKind::copy:
      return {};  // to or from host memory: the runner executes it
    case OpKind::adam:
      if (op.queue == Lane::host)
        return "the CUDA backend does not support optimizer updates in host memory";
      if (op.dtype == DType::bf16 || op.dtype == DType::fp16)
        return "the CUDA backend does not support updates of 16-bit masters";
      return kernel_refusal(op);
    case OpKind::gemm:
    case OpKind::batched_gemm:
      return op.dtype == DType::fp8 ? fp8_product_refusal(op) : std::string{};
    case OpKind::grouped_gemm:
      return op.dtype == DType::fp8 ? "the CUDA backend does not support fp8 grouped GEMMs" : "";
    case OpKind::collective:
      return {};
    case OpKind::attention:
    case OpKind::attention_backward:
      return attentions_->refusal(op);
    default:
      return kernel_refusal(op);
  }
}

void CudaDevice::require_room(cudaError_t status, Bytes asked) const {
  if (status != cudaErrorMemoryAllocation) return check(status, "allocating memory");
  cudaGetLastError();
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "querying free memory");
  throw RunFailure{Exit::local_failure,
                   fmt::format("out of memory: {} bytes requested, {} of {} free on {}",
                               asked.count(), free, total, name_)};
}

std::byte* CudaDevice::allocate(Bytes size) {
  void* memory = nullptr;
  require_room(cudaMalloc(&memory, std::max<std::size_t>(size_of(size), 1)), size);
  return static_cast<std::byte*>(memory);
}

void CudaDevice::release(std::byte* memory) noexcept {
  cudaFree(memory);  // waits for all work that uses it
}

std::byte* CudaDevice::allocate_host(Bytes size) {
  void* memory = nullptr;
  const std::size_t wanted = std::max<std::size_t>(size_of(size), 1);
  const cudaError_t status = cudaHostAlloc(&memory, wanted, cudaHostAllocDefault);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw RunFailure{
        Exit::local_failure,
        fmt::format("out of memory: {} bytes of the host's page-locked memory requested",
                    size.count())};
  }
  check(status, "allocating the host's memory");
  return static_cast<std::byte*>(memory);
}

void CudaDevice::release_host(std::byte* memory) noexcept {
  cudaFreeHost(memory);
}

void CudaDevice::read(const std::byte* from, void* to, Bytes size) {
  finish();
  if (size.count() == 0) return;
  check(cudaMemcpy(to, from, size_of(size), cudaMemcpyDeviceToHost), doing("reading memory"));
}

/// Ordered after the copy queue alone, and complete when it returns: cudaMemcpy may return before
/// pageable memory has arrived, and our streams do not wait for the stream that it uses.
void CudaDevice::write(const void* from, std::byte* to, Bytes size) {
  if (size.count() == 0) return;
  const Stream stream = streams_[index_of(Lane::copy)];
  check(cudaMemcpyAsync(to, from, size_of(size), cudaMemcpyHostToDevice, stream),
        doing("writing memory"));
  check(cudaStreamSynchronize(stream), doing("writing memory"));
}

void CudaDevice::zero(std::byte* memory, Bytes size) {
  if (size.count() == 0) return;
  check(cudaMemsetAsync(memory, 0, size_of(size), streams_[index_of(Lane::compute)]),
        doing("clearing memory"));
}

/// cudaMemcpyDefault finds the direction from the addresses: host and GPU share one address space
/// on every system that these GPUs run on.
/// Source  CUDA C++ Programming Guide, "Unified Virtual Address Space"
void CudaDevice::copy(const std::byte* from, std::byte* to, Bytes size, Lane queue) {
  if (size.count() == 0 || from == to) return;
  check(cudaMemcpyAsync(to, from, size_of(size), cudaMemcpyDefault, stream(queue)),
        doing("copying memory"));
}

Stream CudaDevice::stream(Lane queue) const {
  const Stream stream = streams_[index_of(queue)];
  ensure(stream != nullptr, "the host is no queue of a device");
  return stream;
}

void CudaDevice::run(const Kernel& kernel) {
  const Operation& op = *kernel.operation;
  ensure(op.queue == Lane::compute, "kernels run on the compute queue");
  last_ = op.name;
  try {
    start(kernel, stream(Lane::compute));
  } catch (const RunFailure& failure) {
    throw RunFailure{failure.code(), fmt::format("'{}': {}", op.name, failure.what())};
  }
}

void CudaDevice::start(const Kernel& kernel, Stream stream) {
  switch (kernel.operation->kind) {
    case OpKind::gemm:
    case OpKind::grouped_gemm:
      return product(kernel, stream);
    case OpKind::batched_gemm:
      return gemms_->per_head(kernel, stream);
    case OpKind::collective:
    case OpKind::copy:
      throw ContractError{"a device runs no such operation"};
    default:
      return own_kernel(kernel, stream);
  }
}

void CudaDevice::own_kernel(const Kernel& kernel, Stream stream) {
  const Operation& op = *kernel.operation;
  if (is_attention(op.kind)) {
    const KernelRoom room{.scratch = [this](Bytes size) { return scratch(size); },
                          .may_retry = !graphs_->capturing(),
                          .tokens = places_of(kernel.place.tokens)};
    attentions_->launch(kernel, stream, room);
  } else {
    launch_kernel(kernel, stream, scratch(Bytes{scratch_bytes(op, kernel.reads)}),
                  places_of(kernel.place.tokens));
  }
}

/// Copies a token map to the GPU at its first use, before any graph that reads it is captured.
TokenPlaces CudaDevice::places_of(const TokenMap* map) {
  if (map == nullptr || map->in_order()) return {};
  const auto [found, fresh] = maps_.try_emplace(map->id, nullptr);
  if (fresh) {
    const std::vector<std::int64_t> numbers = numbers_of(*map);
    const Bytes size{std::ssize(numbers) * static_cast<std::int64_t>(sizeof(std::int64_t))};
    found->second = allocate(size);
    write(numbers.data(), found->second, size);
  }
  return places_at(*map, reinterpret_cast<const std::int64_t*>(found->second));
}

/// One scratch buffer for all kernels, which run one after another. It grows in the first step, in
/// the order of the compute queue, as cudaFree would wait for all queues, and so for other ranks.
/// Buffers that graphs were captured with are kept. No growth happens during a capture, as
/// everything in it has run before.
std::byte* CudaDevice::scratch(Bytes size) {
  if (size <= scratch_size_) return scratch_;
  const Stream compute = stream(Lane::compute);
  ensure(!graphs_->capturing(), "scratch memory grows while a graph is captured");
  if (scratch_ != nullptr && graphs_->any()) {
    outgrown_.push_back(scratch_);
  } else if (scratch_ != nullptr) {
    check(cudaFreeAsync(scratch_, compute), "growing scratch memory");
  }
  scratch_ = nullptr;
  scratch_size_ = {};
  void* memory = nullptr;
  require_room(cudaMallocAsync(&memory, size_of(size), compute), size);
  scratch_ = static_cast<std::byte*>(memory);
  scratch_size_ = size;
  return scratch_;
}

Mark CudaDevice::mark(Lane queue) {
  if (marks_ == events_.size()) {
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made), "making events");
    events_.push_back(made);
  }
  check(cudaEventRecord(events_[marks_], stream(queue)), doing("marking a queue"));
  return {marks_++};
}

void CudaDevice::wait(Lane queue, Mark until) {
  check(cudaStreamWaitEvent(stream(queue), events_.at(until.id), 0), doing("waiting for a queue"));
}

void CudaDevice::finish() {
  check(cudaDeviceSynchronize(), doing("waiting for all queues"));
}

/// CUDA gives the time between events in milliseconds as a float: exact to half a microsecond for
/// the first seconds from the origin, which is why every step has an origin of its own.
Time CudaDevice::time_of(Mark mark) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, origin_, events_.at(mark.id)), doing("reading times"));
  return origin_time_ + Time{std::llround(static_cast<double>(milliseconds) * 1e9)};
}

void CudaDevice::forget_marks() {
  marks_ = 0;
  check(cudaEventRecord(origin_, stream(Lane::compute)), doing("marking a queue"));
  check(cudaEventSynchronize(origin_), doing("marking a queue"));
  const std::chrono::duration<std::int64_t, std::pico> since = Clock::now() - started_;
  origin_time_ = Time{since.count()};
}

}  // namespace orrery::executor::cuda

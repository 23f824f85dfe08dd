#pragma once
// The interface of a device, on which kernels run. A device executes one Operation of a Program at
// a time, on operands bound to memory and on the queue that the Operation names: the CPU's `run`
// returns when it has ended, CUDA's launches it. An operation that a device does not support is
// refused by name before the first step.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "models/program/block.hpp"
#include "sim/quantity.hpp"

namespace orrery::executor {

/// Bytes of one element.
constexpr std::int64_t width_of(models::DType type) {
  return bits(type) / 8;
}

/// An operand in the device's memory, dense and row-major.
struct View {
  std::byte* data = nullptr;
  models::DType dtype = models::DType::fp32;
  std::array<std::int64_t, 3> shape{1, 1, 1};

  std::int64_t elements() const { return shape[0] * shape[1] * shape[2]; }
};

/// Number system of a run. In the ring every operation is a polynomial over the integers modulo
/// 2^64, in buffers of 8 bytes: equal work gives equal bits whatever the order of sums. There norms
/// scale without a mean, softmax is the identity, activations square, or multiply gate and up, a
/// token's experts follow from its position and are weighted by the logits, the loss is a weighted
/// sum of logits, and the optimizer subtracts the gradient. Backward remains the derivative of
/// forward, so a wrong shard or partial sum changes the bits.
enum class Arithmetic : std::uint8_t { real, ring };

struct TokenMap;

/// What an operation needs besides its operands: which tokens and which part of the vocabulary this
/// rank holds.
struct Place {
  std::int64_t first_row = 0;         // of the micro-batch's tokens: sequence parallelism cuts them
  std::int64_t first_vocabulary = 0;  // first row of this rank's shard of the vocabulary
  std::int64_t sequence = 1;          // tokens of one sequence: row r has position r mod sequence
  const TokenMap* tokens = nullptr;   // if set, gives the positions instead (token_map.hpp)
  double loss_scale = 1;              // of backward: loss scale / tokens of the global batch
};

/// Parameters of one optimizer step (AdamW, decoupled weight decay; Loshchilov & Hutter 2019).
struct AdamStep {
  double learning_rate = 3e-4, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  double gradient_scale = 1;  // clipping's min(1, limit / norm), divided by the loss scale
  std::int64_t step = 1;      // from 1, for the bias correction
};

/// One call of an operation. Gradients of parameters (of norms, biases, tables; a GEMM's where it
/// accumulates) and the sum of squared_norm are added to; everything else is overwritten. An
/// operation on all parameters may come as several calls, one for each contiguous range. With 8-bit
/// moments, the scales of both moments are adam's last two reads and writes (eight_bits.hpp).
struct Kernel {
  const models::Operation* operation = nullptr;
  std::span<const View> reads, writes;  // in the operation's order
  Place place;
  AdamStep adam;  // of OpKind::adam
};

/// A point on a queue, like a CUDA event: reached once everything enqueued before it has ended.
struct Mark {
  std::uint32_t id = 0;
};

class Graphs;

class Device {
 public:
  virtual ~Device() = default;

  /// "OpenBLAS 0.3.21 (Haswell), 1 thread": what a report prints.
  virtual std::string description() const = 0;
  /// Does `run` return when the kernel has ended?
  virtual bool synchronous() const = 0;
  /// Why this operation cannot run here; empty: it can. Callers do not ask about operations on
  /// block scales: every device has them.
  virtual std::string refusal(const models::Operation& operation) const = 0;

  /// Memory aligned to 64 bytes.
  /// Errors  RunFailure{local_failure} with the size that was asked for
  virtual std::byte* allocate(Bytes size) = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  /// Host memory for `copy`: page-locked where the device is a GPU, so that copies proceed without
  /// the host. Slow to allocate (pages are locked): allocate once and reuse.
  /// Errors  as `allocate`
  virtual std::byte* allocate_host(Bytes size) = 0;
  virtual void release_host(std::byte* memory) noexcept = 0;
  virtual void read(const std::byte* from, void* to, Bytes size) = 0;  // waits for all queues
  /// Done when it returns, without waiting for all queues: no enqueued work may use the memory.
  virtual void write(const void* from, std::byte* to, Bytes size) = 0;
  virtual void zero(std::byte* memory, Bytes size) = 0;  // on the compute queue

  virtual void run(const Kernel& kernel) = 0;
  /// CUDA graphs, which launch several kernels as one (graphs.hpp); null: this device has none.
  virtual Graphs* graphs() const { return nullptr; }
  /// Enqueues a copy within device memory; either side may be memory of `allocate_host`.
  virtual void copy(const std::byte* from, std::byte* to, Bytes size, models::Lane queue) = 0;

  virtual Mark mark(models::Lane queue) = 0;
  virtual void wait(models::Lane queue, Mark until) = 0;  // the queue waits, not the host
  virtual void finish() = 0;                              // the host waits for every queue
  /// Time from the device's start to the mark, once `finish` has returned.
  virtual Time time_of(Mark mark) = 0;
  /// Invalidates all marks made so far, for reuse. Called between steps.
  virtual void forget_marks() = 0;
};

}  // namespace orrery::executor

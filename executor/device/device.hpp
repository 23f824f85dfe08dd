#pragma once
// Where kernels run. A device performs one Operation of a Program at a time, on bound operands, on
// the queue that the Operation names; the CPU's runs it before `run` returns, CUDA's launches it.
// What a device lacks it refuses by name before the first step.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "models/program/block.hpp"
#include "sim/quantity.hpp"

namespace orrery::executor {

/// An operand where it lies in the device's memory, dense and row-major.
struct View {
  std::byte* data = nullptr;
  models::DType dtype = models::DType::fp32;
  std::array<std::int64_t, 3> shape{1, 1, 1};

  std::int64_t elements() const { return shape[0] * shape[1] * shape[2]; }
};

/// What numbers mean. In the ring every operation is a polynomial over the integers modulo 2^64 in
/// buffers of 8 bytes: whatever the order of sums, equal work gives equal bits. Norms scale without
/// a mean, the softmax passes on, activations square or multiply, a token's position picks its
/// experts and logits weigh them, the loss is a weighted sum of logits, the optimizer subtracts the
/// gradient. Backward still is forward's derivative: a wrong shard or sum shows in the first bit.
enum class Arithmetic : std::uint8_t { real, ring };

struct TokenMap;

/// What an operation must know next to its operands: where this rank stands in the cut.
struct Place {
  std::int64_t first_row = 0;         // of the micro-batch's tokens, under sequence parallelism
  std::int64_t first_vocabulary = 0;  // first row of this rank's shard of the vocabulary
  std::int64_t sequence = 1;          // tokens of one sequence: row r has position r mod sequence
  const TokenMap* tokens = nullptr;   // ... or the one that this says (token_map.hpp)
  double loss_scale = 1;              // of backward: 1 / tokens of the global batch, scaled
};

/// Numbers of one optimizer step (AdamW, decoupled weight decay; Loshchilov & Hutter 2019).
struct AdamStep {
  double learning_rate = 3e-4, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  double gradient_scale = 1;  // of clipping, min(1, limit / norm), over the loss's scale
  std::int64_t step = 1;      // from 1, for the bias correction
};

/// One call. Adam on moments in 8 bits reads and writes the scales of both after all else
/// (eight_bits.hpp). Kernels add to what is there in gradients of parameters (of norms, biases,
/// tables; a GEMM where it says so) and in the sum of squared_norm; everything else is overwritten.
/// An operation on all parameters may come as several calls, one for each contiguous range.
struct Kernel {
  const models::Operation* operation = nullptr;
  std::span<const View> reads, writes;  // as the operation's
  Place place;
  AdamStep adam;  // of OpKind::adam
};

/// A point on a queue: everything enqueued before it has ended when it is reached.
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
  /// Why this operation cannot run here; empty: it can. What has scales of blocks is not asked for:
  /// every device has it.
  virtual std::string refusal(const models::Operation& operation) const = 0;

  /// Memory aligned to 64 bytes. Errors: RunFailure{local_failure} saying how much was asked for.
  virtual std::byte* allocate(Bytes size) = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  /// Memory of the host that `copy` goes to and from without the host's help: page-locked where
  /// the device is a GPU. Slow to allocate (pages are locked): allocate once and reuse. Errors as
  /// above.
  virtual std::byte* allocate_host(Bytes size) = 0;
  virtual void release_host(std::byte* memory) noexcept = 0;
  virtual void read(const std::byte* from, void* to, Bytes size) = 0;  // after all queues
  /// Done when it returns; queues may not have come so far: nothing of theirs touches the memory.
  virtual void write(const void* from, std::byte* to, Bytes size) = 0;
  virtual void zero(std::byte* memory, Bytes size) = 0;  // on the compute queue

  virtual void run(const Kernel& kernel) = 0;
  /// Launches several kernels as one (graphs.hpp); null: this device cannot.
  virtual Graphs* graphs() const { return nullptr; }
  /// Device memory to device memory, on a queue; either may be of `allocate_host`.
  virtual void copy(const std::byte* from, std::byte* to, Bytes size, models::Lane queue) = 0;

  virtual Mark mark(models::Lane queue) = 0;
  virtual void wait(models::Lane queue, Mark until) = 0;  // the queue waits, not the host
  virtual void finish() = 0;                              // the host waits for every queue
  /// Time from the device's start to the mark, once `finish` has returned.
  virtual Time time_of(Mark mark) = 0;
  /// Marks made so far may be used again. Called between steps.
  virtual void forget_marks() = 0;
};

}  // namespace orrery::executor

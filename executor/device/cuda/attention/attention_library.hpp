#pragma once
// The interface of a library of fused attention, such as cuDNN, as `Attentions` uses it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// The order of sums: any, whatever is fastest; or fixed (deterministic), so that equal calls give
/// equal bits, where the library has that.
enum class SumOrder : std::uint8_t { any, fixed };

/// One operation of one shape, ready to run.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;

  virtual Bytes workspace() const = 0;
  /// Why its sums have no fixed order; empty: equal calls give equal bits.
  virtual std::string disorder() const = 0;
  /// Enqueues it after all work on the stream, with the operands of `launch_attention`; `workspace`
  /// is aligned to 256 bytes.
  /// Errors  RunFailure{local_failure} in the library's own words
  virtual void run(const Kernel& kernel, Stream stream, std::byte* workspace) = 0;
};

/// A plan, or why there is none.
struct PlannedAttention {
  std::unique_ptr<AttentionPlan> plan;
  std::string refusal;
};

class AttentionLibrary {
 public:
  virtual ~AttentionLibrary() = default;

  virtual std::string name() const = 0;  // "cuDNN 9.19.0"
  /// A plan for the operation's kind, format and shape, on the current GPU.
  virtual PlannedAttention plan(const models::Operation& operation) = 0;
};

/// A library, or why there is none.
struct OpenedLibrary {
  std::unique_ptr<AttentionLibrary> library;
  std::string absence;
};

/// The library that this orrery was built with.
/// capability  of the current GPU; 90 is 9.0
OpenedLibrary open_attention(int capability, SumOrder sums);

}  // namespace orrery::executor::cuda

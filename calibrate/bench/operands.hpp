#pragma once
// The operands of a block in a device's memory, with contents that are known on the host
// (pattern.hpp).

#include <vector>

#include "calibrate/bench/device_memory.hpp"
#include "calibrate/bench/pattern.hpp"
#include "executor/device/device.hpp"

namespace orrery::calibrate {

/// An operation bound to the operands of one copy. The operation must outlive it.
struct BoundOperation {
  const models::Operation* operation = nullptr;
  std::vector<executor::View> reads, writes;

  void run(executor::Device& device) const;
};

/// Several copies of a block's operands in one allocation, so that work that cycles through them
/// does not find them in a cache. Numbers are of both signs, except moments and statistics.
class Operands {
 public:
  /// tokens  integers are below this
  /// Errors  no room: RunFailure
  Operands(executor::Device& device, const models::Block& block, int copies, std::int64_t tokens);

  int copies() const { return static_cast<int>(views_.size()); }
  const executor::View& view(int copy, models::OperandId id) const {
    return views_[static_cast<std::size_t>(copy)][id];
  }
  BoundOperation bound(const models::Operation& op, int copy) const;
  /// Runs one of the block's operations on a copy.
  void run(const models::Operation& op, int copy) const { bound(op, copy).run(device_); }
  /// Restores what an operation wrote on the first copy to its initial contents. Requires two
  /// copies or more.
  void restore(const models::Operation& op) const;

 private:
  void place(const models::Block& block, int copy, std::byte* memory);
  void fill_first(const models::Block& block, std::int64_t tokens);

  executor::Device& device_;
  DeviceMemory arena_;
  std::vector<std::vector<executor::View>> views_;  // by copy, by operand
  std::vector<Bytes> rooms_;                        // by operand
};

/// Memory that all operands of a block take.
Bytes footprint(const models::Block& block);

/// One operation with its operands, as a block of its own.
models::Block single(const models::Block& block, const models::Operation& op);

/// Reads one element of device memory. Errors  not a floating-point format: ContractError
double element_of(executor::Device& device, const executor::View& view, std::int64_t index);

/// Runs a GEMM (gemm, grouped_gemm) once on the first copy and compares some elements with sums in
/// fp64. Its operands must be as `Operands` fills them with both signs.
/// Errors  `qkv computes 1.5, which should be 0.2: not timed`: RunFailure
void check_product(executor::Device& device, const models::Operation& op, const Operands& operands);

}  // namespace orrery::calibrate

#pragma once
// Memory of a device with contents that are known on the host: every operand repeats one sequence
// of numbers, so that any element of a product can be computed again without reading it back.

#include <memory>
#include <string>
#include <vector>

#include "executor/device.hpp"

namespace orrery::calibrate {

/// What numbers a block's operands hold: of both signs, as a product's in training; or small and
/// positive, so that no kernel overflows, divides by nothing or takes the root of less.
enum class Numbers : std::uint8_t { both_signs, positive };

/// A sequence of a prime number of elements: rows of no matrix are alike.
class Pattern {
 public:
  static constexpr std::int64_t period = 65521;

  /// tokens  integers are below this
  Pattern(models::DType dtype, Numbers numbers, std::int64_t tokens);
  const std::vector<std::byte>& bytes() const { return bytes_; }
  /// As it is stored. Errors  of no floating-point format: ContractError
  double at(std::int64_t index) const;

 private:
  models::DType dtype_;
  std::vector<std::byte> bytes_;
};

/// The operands of a block, several times, one copy after another for work that shall not find its
/// operands in a cache.
class Operands {
 public:
  /// Errors  no room: RunFailure
  Operands(executor::Device& device, const models::Block& block, int copies, Numbers numbers,
           std::int64_t tokens);
  ~Operands();
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  int copies() const { return static_cast<int>(views_.size()); }
  const executor::View& view(int copy, models::OperandId id) const {
    return views_[static_cast<std::size_t>(copy)][id];
  }
  /// Runs one of the block's operations on a copy.
  void run(const models::Operation& op, int copy, const models::Model& model) const;

 private:
  executor::Device& device_;
  std::vector<std::vector<executor::View>> views_;  // by copy, by operand
};

/// Memory that all operands of a block take.
Bytes footprint(const models::Block& block);

/// One operation with its operands, as a block of its own.
models::Block single(const models::Block& block, const models::Operation& op);

/// One element of memory. Errors  of no floating-point format: ContractError
double element_of(executor::Device& device, const executor::View& view, std::int64_t index);

/// Some elements of a product against sums in doubles, before it is timed; operands as `Operands`
/// fills them with both signs. What it was is lost: it runs once.
/// Errors  `qkv computes 1.5 where 0.2 is right: not timed`: RunFailure
void check_product(executor::Device& device, const models::Block& block, const Operands& operands,
                   const models::Model& model);

}  // namespace orrery::calibrate

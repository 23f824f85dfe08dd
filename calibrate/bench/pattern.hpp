#pragma once
// Numbers that are known on the host: every operand on a device repeats one sequence of them, so
// that any element of a product can be computed again without reading it back.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardware/dtype.hpp"

namespace orrery::calibrate {

/// What numbers an operand holds: of both signs with a mean of zero, as a product's in training
/// (what toggles decides what power a product draws, and so its clock); or small and positive, so
/// that no kernel divides by nothing or takes the root of less.
enum class Numbers : std::uint8_t { both_signs, positive };

inline constexpr double largest_number = 0.1;
inline constexpr double smallest_positive = 0.01;
inline constexpr float fp8_inverse = 0x1p-4F;  // the scale under which fp8 codes are read

/// A sequence of a prime number of elements: rows of no matrix are alike.
class NumberPattern {
 public:
  static constexpr std::int64_t period = 65521;

  /// tokens  integers are below this
  NumberPattern(hardware::DType dtype, Numbers numbers, std::int64_t tokens);
  const std::vector<std::byte>& bytes() const { return bytes_; }
  /// As it is stored. Errors  of no floating-point format: ContractError
  double at(std::int64_t index) const;

 private:
  hardware::DType dtype_;
  std::vector<std::byte> bytes_;
};

/// A number as it is stored. Errors  of no floating-point format: ContractError
double value_at(hardware::DType dtype, const std::byte* bytes);

}  // namespace orrery::calibrate

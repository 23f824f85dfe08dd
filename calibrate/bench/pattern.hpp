#pragma once
// Contents of operands that are known on the host: every operand on a device repeats one sequence
// of numbers, so that any element of a GEMM's result can be recomputed without reading operands
// back.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardware/dtype.hpp"

namespace orrery::calibrate {

/// Range of an operand's numbers: of both signs with a mean of zero, as a GEMM's operands in
/// training (toggling bits determine a GEMM's power and thus its clock); or small and positive, so
/// that no kernel divides by zero or takes the root of a negative number.
enum class Numbers : std::uint8_t { both_signs, positive };

inline constexpr double largest_number = 0.1;
inline constexpr double smallest_positive = 0.01;
inline constexpr float fp8_inverse = 0x1p-4F;  // inverse scale of fp8 operands

/// The sequence. Its length is prime, so that the rows of a matrix differ.
class NumberPattern {
 public:
  static constexpr std::int64_t period = 65521;

  /// tokens  integers are below this
  NumberPattern(hardware::DType dtype, Numbers numbers, std::int64_t tokens);
  const std::vector<std::byte>& bytes() const { return bytes_; }
  /// The element as it is stored. Errors  not a floating-point format: ContractError
  double at(std::int64_t index) const;

 private:
  hardware::DType dtype_;
  std::vector<std::byte> bytes_;
};

/// Decodes one element stored in format `dtype`. Errors  not a floating-point format: ContractError
double value_at(hardware::DType dtype, const std::byte* bytes);

}  // namespace orrery::calibrate

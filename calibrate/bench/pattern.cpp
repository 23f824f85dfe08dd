#include "calibrate/bench/pattern.hpp"

#include <cmath>
#include <cstring>

#include "executor/device/half.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using hardware::DType;

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof value);
}

template <class Half>
void append_half(std::vector<std::byte>& bytes, double value) {
  Half half;
  executor::narrow(static_cast<float>(value), half);
  append(bytes, half.bits);
}

template <class T>
T stored_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// fp8 codes: from 0.5 to 1.375 as e4m3, from 0.125 to 0.875 as e5m2, before scaling.
constexpr unsigned first_code = 0x30, fp8_codes = 12;

// A block's scale: 2^-7 in e8m0 and 256 in e4m3, so that sums of products do not get too small.
constexpr std::uint8_t block_code = 0x78;

/// Pseudo-random numbers, the same in every run and on every machine.
class PatternDraw {
 public:
  double share() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 33) / 2147483648.0;
  }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace

double value_at(DType dtype, const std::byte* bytes) {
  switch (dtype) {
    case DType::fp64:
      return stored_at<double>(bytes);
    case DType::fp32:
    case DType::tf32:
      return stored_at<float>(bytes);
    case DType::bf16:
      return executor::widened(executor::Bf16{stored_at<std::uint16_t>(bytes)});
    case DType::fp16:
      return executor::widened(executor::Fp16{stored_at<std::uint16_t>(bytes)});
    default:
      throw ContractError{"no floating-point number"};
  }
}

NumberPattern::NumberPattern(DType dtype, Numbers numbers, std::int64_t tokens) : dtype_{dtype} {
  PatternDraw draw;
  for (std::int64_t i = 0; i < period; ++i) {
    const double share = draw.share();
    const double value = numbers == Numbers::both_signs
                             ? largest_number * (2 * share - 1)
                             : smallest_positive + (largest_number - smallest_positive) * share;
    const auto token = static_cast<std::int64_t>(share * static_cast<double>(tokens));
    switch (dtype) {
      case DType::fp64:
        append(bytes_, value);
        break;
      case DType::fp32:
      case DType::tf32:
        append(bytes_, static_cast<float>(value));
        break;
      case DType::bf16:
        append_half<executor::Bf16>(bytes_, value);
        break;
      case DType::fp16:
        append_half<executor::Fp16>(bytes_, value);
        break;
      case DType::int64:
        append(bytes_, token);
        break;
      case DType::int32:
        append(bytes_, static_cast<std::int32_t>(token));
        break;
      case DType::fp8: {
        const double magnitude = std::abs(2 * share - 1);
        const bool negative = numbers == Numbers::both_signs && share < 0.5;
        const unsigned code = first_code + static_cast<unsigned>(magnitude * fp8_codes) % fp8_codes;
        append(bytes_, static_cast<std::uint8_t>(negative ? code | 0x80U : code));
        break;
      }
      case DType::fp4:  // two codes in a byte
        append(bytes_, static_cast<std::uint8_t>(share * 256));
        break;
      case DType::uint8:  // codes of moments, or scales of blocks
        append(bytes_, numbers == Numbers::both_signs ? block_code : std::uint8_t{0});
    }
  }
}

double NumberPattern::at(std::int64_t index) const {
  const std::int64_t size = bits(dtype_) / 8;
  return value_at(dtype_, bytes_.data() + index % period * size);
}

}  // namespace orrery::calibrate

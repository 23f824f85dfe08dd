#pragma once
// Adam's moments stored in 8 bits, in blocks of 256 numbers: each code is an index into a table
// from -1 to 1 (the first moment) or from 0 to 1 (the second), whose entry is multiplied by the
// block's largest magnitude. Leaves out which rank keeps which block.
//
// The table has 0, 1 and, for each of seven powers of ten, 10^-6 to 1, numbers between 0.1 and 1
// times the power, twice as many as for the power before. Its most negative number is -1 here, so
// that encoding decoded numbers again changes nothing.
// Source  Dettmers et al. 2022, "8-bit optimizers via block-wise quantization", arXiv 2110.02861,
//         section 2; bitsandbytes, functional.create_dynamic_map

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace orrery::executor {

inline constexpr std::int64_t eight_bit_block = 256;

enum class EightBit : std::uint8_t { either_sign, positive };

using EightBitTable = std::array<float, 256>;

inline EightBitTable make_eight_bit_table(EightBit kind) {
  const bool either = kind == EightBit::either_sign;
  std::vector<float> numbers{0.0F, 1.0F};
  for (int power = 0; power < 7; ++power) {
    const int count = 1 << (either ? power : power + 1);
    for (int i = 0; i < count; ++i) {
      const double mean = 0.1 + 0.9 * (i + 0.5) / count;
      const auto number = static_cast<float>(std::pow(10.0, power - 6) * mean);
      numbers.push_back(number);
      if (either) numbers.push_back(-number);
    }
  }
  EightBitTable table{};
  std::copy(numbers.begin(), numbers.end(), table.begin());
  std::sort(table.begin(), table.end());
  if (either) table.front() = -1.0F;
  return table;
}

inline const EightBitTable& eight_bit_table(EightBit kind) {
  static const std::array<EightBitTable, 2> tables{make_eight_bit_table(EightBit::either_sign),
                                                   make_eight_bit_table(EightBit::positive)};
  return tables[static_cast<std::size_t>(kind)];
}

/// Decodes one block of at most 256 numbers.
template <class T>
void from_eight_bits(EightBit kind, const std::uint8_t* codes, float scale, std::int64_t count,
                     T* to) {
  const EightBitTable& table = eight_bit_table(kind);
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(table[codes[i]] * scale);
}

/// Encodes one block: each number becomes the nearest of the table, the lower one on a tie.
/// Returns the block's scale
template <class T>
float to_eight_bits(EightBit kind, const T* numbers, std::int64_t count, std::uint8_t* codes) {
  const EightBitTable& table = eight_bit_table(kind);
  float scale = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    scale = std::max(scale, std::abs(static_cast<float>(numbers[i])));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const float number = scale > 0 ? static_cast<float>(numbers[i]) / scale : 0.0F;
    const auto above = std::lower_bound(table.begin() + 1, table.end() - 1, number);
    const bool lower = number - *(above - 1) <= *above - number;
    codes[i] = static_cast<std::uint8_t>(above - table.begin() - (lower ? 1 : 0));
  }
  return scale;
}

}  // namespace orrery::executor

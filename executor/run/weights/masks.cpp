#include "executor/run/weights/masks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "executor/run/weights/random.hpp"

namespace orrery::executor {

std::int64_t masked_tokens(std::int64_t sequence) {
  return std::max<std::int64_t>(1, std::llround(0.15 * static_cast<double>(sequence)));
}

/// Chooses positions by a partial Fisher-Yates shuffle; draws three numbers for each masked token.
void mask(const MaskedSample& of, std::span<std::int64_t> tokens, std::span<std::int64_t> labels) {
  const RandomStream random{of.seed, stream_number("masks of step " + std::to_string(of.step))};
  auto index = static_cast<std::uint64_t>(of.sample) << 24;
  const auto below = [&](std::int64_t bound) {
    const auto range = static_cast<std::uint64_t>(bound);
    return static_cast<std::int64_t>(random.bits(index++) % range);
  };
  std::vector<std::int64_t> places(tokens.size());
  std::iota(places.begin(), places.end(), std::int64_t{0});
  std::fill_n(labels.begin(), tokens.size(), std::int64_t{-1});
  const std::int64_t all = std::ssize(tokens);
  for (std::int64_t i = 0; i < masked_tokens(all); ++i) {
    const auto here = static_cast<std::size_t>(i);
    std::swap(places[here], places[static_cast<std::size_t>(i + below(all - i))]);
    const auto place = static_cast<std::size_t>(places[here]);
    const std::int64_t which = below(10), another = below(of.vocabulary);
    labels[place] = tokens[place];
    if (which < 8) tokens[place] = of.vocabulary - 1;
    if (which == 8) tokens[place] = another;
  }
}

}  // namespace orrery::executor

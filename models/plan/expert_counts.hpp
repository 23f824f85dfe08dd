#pragma once
// Measured routing: how many tokens each expert of each layer received. A plan keeps one number per
// layer, `imbalance`: tokens of the busiest rank's experts over the mean, because every rank of the
// group waits for that rank. Layers with different numbers are different kinds of layers.
// Left out: the distribution inside a rank; a grouped GEMM is priced with equal experts.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::models {

/// Tokens by layer with experts, in model order, and by expert; a single layer stands for all.
struct ExpertCounts {
  std::vector<std::vector<std::int64_t>> layers;

  std::int64_t experts() const { return std::ssize(layers.front()); }
  /// For each layer, the tokens of the busiest rank over the mean of `ranks` ranks, which hold
  /// equal numbers of consecutive experts. `ranks` must divide the number of experts.
  std::vector<double> imbalances(std::int64_t ranks) const;
};

/// A CSV file (one line of counts for each layer) or a JSON one (a list of counts, or of such
/// lists), of at most 64 MiB.
/// Errors  `file:line 2: ...`, `file:/1/0: ...`: no count, lines of different lengths, a layer that
///         no token reached; unreadable
ExpertCounts load_expert_counts(const std::string& path);
/// The same from text; the ending of `name` says which format.
ExpertCounts parse_expert_counts(std::string_view text, const std::string& name);

}  // namespace orrery::models

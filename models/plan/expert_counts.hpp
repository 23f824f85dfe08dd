#pragma once
// Routing as it was counted: how many tokens each expert of each layer took. Of it a plan keeps one
// number a layer, what the busiest rank's experts take over the mean (`imbalance`): every rank of a
// group waits for that one. Layers of different numbers are priced, and held, apart.
// Which expert of a rank took how many is left out: a grouped GEMM is priced with equal ones.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::models {

/// By layer with experts, in model order; one line alone stands for all of them.
struct ExpertCounts {
  std::vector<std::vector<std::int64_t>> layers;

  std::int64_t experts() const { return std::ssize(layers.front()); }
  /// Of each layer the most that one of `ranks` ranks takes, each with as many experts one after
  /// another, over what they take on average. `ranks` divides the experts.
  std::vector<double> imbalances(std::int64_t ranks) const;
};

/// A CSV file (one line of counts for each layer) or a JSON one (a list of counts, or of such
/// lists), of at most 64 MiB.
/// Errors  `file:line 2: ...`, `file:/1/0: ...`: no count, lines of different lengths, a layer that
///         no token reached; unreadable
ExpertCounts load_expert_counts(const std::string& path);
/// By the name's ending.
ExpertCounts parse_expert_counts(std::string_view text, const std::string& name);

}  // namespace orrery::models

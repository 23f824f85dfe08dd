#pragma once
// One variant of a sweep: which values it has, and its answer as a line of JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/whatif/variants.hpp"

namespace orrery::scenarios {

/// The answer of one variant, or why it has none.
struct SweepRow {
  std::string error;       // empty: predicted
  bool our_fault = false;  // of the error
  models::StepFigures figures{};
  models::Uncertainty uncertainty{};
  Bytes memory{};  // of the fullest stage
  std::int64_t gpus = 0;
  std::optional<double> tokens;  // to train on
};

/// The order of all combinations of listed values: the last list varies fastest.
class SweepGrid {
 public:
  explicit SweepGrid(std::vector<ValueList> lists);

  const std::vector<ValueList>& lists() const { return lists_; }
  std::uint64_t variants() const { return variants_; }
  /// For each list, the index of a variant's value.
  std::vector<std::uint32_t> digits(std::uint64_t index) const;
  std::vector<std::pair<std::string, Json>> changes(const std::vector<std::uint32_t>& digits) const;

  /// The line of a variant, without its end: `{"index": 0, "values": {POINTER: VALUE}, "error",
  /// "gpus", "step_time_s", "tokens_per_s", "mfu", "peak_memory_bytes", "fits", "fit",
  /// "uncertainty": {"p10", "p50", "p90"}, "energy_j_per_step", "cost_usd_per_step", "days",
  /// "cost_usd"}`, null where there is nothing.
  std::string line(std::uint64_t index, const SweepRow& row) const;
  /// How the line of a variant begins.
  static std::string beginning(std::uint64_t index);

 private:
  std::vector<ValueList> lists_;
  std::vector<std::vector<std::string>> members_;  // "POINTER":VALUE, by list and value
  std::uint64_t variants_ = 1;
};

/// A figure of a line of `SweepGrid::line`; nothing: null. Errors  no such figure: ContractError
std::optional<double> figure_in(std::string_view line, std::string_view key);
/// Whether the line is that of a predicted variant, and of one that does not say that it does not
/// fit.
bool is_predicted(std::string_view line);
bool fits_in(std::string_view line);
/// Whether the line has an error that is not the user's.
bool is_our_fault(std::string_view line);

}  // namespace orrery::scenarios

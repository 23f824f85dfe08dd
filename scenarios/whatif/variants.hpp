#pragma once
// A table of what-ifs: one scenario with every combination of listed values, each predicted as
// `simulate` predicts it. Failures of single combinations are rows of the table.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/scenario/scenario.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

/// What `--set POINTER=A,B,C` lists.
struct ValueList {
  std::string pointer;
  std::vector<Json> values;  // two or more
};

/// The values between the commas of a change, commas inside brackets, braces and quotes aside.
/// Nothing without such a comma, or where a value is empty or no JSON in spite of its bracket.
std::optional<ValueList> value_list(std::string_view change);

/// Sorts changes into single ones and lists. Text with commas is a list only where the scenario
/// does not take it as one value.
struct ListedChanges {
  std::vector<std::pair<std::string, Json>> single;
  std::vector<ValueList> lists;
};
/// base     without any of the changes
/// changes  POINTER=VALUE
/// Errors   as parse_change
ListedChanges sorted_changes(const Scenario& base, const std::vector<std::string>& changes);

/// One row: the prediction of a combination, or why there is none.
struct WhatIf {
  std::vector<std::pair<std::string, Json>> changes;
  std::string refused;            // empty: predicted
  models::StepFigures figures{};  // of the prediction, and what follows
  models::Uncertainty uncertainty{};
  Bytes memory{};  // of the fullest stage
  std::int64_t gpus = 0;
  std::string plan;  // its degrees
};

struct WhatIfTable {
  std::string scenario;
  std::vector<ValueList> lists;
  WhatIf stated;  // without the lists
  std::vector<WhatIf> rows;
  std::optional<double> tokens;
  bool stopped = false;  // rows are missing

  /// The row without which there is nothing to compare with: as stated, or else the first
  /// predicted one; null: none.
  const WhatIf* reference() const;
};

/// What is the same in all rows besides the scenario.
struct WhatIfRequest {
  std::optional<double> headroom, tokens;
};

inline constexpr std::size_t most_variants = 10'000;

/// The first list varies slowest.
/// Errors  more than most_variants combinations: InputError
WhatIfTable predict_variants(const Scenario& base, const std::vector<ValueList>& lists,
                             const WhatIfRequest& request, const Workers& workers);

/// `{scenario, lists[{pointer, values}], stated, variants[{changes{pointer: value}, refused,
/// step_time_s, uncertainty, tokens_per_s, mfu, peak_memory_bytes, fit, cost_usd_per_step,
/// energy_j_per_step, change_pct}], complete}`.
Json to_json(const WhatIfTable& table);
std::string text_of(const WhatIfTable& table, bool colour);

}  // namespace orrery::scenarios

#pragma once
// One published training run, as a line of a CSV file states it. What the line leaves empty stays
// empty here; `question_of` fills it in.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/csv.hpp"

namespace orrery::scenarios {

/// Texts are as written; an empty cell is an empty text or no number.
struct MeasuredRun {
  std::string run, source, software, task, family, model, gpu, intra_node, network;
  std::string site;  // where it ran, as in profiles; empty: not stated
  std::string set_aside;
  std::string reported_apart;  // the group that it is scored in; empty: the main one
  std::string release;         // of the software, "25.08.02"; empty: not stated
  std::optional<std::int64_t> year;
  std::optional<std::int64_t> layers, hidden, heads, gpus;
  std::optional<std::int64_t> kv_heads, ffn_hidden, vocab, gpus_per_node;
  std::optional<std::int64_t> experts, experts_per_token;
  /// Of a model with experts: first layers without them, and layers that predict further tokens.
  std::optional<std::int64_t> dense_layers, prediction_layers;
  std::optional<bool> tied;  // the head multiplies by the embedding's weights
  /// Cells of the plan that are not empty, by the field's key: "tensor", "zero".
  std::map<std::string, std::string, std::less<>> plan;
  std::optional<double> step_time;    // seconds
  std::optional<double> peak_memory;  // GiB, as tools print it

  /// The cell of a plan field by its key; empty (for `count`, nothing) if it is not stated.
  std::string stated(std::string_view key) const;
  std::optional<std::int64_t> count(std::string_view key) const;
  /// The run without its name and results: equal for repeats of one measurement.
  MeasuredRun question() const;
  auto operator<=>(const MeasuredRun& other) const = default;
};

/// Every line of a table of training runs. Column `run`, or `id`, names the line. A plan field is
/// stated in the column of its key, "attention", or under its published name, "tp".
/// Errors  a header of something else: `FILE: holds no training runs; accepted: ...`; a column
///         that is missing; a cell that is no number
std::vector<MeasuredRun> read_runs(const orrery::Table& table);

/// The table's columns that `read_runs` does not read; and one line that names them, with the
/// column that may be meant (empty: none).
std::vector<std::string> unread_columns(const orrery::Table& table);
std::string words_of_unread(const orrery::Table& table);

/// The cells of a column by which results can be grouped, as text.
std::vector<std::string> cells_of(const orrery::Table& table, const std::string& column);

}  // namespace orrery::scenarios

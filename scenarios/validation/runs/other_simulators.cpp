#include "scenarios/validation/runs/other_simulators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "models/plan/fields.hpp"
#include "sim/input/text.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

const models::PlanField* field_named(std::string_view name) {
  const auto& fields = models::plan_fields();
  const auto found = std::ranges::find_if(fields, [&](const models::PlanField& each) {
    return each.key == name || (!each.column.empty() && each.column == name);
  });
  return found == fields.end() ? nullptr : &*found;
}

/// The value of a flag as a cell of its field's column would state it.
std::string flag_value(const Row& row, const models::PlanField& field, std::string_view value) {
  using Kind = models::PlanValue::Kind;
  if (field.value.kind == Kind::flag) {
    if (value == "true" || value == "yes") return "yes";
    if (value == "false" || value == "no") return "no";
    row.fail_expected("flags", fmt::format("{}=true or {}=false", field.key, field.key));
  }
  if (field.value.kind == Kind::count) {
    std::int64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, number);
    if (read.ec != std::errc{} || read.ptr != end || number < field.value.least) {
      row.fail_expected("flags",
                        fmt::format("{}= a count of at least {}", field.key, field.value.least));
    }
  }
  return std::string{value};
}

/// Adds one "key=value" to a run.
void state_flag(const Row& row, std::string_view flag, MeasuredRun& run) {
  const std::size_t equals = flag.find('=');
  const models::PlanField* const field = field_named(flag.substr(0, equals));
  if (equals == std::string_view::npos || equals + 1 == flag.size() || field == nullptr) {
    row.fail_expected("flags", fmt::format("plan fields such as zero=1 recompute=none (orrery show "
                                           "plan-fields lists them), not '{}'",
                                           flag));
  }
  const std::string value = flag_value(row, *field, flag.substr(equals + 1));
  const auto [stated, first] = run.plan.emplace(field->key, value);
  if (first || stated->second == value) return;
  row.fail_expected("flags", fmt::format("{}={}, as column '{}' says", field->key, stated->second,
                                         field->column.empty() ? field->key : field->column));
}

/// What a line says of its simulator.
struct SimulatorCells {
  std::string simulator, seen;
  std::optional<double> step_time, stated_mean;
};

std::optional<double> positive_cell(const Row& row, std::string_view column) {
  const auto number = row.number(column);
  if (number && !(*number > 0)) row.fail_expected(column, "a number above 0");
  return number;
}

SimulatorCells simulator_cells(const Row& row) {
  SimulatorCells cells{.simulator = std::string{row.text("simulator")},
                       .seen = std::string{row.text("seen")},
                       .step_time = positive_cell(row, "simulator_step_time_s"),
                       .stated_mean = positive_cell(row, "simulator_mean_pct")};
  const bool known =
      cells.seen.empty() || cells.seen == "fit" || cells.seen == "listed" || cells.seen == "no";
  if (!known) row.fail_expected("seen", "fit, listed or no");
  return cells;
}

/// The errors of a simulator's runs, which its scores summarise.
struct SimulatorErrors {
  std::vector<double> as_typed, flagged, unseen, theirs;
};

double simulator_error(double predicted, double measured) {
  return 100 * (predicted / measured - 1);
}

Json compared_json(const MeasuredRun& run, const SimulatorCells& cells, const RunResult& as_typed,
                   const RunResult& flagged) {
  return {{"run", run.run},
          {"seen", or_null(cells.seen)},
          {"measured_step_time_s", *run.step_time},
          {"as_typed_step_time_s", *as_typed.predicted},
          {"with_flags_step_time_s", *flagged.predicted},
          {"their_own_step_time_s", or_null(cells.step_time)}};
}

std::string median_and_mean(const std::optional<ErrorSummary>& errors) {
  if (!errors) return fmt::format("{:>9} {:>9}", "-", "-");
  return fmt::format("{:>7.1f} % {:>7.1f} %", errors->median, errors->mean);
}

}  // namespace

std::vector<MeasuredRun> flagged_runs(const orrery::Table& table,
                                      const std::vector<MeasuredRun>& runs) {
  if (!table.has("simulator")) return {};
  std::vector<MeasuredRun> flagged = runs;
  for (std::size_t i = 0; i < flagged.size(); ++i) {
    const Row row = table[i];
    const std::string_view flags = row.text("flags");
    for (std::size_t begin = 0; begin < flags.size();) {
      const std::size_t end = std::min(flags.find(' ', begin), flags.size());
      if (end > begin) state_flag(row, flags.substr(begin, end - begin), flagged[i]);
      begin = end + 1;
    }
  }
  return flagged;
}

std::vector<SimulatorScores> scores_by_simulator(const orrery::Table& table,
                                                 const std::vector<MeasuredRun>& runs,
                                                 const std::vector<RunResult>& as_typed,
                                                 const std::vector<RunResult>& flagged) {
  std::vector<SimulatorScores> scores;
  std::vector<SimulatorErrors> errors;
  for (std::size_t i = 0; i < flagged.size(); ++i) {
    const SimulatorCells cells = simulator_cells(table[i]);
    if (cells.simulator.empty() || !as_typed[i].counts() || !flagged[i].counts()) continue;
    auto at = std::ranges::find(scores, cells.simulator, &SimulatorScores::simulator);
    if (at == scores.end()) {
      at = scores.emplace(scores.end());
      at->simulator = cells.simulator;
      errors.emplace_back();
    }
    SimulatorErrors& own = errors[static_cast<std::size_t>(at - scores.begin())];
    ++at->rows;
    if (cells.seen == "fit") ++at->in_fits;
    const bool inside =
        *runs[i].step_time >= *flagged[i].p10 && *runs[i].step_time <= *flagged[i].p90;
    if (inside) ++at->inside;
    if (cells.stated_mean) at->stated_mean = cells.stated_mean;
    own.as_typed.push_back(*as_typed[i].error_pct);
    own.flagged.push_back(*flagged[i].error_pct);
    if (cells.seen == "no") own.unseen.push_back(*flagged[i].error_pct);
    if (cells.step_time)
      own.theirs.push_back(simulator_error(*cells.step_time, *runs[i].step_time));
    at->runs.push_back(compared_json(runs[i], cells, as_typed[i], flagged[i]));
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i].as_typed = summary_if_any(errors[i].as_typed);
    scores[i].flagged = summary_if_any(errors[i].flagged);
    scores[i].unseen = summary_if_any(errors[i].unseen);
    scores[i].theirs = summary_if_any(errors[i].theirs);
  }
  return scores;
}

Json to_json(const std::vector<SimulatorScores>& scores) {
  Json json = Json::object();
  for (const SimulatorScores& each : scores) {
    json[each.simulator] = {{"rows", each.rows},
                            {"in_fits", each.in_fits},
                            {"as_typed", to_json(each.as_typed)},
                            {"with_flags", to_json(each.flagged)},
                            {"unseen_with_flags", to_json(each.unseen)},
                            {"inside_with_flags", each.inside},
                            {"their_own", to_json(each.theirs)},
                            {"their_own_stated_mean_pct", or_null(each.stated_mean)},
                            {"runs", each.runs}};
  }
  return json;
}

std::string table_of(const std::vector<SimulatorScores>& scores) {
  if (scores.empty()) return {};
  std::string text = fmt::format(
      "\n{:<36} {:>5} {:>7}  {:^19}  {:^19} {:>6}  {:>14}\n"
      "{:<36} {:>5} {:>7}  {:>9} {:>9}  {:>9} {:>9} {:>6}  {:>9} {:>9}\n",
      "by simulator", "runs", "in fits", "as typed", "with its flags", "", "its own", "", "", "",
      "median", "mean", "median", "mean", "inside", "median", "mean");
  for (const SimulatorScores& each : scores) {
    const bool stated = !each.theirs && each.stated_mean;
    const std::string theirs = stated ? fmt::format("{:>9} {:>7.1f} %", "-", *each.stated_mean)
                                      : median_and_mean(each.theirs);
    text += fmt::format("{:<36.36} {:>5} {:>7}  {}  {} {:>6}  {}\n", each.simulator, each.rows,
                        each.in_fits, median_and_mean(each.as_typed), median_and_mean(each.flagged),
                        each.inside, theirs);
  }
  text += "inside: measured within p10 to p90\n";
  for (const SimulatorScores& each : scores) {
    if (!each.unseen || each.unseen->rows == each.rows) continue;
    text += fmt::format(
        "{}: {} runs that runs.csv does not have, with flags: median {:.1f} %, "
        "mean {:.1f} %\n",
        each.simulator, each.unseen->rows, each.unseen->median, each.unseen->mean);
  }
  return text;
}

}  // namespace orrery::scenarios

#include "scenarios/whatif/sweep_row.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "scenarios/report/result.hpp"
#include "sim/errors.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::string_view our_fault_prefix = "internal error: ";

std::string text_in_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Appends members to a line.
class LineMembers {
 public:
  explicit LineMembers(std::string& line) : line_{line} {}

  void text(std::string_view key, std::string_view value) { member(key, value); }
  void number(std::string_view key, double value) { member(key, Json(value).dump()); }
  void number(std::string_view key, std::optional<double> value) {
    member(key, value ? Json(*value).dump() : "null");
  }
  void number(std::string_view key, std::int64_t value) { member(key, std::to_string(value)); }

 private:
  void member(std::string_view key, std::string_view value) {
    line_ += ",\"";
    line_ += key;
    line_ += "\":";
    line_ += value;
  }
  std::string& line_;
};

void add_row_figures(const SweepRow& row, std::string& line) {
  LineMembers members{line};
  const models::StepFigures& found = row.figures;
  members.number("gpus", row.gpus);
  members.number("step_time_s", seconds(found.step));
  members.number("tokens_per_s", found.tokens_per_second);
  members.number("mfu", found.mfu);
  members.number("peak_memory_bytes", row.memory.count());
  members.text("fits", found.fit != models::Fit::no ? "true" : "false");
  members.text("fit", fmt::format("\"{}\"", models::name(found.fit)));
  std::string range;
  LineMembers parts{range};
  parts.number("p10", seconds(row.uncertainty.p10));
  parts.number("p50", seconds(row.uncertainty.p50));
  parts.number("p90", seconds(row.uncertainty.p90));
  range.front() = '{';
  members.text("uncertainty", range + "}");
  members.number("energy_j_per_step", found.energy.count());
  members.number("cost_usd_per_step",
                 found.cost ? std::optional{found.cost->count()} : std::nullopt);
  std::optional<TrainingTotals> totals;
  if (row.tokens) totals = totals_of(row.gpus, found, *row.tokens);
  members.number("days", totals ? std::optional{totals->days} : std::nullopt);
  members.number("cost_usd",
                 totals && totals->cost ? std::optional{totals->cost->count()} : std::nullopt);
}

constexpr std::string_view null_figures =
    R"(,"gpus":null,"step_time_s":null,"tokens_per_s":null,"mfu":null,"peak_memory_bytes":null,)"
    R"("fits":null,"fit":null,"uncertainty":null,"energy_j_per_step":null,)"
    R"("cost_usd_per_step":null,"days":null,"cost_usd":null)";

/// What follows the last `,"key":` of a line, which is never inside a text: a quote in a text has
/// a backslash before it.
std::string_view after_last_key(std::string_view line, std::string_view key) {
  const std::string member = fmt::format(",\"{}\":", key);
  const std::size_t at = line.rfind(member);
  ensure(at != std::string_view::npos, "a line of a sweep without one of its figures");
  return line.substr(at + member.size());
}

}  // namespace

SweepGrid::SweepGrid(std::vector<ValueList> lists) : lists_{std::move(lists)} {
  for (const ValueList& list : lists_) {
    std::vector<std::string>& members = members_.emplace_back();
    for (const Json& value : list.values) {
      members.push_back(text_in_line(Json(list.pointer)) + ":" + text_in_line(value));
    }
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    const std::uint64_t count = list.values.size();
    if (count == 0) throw InputError{list.pointer, "expected at least one value"};
    if (variants_ > most / count) throw InputError{"--vary", "more than 2^62 variants"};
    variants_ *= count;
  }
}

std::vector<std::uint32_t> SweepGrid::digits(std::uint64_t index) const {
  std::vector<std::uint32_t> found(lists_.size());
  for (std::size_t i = lists_.size(); i-- > 0;) {
    const std::uint64_t count = lists_[i].values.size();
    found[i] = static_cast<std::uint32_t>(index % count);
    index /= count;
  }
  return found;
}

std::vector<std::pair<std::string, Json>> SweepGrid::changes(
    const std::vector<std::uint32_t>& digits) const {
  std::vector<std::pair<std::string, Json>> found;
  found.reserve(lists_.size());
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    found.emplace_back(lists_[i].pointer, lists_[i].values[digits[i]]);
  }
  return found;
}

std::string SweepGrid::beginning(std::uint64_t index) {
  return fmt::format("{{\"index\":{},", index);
}

std::string SweepGrid::line(std::uint64_t index, const SweepRow& row) const {
  std::string line = beginning(index);
  line += "\"values\":{";
  const std::vector<std::uint32_t> of_lists = digits(index);
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    if (i > 0) line += ',';
    line += members_[i][of_lists[i]];
  }
  line += "},\"error\":";
  if (row.error.empty()) {
    line += "null";
    add_row_figures(row, line);
  } else {
    line +=
        text_in_line((row.our_fault ? std::string{our_fault_prefix} : std::string{}) + row.error);
    line += null_figures;
  }
  return line += '}';
}

std::optional<double> figure_in(std::string_view line, std::string_view key) {
  const std::string_view rest = after_last_key(line, key);
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return error == std::errc{} ? std::optional{value} : std::nullopt;
}

bool is_predicted(std::string_view line) {
  return after_last_key(line, "error").starts_with("null");
}

bool fits_in(std::string_view line) {
  return after_last_key(line, "fits").starts_with("true");
}

bool is_our_fault(std::string_view line) {
  return after_last_key(line, "error").starts_with("\"internal error: ");
}

}  // namespace orrery::scenarios

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/runback/run_comparison.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_rows = 12;

Json tally_json(const std::optional<KernelTally>& tally) {
  if (!tally) return nullptr;
  return {{"count", tally->count}, {"time_s", seconds(tally->total)}};
}

Json statistics_json(const RunComparison& found) {
  const StepStatistics& steps = found.steps;
  return {{"count", steps.steps},    {"left_out", steps.left_out}, {"median_s", steps.median},
          {"p10_s", steps.p10},      {"p90_s", steps.p90},         {"trend", steps.trend},
          {"slow_steps", steps.slow}};
}

Json contradictions_json(const RunComparison& found) {
  Json rows = Json::array();
  for (const StatedByLog& each : found.contradictions) {
    rows.push_back({{"pointer", each.pointer}, {"scenario", each.scenario}, {"log", each.log}});
  }
  return rows;
}

Json rank_json(const ProfiledRank& rank, bool chosen) {
  const ClassTimes wall = rank.wall(), busy = rank.busy();
  Json times = Json::object(), kernels = Json::object();
  for (const auto& each : run_class_words) {
    times[std::string{each.text}] = seconds(wall[each.value]);
    kernels[std::string{each.text}] = seconds(busy[each.value]);
  }
  Json steps = Json::array();
  for (const ProfiledStep& step : rank.steps) {
    steps.push_back({{"name", step.name}, {"time_s", seconds(step.duration)}, {"used", step.used}});
  }
  return {{"rank", or_null(rank.rank)},       {"file", rank.file},
          {"device", or_null(rank.device)},   {"chosen", chosen},
          {"steps_by", rank.steps_by},        {"step_time_s", seconds(wall.sum())},
          {"steps", std::move(steps)},        {"classes", std::move(times)},
          {"kernel_time", std::move(kernels)}};
}

Json classes_json(const RunComparison& found) {
  const Time all = found.measured - found.prediction.step;
  Json rows = Json::array();
  for (const RunClassTime& row : found.classes) {
    const Time difference = row.measured - row.predicted;
    rows.push_back(
        {{"class", word_of(run_class_words, row.which)},
         {"predicted_s", seconds(row.predicted)},
         {"measured_s", seconds(row.measured)},
         {"difference_s", seconds(difference)},
         {"share_of_difference", agrees(found) ? Json(nullptr) : Json(ratio(difference, all))},
         {"kernels", row.kernels}});
  }
  return rows;
}

/// Idle time of the GPU, and what is exposed, by cause.
Json idle_json(const RunComparison& found) {
  constexpr std::pair<RunClass, const char*> causes[] = {
      {RunClass::host, "host_s"},
      {RunClass::data_loading, "data_loading_s"},
      {RunClass::communication, "exposed_communication_s"},
      {RunClass::pipeline, "pipeline_s"},
      {RunClass::other, "other_s"}};
  if (found.classes.empty()) return nullptr;
  Json idle = Json::object();
  for (const RunClassTime& row : found.classes) {
    for (const auto& [which, name] : causes) {
      if (row.which == which) idle[name] = seconds(row.measured);
    }
  }
  return idle;
}

Json causes_json(const RunComparison& found) {
  const Time all = found.measured - found.prediction.step;
  Json rows = Json::array();
  for (const RunChange& each : found.changes) {
    rows.push_back({{"cause", each.cause},
                    {"flags", or_null(each.flags)},
                    {"effect_s", seconds(each.effect)},
                    {"share", agrees(found) ? Json(nullptr) : Json(ratio(each.effect, all))},
                    {"prior", each.prior},
                    {"basis", each.basis}});
  }
  return rows;
}

Json run_fit_json(const std::optional<RunFit>& fit, Time measured) {
  if (!fit) return nullptr;
  Json numbers = Json::array();
  for (const RunNumber& each : fit->numbers) {
    numbers.push_back({{"pointer", each.pointer},
                       {"before", each.before},
                       {"after", each.after},
                       {"of", each.of_site ? "site" : "software"},
                       {"remaining_effect", each.effect}});
  }
  return {{"numbers", std::move(numbers)},
          {"unexplained", fit->unexplained},
          {"predicted_s", seconds(fit->predicted)},
          {"error_pct", 100 * (ratio(fit->predicted, measured) - 1)}};
}

std::string spelled_size(std::int64_t bytes) {
  return bytes < 0 ? "?" : format(Bytes{bytes});
}

/// The readable report.
class RunReport {
 public:
  RunReport(const RunComparison& found, int width, bool colour)
      : found_{found}, width_{static_cast<std::size_t>(width)}, colour_{colour} {}

  std::string text() {
    head();
    if (!found_.classes.empty()) classes();
    changes();
    if (found_.ranks.size() > 1) ranks();
    if (!found_.classes.empty()) {
      collectives();
      shapes();
      kernels();
    }
    if (found_.fit) fit();
    if (!found_.notes.empty()) notes();
    if (found_.alternatives) text_ += text_of(*found_.alternatives, colour_);
    return std::move(text_);
  }

 private:
  void title(const std::string& words) { text_ += "\n" + toned(words, Tone::bold, colour_) + "\n"; }
  /// In a unit that fits the longer of the two steps.
  std::string part(Time time) const {
    return step_part(time, std::max(found_.measured, found_.prediction.step));
  }

  std::string difference_of(Time time) const {
    return time < Time{} ? "-" + part(-time) : "+" + part(time);
  }

  void head() {
    const Time predicted = found_.prediction.step;
    text_ += toned("A run of " + printable(found_.scenario, 60), Tone::bold, colour_) + "\n";
    const double off = 100 * (ratio(found_.measured, predicted) - 1);
    text_ += fmt::format("  measured {}, predicted {}: the run takes {:.1f} % {} ({})\n",
                         part(found_.measured), part(predicted), std::abs(off),
                         off < 0 ? "less" : "more", range());
    const StepStatistics& steps = found_.steps;
    text_ += fmt::format("  {}, {} step{}: median {}, 10th to 90th percentile {} to {}", source(),
                         steps.steps, steps.steps == 1 ? "" : "s", part(from_seconds(steps.median)),
                         part(from_seconds(steps.p10)), part(from_seconds(steps.p90)));
    if (steps.steps > 4) text_ += fmt::format(", {:+.1f} % over the run", 100 * steps.trend);
    if (steps.slow > 0) text_ += fmt::format("; {} over 1.5 times the median", steps.slow);
    text_ += fmt::format("\n  {:.0f} tokens/s of the job\n", found_.tokens_per_second);
  }

  std::string range() const {
    const models::Uncertainty& range = found_.prediction.uncertainty;
    const bool inside = found_.measured >= range.p10 && found_.measured <= range.p90;
    return inside ? "inside the range of 8 in 10 cases" : "outside the range of 8 in 10 cases";
  }

  std::string source() const {
    if (found_.ranks.empty()) return found_.log_format + " log";
    const ProfiledRank& rank = found_.ranks[found_.chosen];
    const std::string by = rank.steps_by == "ProfilerStep#" ? "" : " by " + rank.steps_by;
    if (found_.ranks.size() == 1) return "trace of " + rank.name() + by;
    return fmt::format("{} traces{}; {} computes longest", found_.ranks.size(), by, rank.name());
  }

  void classes() {
    title("Where the step goes");
    TextTable table{{"<", "predicted", "measured", "difference", "of it", "kernels"}};
    const Time all = found_.measured - found_.prediction.step;
    for (const RunClassTime& row : found_.classes) {
      if (row.predicted == Time{} && row.measured == Time{}) continue;
      const Time difference = row.measured - row.predicted;
      table.add({std::string{title_of(row.which)}, part(row.predicted), part(row.measured),
                 difference_of(difference), agrees(found_) ? "" : percent(ratio(difference, all)),
                 row.kernels > 0 ? fmt::format("{:.0f}", row.kernels) : ""});
    }
    table.add(
        {"step", part(found_.prediction.step), part(found_.measured), difference_of(all), "", ""});
    text_ += table.text(colour_);
  }

  void changes() {
    if (found_.alternatives) return;
    title("The few changes that would explain the difference");
    if (agrees(found_)) {
      text_ += fmt::format("  {}\n", words_of_agreement);
      return;
    }
    if (found_.changes.empty()) {
      text_ += "  none: no change is likelier than the prediction's own error\n";
      return;
    }
    const Time all = found_.measured - found_.prediction.step;
    for (const RunChange& each : found_.changes) {
      text_ += fmt::format("  {:>9}  {:>8}  {}\n", difference_of(each.effect),
                           percent(ratio(each.effect, all)), each.cause);
      const std::string prior = fmt::format("prior {:.2g}: {}", each.prior, each.basis);
      text_ += fmt::format("{:23}{}\n", "", toned(prior, Tone::faint, colour_));
      if (!each.flags.empty()) text_ += fmt::format("{:23}{}\n", "", each.flags);
    }
    text_ += fmt::format("  {:>9}  {:>8}  not explained\n", difference_of(found_.unexplained),
                         percent(ratio(found_.unexplained, all)));
  }

  void ranks() {
    title("Ranks");
    TextTable table{{"<", "step", "computes", "exposed comm.", "pipeline", "host late", "data"}};
    for (const ProfiledRank& rank : found_.ranks) {
      const ClassTimes wall = rank.wall();
      table.add({rank.name(), part(wall.sum()), part(wall.computing()),
                 part(wall[RunClass::communication]), part(wall[RunClass::pipeline]),
                 part(wall[RunClass::host]), part(wall[RunClass::data_loading])});
    }
    text_ += table.text(colour_);
    text_ += "  orrery diagnose names the one that is slow\n";
  }

  void collectives() {
    if (found_.collectives.empty()) return;
    title("Collectives and transfers of a step");
    TextTable table{{"<collective", "<group", "ranks", "size", "calls", "measured",
                     "without waiting", "predicted calls", "predicted"}};
    for (std::size_t i = 0; i < std::min(most_rows, found_.collectives.size()); ++i) {
      const RunCollective& row = found_.collectives[i];
      std::string group = printable(row.key.group, 30);
      if (!row.communicator.empty()) group += (group.empty() ? "" : " = ") + row.communicator;
      table.add({row.key.kind, group, row.key.ranks > 0 ? fmt::format("{}", row.key.ranks) : "?",
                 spelled_size(row.key.bytes), count_of(row.measured), time_of(row.measured),
                 row.transfer ? part(*row.transfer) : "", count_of(row.predicted),
                 time_of(row.predicted)});
    }
    text_ += table.text(colour_);
    rest(found_.collectives.size());
  }

  static std::string count_of(const std::optional<KernelTally>& tally) {
    return tally ? fmt::format("{:.4g}", tally->count) : "-";
  }
  std::string time_of(const std::optional<KernelTally>& tally) const {
    return tally ? part(tally->total) : "-";
  }
  void rest(std::size_t rows) {
    if (rows > most_rows) text_ += fmt::format("  and {} others (--json)\n", rows - most_rows);
  }

  void shapes() {
    if (found_.shapes.empty()) return;
    title("GEMMs of a step, by their three sizes");
    TextTable table{
        {"<sizes", "calls", "measured", "rate", "predicted calls", "predicted", "rate"}};
    for (std::size_t i = 0; i < std::min(most_rows, found_.shapes.size()); ++i) {
      const RunShape& row = found_.shapes[i];
      const MatrixShape& shape = row.shape;
      const std::string batch = shape.batch > 1 ? fmt::format("{} x ", shape.batch) : "";
      table.add({fmt::format("{}{} x {} x {}", batch, shape.m, shape.n, shape.k),
                 count_of(row.measured), time_of(row.measured), rate_of(shape, row.measured),
                 count_of(row.predicted), time_of(row.predicted), rate_of(shape, row.predicted)});
    }
    text_ += table.text(colour_);
    rest(found_.shapes.size());
  }

  static std::string rate_of(const MatrixShape& shape, const std::optional<KernelTally>& tally) {
    if (!tally || tally->total == Time{}) return "";
    const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                         static_cast<double>(shape.k) * static_cast<double>(shape.batch);
    const double rate = flops * tally->count / seconds(tally->total);
    return rate < 1e12 ? fmt::format("{:.0f} GFLOP/s", rate / 1e9)
                       : fmt::format("{:.0f} TFLOP/s", rate / 1e12);
  }

  void kernels() {
    const ProfiledRank& rank = found_.ranks[found_.chosen];
    title(fmt::format("Largest kernels of {}, of a step", rank.name()));
    TextTable table{{"<kernel", "<class", "calls", "time"}};
    const auto steps = static_cast<double>(rank.used_steps());
    for (std::size_t i = 0; i < std::min(most_rows, rank.kernels.size()); ++i) {
      const NamedKernel& each = rank.kernels[i];
      std::string name = printable(each.name);
      if (name.starts_with("void ")) name.erase(0, 5);
      table.add({printable(name, 58), std::string{word_of(run_class_words, each.of)},
                 fmt::format("{:.4g}", each.tally.count / steps),
                 part(scaled(each.tally.total, 1 / steps))});
    }
    text_ += table.text(colour_);
  }

  void fit() {
    const RunFit& fit = *found_.fit;
    title("A profile and a site from this run");
    TextTable table{{"<number", "before", "after", "<of"}};
    for (const RunNumber& each : fit.numbers) {
      table.add({each.pointer, each.before, each.after, each.of_site ? "site" : "software"});
    }
    if (!table.empty()) text_ += table.text(colour_);
    text_ += fmt::format("  unexplained: {:+.1f} % of each step\n", 100 * (fit.unexplained - 1));
    text_ += fmt::format(
        "  predicted with them {} ({:+.1f} %), before {} ({:+.1f} %), measured {}\n",
        part(fit.predicted), 100 * (ratio(fit.predicted, found_.measured) - 1),
        part(found_.prediction.step), 100 * (ratio(found_.prediction.step, found_.measured) - 1),
        part(found_.measured));
  }

  void notes() {
    title("Notes");
    for (const std::string& note : found_.notes) {
      bool first = true;
      for (const std::string& line :
           wrapped(printable(note), std::max<std::size_t>(width_, 40) - 4)) {
        text_ += (first ? "  - " : "    ") + line + "\n";
        first = false;
      }
    }
  }

  const RunComparison& found_;
  std::size_t width_;
  bool colour_;
  std::string text_;
};

}  // namespace

Json to_json(const RunComparison& found) {
  Json ranks = Json::array(), collectives = Json::array(), shapes = Json::array();
  for (std::size_t i = 0; i < found.ranks.size(); ++i) {
    ranks.push_back(rank_json(found.ranks[i], i == found.chosen));
  }
  for (const RunCollective& row : found.collectives) {
    collectives.push_back(
        {{"collective", row.key.kind},
         {"group", or_null(row.key.group)},
         {"communicator", or_null(row.communicator)},
         {"ranks", row.key.ranks > 0 ? Json(row.key.ranks) : Json(nullptr)},
         {"bytes", row.key.bytes >= 0 ? Json(row.key.bytes) : Json(nullptr)},
         {"predicted", tally_json(row.predicted)},
         {"measured", tally_json(row.measured)},
         {"transfer_s", row.transfer ? Json(seconds(*row.transfer)) : Json(nullptr)}});
  }
  for (const RunShape& row : found.shapes) {
    shapes.push_back({{"sizes", {row.shape.m, row.shape.n, row.shape.k}},
                      {"batch", row.shape.batch},
                      {"predicted", tally_json(row.predicted)},
                      {"measured", tally_json(row.measured)}});
  }
  Json kernels = Json::array();
  if (!found.ranks.empty()) {
    const ProfiledRank& rank = found.ranks[found.chosen];
    const auto steps = static_cast<double>(rank.used_steps());
    for (std::size_t i = 0; i < std::min<std::size_t>(rank.kernels.size(), 50); ++i) {
      const NamedKernel& each = rank.kernels[i];
      kernels.push_back({{"name", printable(each.name)},
                         {"class", word_of(run_class_words, each.of)},
                         {"count", each.tally.count / steps},
                         {"time_s", seconds(each.tally.total) / steps}});
    }
  }
  const Time predicted = found.prediction.step;
  return {{"command", "compare"},
          {"scenario", found.scenario},
          {"source", found.ranks.empty() ? found.log_format : "profiler"},
          {"predicted_s", seconds(predicted)},
          {"measured_s", seconds(found.measured)},
          {"difference_s", seconds(found.measured - predicted)},
          {"ratio", ratio(predicted, found.measured)},
          {"error_pct", 100 * (ratio(predicted, found.measured) - 1)},
          {"tokens_per_s", found.tokens_per_second},
          {"steps", statistics_json(found)},
          {"contradictions", contradictions_json(found)},
          {"classes", classes_json(found)},
          {"idle", idle_json(found)},
          {"causes", causes_json(found)},
          {"unexplained_s", seconds(found.unexplained)},
          {"alternatives", found.alternatives ? to_json(*found.alternatives) : Json(nullptr)},
          {"collectives", std::move(collectives)},
          {"shapes", std::move(shapes)},
          {"kernels", std::move(kernels)},
          {"ranks", std::move(ranks)},
          {"fit", run_fit_json(found.fit, found.measured)},
          {"notes", found.notes}};
}

std::string text_of(const RunComparison& found, int width, bool colour) {
  return RunReport{found, width, colour}.text();
}

}  // namespace orrery::scenarios

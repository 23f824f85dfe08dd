#include "scenarios/search/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/plan/fields.hpp"
#include "scenarios/plan_words.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/search/best_of_many.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

std::string reason_of(const PlanQuery& query, const PlanAnswer& answer) {
  if (!answer.fitting.empty()) return {};
  if (answer.stopped) return "stopped before a plan that fits was found";
  if (answer.nearest_miss) {
    const models::OutOfMemory& found = answer.nearest_miss->out_of_memory;
    return fmt::format("none of {} plans fits; {} comes nearest: rank {} needs {}, available: {}",
                       answer.considered, models::title_of(answer.nearest_miss->placed.plan),
                       found.rank, format(found.needed), format(found.available));
  }
  return fmt::format(
      "no tensor x pipeline x data of {} GPUs divides {} sequences a step, {} layers and {} "
      "attention heads",
      query.cluster.gpus(), query.global_batch, query.model.layers, query.model.heads);
}

namespace {

using Align = TextTable::Align;

std::string title(const PlanReport& report, const ReportOptions& options) {
  const PlanQuery& query = report.query;
  return toned(fmt::format("Plans for {} on {}", query.model.name, report.cluster), Tone::bold,
               options.colour) +
         fmt::format("\n{} x {} · {} sequences of {} tokens a step · {} · {} · least {}\n",
                     query.cluster.gpus(), query.cluster.gpu().name, query.global_batch,
                     query.seq_len, models::name(query.precision), query.software.name,
                     report.objective.name);
}

std::string excess_cell(const RankedPlan& ranked, bool first) {
  if (first) return "best";
  return fmt::format("{:+.1f} %{}", 100 * ranked.excess, ranked.as_good ? " ≈" : "  ");
}

/// A column of the table: the field that has a heading, and fields appended to its cell.
struct PlanColumn {
  TextTable::Column column;
  std::vector<const models::PlanField*> fields;
};

std::vector<PlanColumn> plan_columns() {
  using Title = models::PlanField::Title;
  std::vector<PlanColumn> columns;
  for (const models::PlanField& field : models::plan_fields()) {
    if (field.title == Title::none) continue;
    if (field.title == Title::addition) {
      if (columns.empty()) continue;  // before any heading: equal for all plans
      columns.back().fields.push_back(&field);
      columns.back().column.align = Align::left;
      continue;
    }
    const bool number = field.value.kind == models::PlanValue::Kind::count;
    const std::string_view heading = field.heading.empty() ? field.title_label : field.heading;
    columns.push_back({{std::string{heading}, number ? Align::right : Align::left}, {&field}});
  }
  return columns;
}

std::string cell_of(const models::Plan& plan, const PlanColumn& column) {
  std::string cell;
  for (const models::PlanField* field : column.fields) {
    const std::string part = field->in_cell(plan);
    if (!part.empty()) cell += (cell.empty() ? "" : " ") + part;
  }
  return cell;
}

std::vector<std::string> cells(const RankedPlan& ranked, std::size_t number, Time unit,
                               const Objective& objective, bool shows_shared) {
  const models::Estimate& estimate = ranked.candidate.estimate;
  std::vector<std::string> cells{fmt::format("{}", number)};
  for (const PlanColumn& each : plan_columns()) {
    cells.push_back(cell_of(ranked.candidate.placed.plan, each));
  }
  const auto& shared = ranked.candidate.shared;
  if (shows_shared) cells.push_back(shared ? step_part(shared->step, unit) : "");
  for (std::string each : {step_part(estimate.step, unit), percent(estimate.mfu),
                           format(estimate.memory), std::string{models::name(estimate.fit)},
                           objective.cell(estimate), excess_cell(ranked, number == 1)}) {
    cells.push_back(std::move(each));
  }
  return cells;
}

/// Whether any plan shown was evaluated with its traffic on links.
bool any_shared(const PlanReport& report) {
  return std::ranges::any_of(
      report.best, [](const RankedPlan& each) { return each.candidate.shared.has_value(); });
}

/// Whether any plan shown uses only a part of the cluster's nodes.
bool on_parts(const PlanReport& report) {
  for (const RankedPlan& each : report.best) {
    if (each.candidate.placed.nodes != report.query.cluster.nodes) return true;
  }
  return false;
}

std::string table(const PlanReport& report, const ReportOptions& options) {
  const bool parts = on_parts(report);
  std::vector<TextTable::Column> columns{"#"};
  for (PlanColumn& each : plan_columns()) columns.push_back(std::move(each.column));
  const bool shared = any_shared(report);
  if (shared) columns.push_back({"on links"});
  columns.insert(columns.end(), {"step", "MFU", "memory", "<fit"});
  columns.insert(columns.end(),
                 {{std::string{report.objective.heading}, Align::right}, "against 1"});
  if (parts) columns.insert(columns.begin() + 1, {"nodes"});
  TextTable shown{std::move(columns)};
  const Time unit = report.best.front().candidate.estimate.step;
  for (std::size_t i = 0; i < report.best.size(); ++i) {
    std::vector<std::string> row = cells(report.best[i], i + 1, unit, report.objective, shared);
    if (parts) {
      row.insert(row.begin() + 1, fmt::format("{}", report.best[i].candidate.placed.nodes));
    }
    shown.add(std::move(row));
  }
  const std::string note = paragraph(
      "on links: step time with all traffic sharing the links between adjacent nodes, by which "
      "these plans are sorted; step: step time in the search, without contention between different "
      "collectives",
      2, options);
  return "\n" + shown.text(options.colour) + (shared ? "\n" + note : "");
}

std::string ties(const PlanReport& report, const ReportOptions& options) {
  const Candidate& best = report.answer.fitting.front();
  const Indistinguishable gaps = indistinguishable(report.query.software);
  const double least = report.objective.measure(best.estimate);
  std::size_t as_good = 0;
  for (const Candidate& each : report.answer.fitting) {
    const double share = gaps.of(best.placed.plan, each.placed.plan);
    const bool ties = report.objective.measure(each.estimate) <= least * (1 + share);
    as_good += ties && each.estimate.fit == best.estimate.fit ? 1 : 0;
  }
  if (as_good < 2) return {};
  return "\n" +
         paragraph(fmt::format("≈ Predictions cannot distinguish {} plans, those within {:.1f} % "
                               "of the best with its tensor, pipeline and micro-batch sizes and "
                               "within {:.1f} % with others: {}. Try several of them.",
                               as_good, 100 * gaps.alike, 100 * gaps.others,
                               words_of_ties(report.query.software)),
                   2, options);
}

/// A paragraph on plans that fit tightly and are ranked last: how many there are, and what they
/// gain.
std::string tight(const PlanReport& report, const ReportOptions& options) {
  const std::int64_t count = report.answer.tight();
  if (count == 0) return {};
  const double headroom = 100 * report.query.headroom;
  const bool only = report.answer.fitting.front().estimate.fit == models::Fit::tight;
  std::string text =
      "\n" +
      paragraph(
          only ? fmt::format(
                     "No plan leaves {:.1f} % of the memory free (--headroom). Those above fit "
                     "tightly: predicted peaks are off by {:.1f} % (median).",
                     headroom, 100 * models::usual_headroom())
               : fmt::format("{} plans fit tightly, with less than {:.1f} % of the memory to spare "
                             "(--headroom; 0% ranks them with the others). They are ranked last{}",
                             count, headroom,
                             report.tight_ahead.empty() ? "." : "; these would beat the best:"),
          2, options);
  for (const RankedPlan& each : report.tight_ahead) {
    const models::Estimate& estimate = each.candidate.estimate;
    text += paragraph(
        fmt::format("{} · {} · {:+.1f} % · {} ({:.0f} % of measured peaks would fit)",
                    models::title_of(each.candidate.placed.plan),
                    step_part(estimate.step, report.best.front().candidate.estimate.step),
                    100 * each.excess, format(estimate.memory), 100 * estimate.fit_probability),
        4, options);
  }
  return text;
}

/// The error on published runs, if a plan shown is of a kind that no stack is fitted to.
std::string sharded(const PlanReport& report, const ReportOptions& options) {
  for (const RankedPlan& each : report.best) {
    const auto note = sharded_note(each.candidate.placed.plan, report.query.software);
    if (note) return "\n" + paragraph(*note, 2, options);
  }
  return {};
}

std::string reasons(const PlanReport& report, const ReportOptions& options) {
  if (report.best.size() < 2) return {};
  std::string text = heading(
      on_parts(report) ? "Why the others are slower than plan 1, in time of equally many GPUs"
                       : "Why the others are slower than plan 1",
      options);
  for (std::size_t i = 1; i < report.best.size(); ++i) {
    const bool tie = report.best[i].excess == 0;
    text += fmt::format("  {:>3}  {}\n", i + 1,
                        tie ? "same step time, more memory" : why(report.best[i]));
  }
  return text;
}

std::string equals(const PlanReport& report, const ReportOptions& options) {
  std::string text;
  for (std::size_t i = 0; i < report.best.size(); ++i) {
    for (const models::Plan& each : report.best[i].candidate.equals) {
      text += fmt::format("  {:>3}  {}\n", i + 1, models::title_of(each));
    }
  }
  if (text.empty()) return {};
  return heading("Same step and memory, shown as one", options) + text;
}

std::string counts(const PlanReport& report, const ReportOptions& options) {
  const PlanAnswer& answer = report.answer;
  std::string text = heading("What was tried", options);
  text += paragraph(fmt::format("{} plans: {} fit, {} of them tightly, {} do not ({} by their "
                                "weights and optimizer states alone); {} "
                                "more combinations are ruled out by model or schedule",
                                answer.considered, answer.fits(), answer.tight(), answer.too_large,
                                answer.too_large_by_sizes, answer.conflicting),
                    2, options);
  if (answer.nearest_miss && !answer.fitting.empty()) {
    const models::OutOfMemory& found = answer.nearest_miss->out_of_memory;
    text += paragraph(fmt::format("nearest miss: {}: rank {} needs {}, available: {}",
                                  models::title_of(answer.nearest_miss->placed.plan), found.rank,
                                  format(found.needed), format(found.available)),
                      2, options);
  }
  return text;
}

/// The command line that simulates the best plan.
std::string next(const PlanReport& report, const ReportOptions& options) {
  return heading("The best one in detail", options) + "  " + report.simulate + "\n";
}

}  // namespace

std::string text_of(const PlanReport& report, const ReportOptions& options) {
  std::string text = title(report, options);
  if (report.answer.stopped) {
    text += toned("Stopped: only the plans evaluated until then are compared", Tone::bad,
                  options.colour) +
            "\n";
  }
  if (report.best.empty()) {
    text += "\n" + toned("No plan: ", Tone::bad, options.colour) + "\n" +
            paragraph(reason_of(report.query, report.answer), 2, options);
  } else {
    text += table(report, options) + ties(report, options) + best_of_many(report, options) +
            tight(report, options) + sharded(report, options) + reasons(report, options) +
            equals(report, options) + next(report, options);
  }
  return text + counts(report, options) + assumed_section(report.assumptions, options);
}

}  // namespace orrery::scenarios

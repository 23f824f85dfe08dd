#include "scenarios/search/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/plan/fields.hpp"
#include "models/prediction/memory_report.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/scenario/data_section.hpp"
#include "scenarios/scenario/plan_words.hpp"
#include "scenarios/search/best_of_many.hpp"
#include "scenarios/search/space/plan_values.hpp"
#include "scenarios/search/tried_report.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// ", with tensor=3 fixed".
std::string with_fixed(const PlanQuery& query) {
  std::string text;
  for (const std::string& key : query.stated) {
    text += fmt::format("{}{}={}", text.empty() ? ", with " : ", ", key,
                        text_in(models::plan_field(key), query.fixed));
  }
  return text.empty() ? text : text + " fixed";
}

}  // namespace

std::string reason_of(const PlanQuery& query, const PlanAnswer& answer) {
  if (!answer.fitting.empty()) return {};
  if (answer.stopped) return "stopped before a plan that fits was found";
  if (answer.too_slow > 0) {
    const auto& fastest = answer.fastest_too_slow;
    return fmt::format("none of {} plans that may fit meets the deadline{}", answer.too_slow,
                       fastest ? fmt::format("; {} comes nearest: a step of {}",
                                             models::title_of(fastest->placed.plan),
                                             format(fastest->estimate.step))
                               : ", by a lower bound of their step");
  }
  if (answer.nearest_miss) {
    const models::OutOfMemory& found = answer.nearest_miss->out_of_memory;
    return fmt::format("none of {} plans fits; {} comes nearest: {}", answer.considered,
                       models::title_of(answer.nearest_miss->placed.plan), models::words_of(found));
  }
  const auto most = std::ranges::max_element(answer.ruled_out, {}, &RuledOut::count);
  if (most != answer.ruled_out.end()) {
    return fmt::format("all {} combinations are ruled out, {} of them by one field: {}{}",
                       answer.conflicting, most->count, most->problem, with_fixed(query));
  }
  return fmt::format(
      "no tensor x pipeline x data of {} GPUs divides {} sequences a step, {} layers and {} "
      "attention heads{}",
      query.cluster.gpus(), query.global_batch, query.model.layers.size(),
      usual_attention(query.model).heads, with_fixed(query));
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
                               const Objective& objective) {
  const models::Estimate& estimate = ranked.candidate.figures();
  std::vector<std::string> cells{fmt::format("{}", number)};
  for (const PlanColumn& each : plan_columns()) {
    cells.push_back(cell_of(ranked.candidate.placed.plan, each));
  }
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

/// The fields without a column by which a row differs from another one whose columns are the same:
/// "embedding_counts true"; of rows that no other one is like, nothing.
std::vector<std::string> hidden_differences(const PlanReport& report) {
  std::vector<std::string> texts(report.best.size());
  std::vector<PlanColumn> columns = plan_columns();
  const auto plan = [&](std::size_t i) -> const models::Plan& {
    return report.best[i].candidate.placed.plan;
  };
  const auto alike = [&](std::size_t i, std::size_t j) {
    return std::ranges::all_of(columns, [&](const PlanColumn& each) {
      return cell_of(plan(i), each) == cell_of(plan(j), each);
    });
  };
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::size_t> others;
    for (std::size_t j = 0; j < texts.size(); ++j) {
      if (j != i && alike(i, j)) others.push_back(j);
    }
    for (const models::PlanField& field : models::plan_fields()) {
      const bool differs = std::ranges::any_of(others, [&](std::size_t j) {
        return value_in(field, plan(i)) != value_in(field, plan(j));
      });
      if (!differs) continue;
      texts[i] +=
          fmt::format("{}{} {}", texts[i].empty() ? "" : ", ", field.key, text_in(field, plan(i)));
    }
  }
  return texts;
}

std::string links_note(const ReportOptions& options) {
  return paragraph(
      "all figures of these plans are of one evaluation, with all traffic sharing the links "
      "between "
      "adjacent nodes; the search that found them leaves contention between different collectives "
      "out (--network static)",
      2, options);
}

std::string table(const PlanReport& report, const ReportOptions& options) {
  const bool parts = on_parts(report);
  std::vector<TextTable::Column> columns{"#"};
  for (PlanColumn& each : plan_columns()) columns.push_back(std::move(each.column));
  columns.insert(columns.end(), {"step", "MFU", "memory", "<fit"});
  columns.insert(columns.end(),
                 {{std::string{report.objective.heading}, Align::right}, "against 1"});
  const std::vector<std::string> hidden = hidden_differences(report);
  const bool hides = std::ranges::any_of(hidden, [](const auto& each) { return !each.empty(); });
  if (hides) columns.push_back({"also", Align::left});
  if (parts) columns.insert(columns.begin() + 1, {"nodes"});
  TextTable shown{std::move(columns)};
  const Time unit = report.best.front().candidate.figures().step;
  for (std::size_t i = 0; i < report.best.size(); ++i) {
    std::vector<std::string> row = cells(report.best[i], i + 1, unit, report.objective);
    if (hides) row.push_back(hidden[i]);
    if (parts) {
      row.insert(row.begin() + 1, fmt::format("{}", report.best[i].candidate.placed.nodes));
    }
    shown.add(std::move(row));
  }
  return "\n" + shown.text(options.colour) + (any_shared(report) ? "\n" + links_note(options) : "");
}

/// "virtual_stages 2, 5; zero 0, 1".
std::string words_of_free(const PlanClass& own) {
  std::string text;
  for (const SearchedValues& field : own.free) {
    std::string values;
    for (const Json& value : field.values) {
      const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
      values += (values.empty() ? "" : ", ") + word;
    }
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", field.key, values);
  }
  return text;
}

/// Which plans cannot be distinguished from the best: a line for each way to cut the model, with
/// the choices among which there is no difference.
std::string ties(const PlanReport& report, const ReportOptions& options) {
  constexpr std::size_t most = 8;
  std::int64_t open = 0, plans = 0;
  const std::vector<PlanClass> classes =
      classes_of(report.query, report.answer, report.objective, open);
  for (const PlanClass& each : classes) plans += each.plans;
  if (plans + open < 2) return {};
  const Indistinguishable gaps = indistinguishable(report.query.software);
  std::string text =
      "\n" +
      paragraph(
          fmt::format("≈ Predictions cannot distinguish {} plans{}, those within {:.1f} % of the "
                      "best with its tensor, pipeline and micro-batch sizes and within {:.1f} % "
                      "with others: {}. Try several of them{}",
                      plans, open > 0 ? fmt::format(", and up to {} more", open) : "",
                      100 * gaps.alike, 100 * gaps.others, words_of_ties(report.query.software),
                      classes.size() > 1 ? ", one of each line:" : ":"),
          2, options);
  for (std::size_t i = 0; i < std::min(most, classes.size()); ++i) {
    const models::Plan& plan = classes[i].best->placed.plan;
    const std::string free = words_of_free(classes[i]);
    text += paragraph(
        fmt::format("TP {} · PP {} · micro-batch {} · {:+.1f} % · {} plan{}{}", plan.tensor,
                    plan.pipeline, plan.batch.micro, 100 * classes[i].excess, classes[i].plans,
                    classes[i].plans == 1 ? "" : "s", free.empty() ? "" : ", no matter: " + free),
        4, options);
  }
  if (classes.size() > most) {
    text += paragraph(fmt::format("and {} more ways to cut the model", classes.size() - most), 4,
                      options);
  }
  return text;
}

/// Of a search that names no stack: the plans on those that are fitted to runs.
std::string stacks_text(const PlanReport& report, const ReportOptions& options) {
  const OverStacks& found = report.over_stacks;
  if (found.empty()) return {};
  std::string text =
      "\n" + paragraph(fmt::format("No stack was named. Plans 1 to {} on the {} that are fitted to "
                                   "runs and can run one of them, before traffic shares links:",
                                   report.best.size(), found.stacks.size()),
                       2, options);
  for (std::size_t i = 0; i < report.best.size(); ++i) {
    std::vector<std::string_view> won;
    for (const PlansOnStack& each : found.stacks) {
      if (each.best == i) won.push_back(each.software);
    }
    if (!won.empty()) {
      text += paragraph(fmt::format("plan {} is the best on {}", i + 1, fmt::join(won, ", ")), 4,
                        options);
    }
  }
  const auto worst_of = [&](std::size_t plan) {
    return fmt::format("{:.1f} %", 100 * found.worst[plan]);
  };
  text += paragraph(
      fmt::format("plan {} is the safest: it runs on {} of them, nowhere more than {} behind the "
                  "best of these plans{}; --software searches for one",
                  found.robust + 1, found.runs(found.robust), worst_of(found.robust),
                  found.robust == 0
                      ? ""
                      : fmt::format(" (plan 1 on {}, up to {})", found.runs(0), worst_of(0))),
      4, options);
  return text;
}

/// What the plans shown wait for their input.
std::string data_text(const PlanReport& report, const ReportOptions& options) {
  if (!report.query.data) return {};
  std::vector<models::DataAnswer> lanes;
  for (const RankedPlan& each : report.best) {
    lanes.push_back(*lane_of(report.query, each.candidate.placed));
  }
  const auto waits = std::ranges::count_if(
      lanes, [](const models::DataAnswer& each) { return each.wait() > Time{}; });
  const std::string words = wait_words(lanes.front());
  std::string text = words.empty() ? "Plan 1 waits for no data" : fmt::format("Plan 1 {}", words);
  text += fmt::format("; {} of the {} plans shown wait", waits, report.best.size());
  const models::Question question = question_of(report.query, report.best.front().candidate.placed);
  return "\n" + paragraph(text, 2, options) +
         paragraph(data_words(*question.data, lanes.front()), 2, options);
}

/// What the search has proven about plan 1.
std::string proof(const PlanReport& report, const ReportOptions& options) {
  const auto found = certificate_of(report.answer, report.objective);
  if (!found) return {};
  const std::string_view better = report.objective.better;
  const double gap = 100 * std::max(0.0, found->gap);
  const std::string ruled_out =
      fmt::format("{} were ruled out by lower bounds; what was not searched is listed below.",
                  report.answer.passed_over + report.answer.too_large_by_sizes);
  const std::string proven =
      found->proven ? fmt::format("Proven: no plan of the searched space is {} than plan 1. {}",
                                  better, ruled_out)
      : found->searched
          ? fmt::format(
                "Proven before traffic shares links: no plan of the searched space is {} than the "
                "best one of the search. With traffic, one that was not evaluated so may be {} "
                "than plan 1 by up to {:.1f} %. {}",
                better, better, gap, ruled_out)
          : fmt::format(
                "Not proven: another plan of the searched space may be {} by up to {:.1f} "
                "% (--gap 0 searches until none can).",
                better, gap);
  return "\n" + paragraph(proven, 2, options);
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
    const models::Estimate& estimate = each.candidate.figures();
    text += paragraph(
        fmt::format("{} · {} · {:+.1f} % · {} ({:.0f} % of measured peaks would fit)",
                    models::title_of(each.candidate.placed.plan),
                    step_part(estimate.step, report.best.front().candidate.figures().step),
                    100 * each.excess, format(estimate.memory), 100 * estimate.fit_probability),
        4, options);
  }
  return text;
}

/// The error on published runs, if a plan shown is of a kind that no stack is fitted to.
std::string sharded(const PlanReport& report, const ReportOptions& options) {
  for (const RankedPlan& each : report.best) {
    const auto note = sharded_note(each.candidate.placed.plan);
    if (note) return "\n" + paragraph(*note, 2, options);
  }
  return {};
}

/// The best plans of other kinds, and the nodes that the best one leaves idle.
std::string other_kinds(const PlanReport& report, const ReportOptions& options) {
  const Candidate& best = report.answer.fitting.front();
  const int all = report.query.cluster.nodes, idle = all - best.placed.nodes;
  std::string text;
  if (idle > 0) {
    text += paragraph(fmt::format("Plan 1 leaves {} of {} nodes idle; cost and energy are those of "
                                  "the nodes that it uses.",
                                  idle, all),
                      2, options);
  }
  for (const PlanKind& kind : named_kinds()) {
    const Candidate* other = best_of_kind(report.query, report.answer, kind);
    if (other == nullptr) continue;
    text += paragraph(
        fmt::format("Best {}: {} · {}, {:+.1f} %", kind.name, models::title_of(other->placed.plan),
                    step_part(other->figures().step, best.figures().step),
                    100 * excess_over(best, *other, report.objective)),
        2, options);
  }
  return text.empty() ? text : "\n" + text;
}

std::string reasons(const PlanReport& report, const ReportOptions& options) {
  if (report.best.size() < 2) return {};
  std::string text = heading(
      on_parts(report) ? "Why the others are slower than plan 1, in time of equally many GPUs"
                       : "Why the others are slower than plan 1",
      options);
  for (std::size_t i = 1; i < report.best.size(); ++i) {
    const bool tie = report.best[i].excess == 0;
    const bool larger =
        report.best[i].candidate.estimate.memory > report.best.front().candidate.estimate.memory;
    const char* same = larger ? "same step time, more memory" : "same step time, more FLOPs";
    text += fmt::format("  {:>3}  {}\n", i + 1, tie ? same : why(report.best[i]));
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

/// The plans of the Pareto front, and what each costs in the other objective.
std::string front_text(const PlanReport& report, const ReportOptions& options) {
  if (report.against == nullptr) return {};
  const auto front = front_of(report.answer, report.objective, *report.against);
  std::string text = heading(
      fmt::format("Pareto front: {} against {}", report.objective.name, report.against->name),
      options);
  TextTable table{{"step",
                   "memory",
                   {std::string{report.objective.heading}, TextTable::Align::right},
                   "<plan"}};
  const Time unit =
      report.answer.fitting.empty() ? Time{} : report.answer.fitting.front().estimate.step;
  for (const Candidate* each : front) {
    table.add({step_part(each->estimate.step, unit), format(each->estimate.memory),
               report.objective.cell(each->estimate),
               models::title_of(each->placed.plan) +
                   (each->placed.nodes == report.query.cluster.nodes
                        ? ""
                        : fmt::format(" · {} nodes", each->placed.nodes))});
  }
  return text + table.text(options.colour);
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
            paragraph(reason_of(report.query, report.answer), 2, options) +
            (report.advice.empty() ? "" : paragraph(text_of(report.advice), 2, options));
  } else {
    text += table(report, options) + data_text(report, options) + proof(report, options) +
            ties(report, options) + stacks_text(report, options) + best_of_many(report, options) +
            other_kinds(report, options) + tight(report, options) + sharded(report, options) +
            front_text(report, options) + reasons(report, options) + equals(report, options) +
            next(report, options);
  }
  return text + tried_text(report, options) + assumed_section(report.assumptions, options);
}

}  // namespace orrery::scenarios

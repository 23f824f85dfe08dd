// orrery simulate: one training step, predicted.

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "models/evaluation/verify.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/question_flags.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/command/terminal/trace_output.hpp"
#include "scenarios/page/step_document.hpp"
#include "scenarios/question/plan_request.hpp"
#include "scenarios/report/result.hpp"
#include "scenarios/search/query.hpp"
#include "scenarios/whatif/measured_step.hpp"
#include "scenarios/whatif/sensitivity.hpp"
#include "scenarios/whole_run/whole_run.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct SimulateFlags {
  QuestionFlags question;
  bool json = false;
  bool explain = false;
  bool timing = false;
  bool timeline = false;
  bool verify = false;
  bool sensitivity = false;
  std::optional<std::string> svg, versus;
  std::optional<std::string> trace, trace_detail, tokens, headroom, network, measured;
  std::string trace_format = "chrome";
};

TraceDetail detail_of(const SimulateFlags& flags) {
  if (!flags.trace_detail || *flags.trace_detail == "instructions") {
    return TraceDetail::instructions;
  }
  if (*flags.trace_detail == "operations") return TraceDetail::operations;
  throw InputError{"--trace-detail", fmt::format("expected instructions or operations, found '{}'",
                                                 *flags.trace_detail)};
}

/// Evaluates the step again on the event engine if --verify was given.
std::optional<models::Verification> verified(const SimulateFlags& flags,
                                             const models::Prediction& prediction) {
  if (!flags.verify) return std::nullopt;
  if (prediction.network.evaluation != "static") {
    throw InputError{"--verify", "needs statically priced collectives; use --network static"};
  }
  return models::verify(prediction.priced, prediction.times);
}

std::string text_of(const models::Verification& verification) {
  const auto events = static_cast<double>(verification.events);
  return fmt::format(
      "\nVerified: {} events simulated individually end at the same picosecond\n  {:.3g} ms, "
      "{:.0f} ns each\n",
      verification.events, verification.seconds * 1e3, verification.seconds * 1e9 / events);
}

/// Writes --trace in the form of --trace-format. Operations are what analysers of kernels look at,
/// so a kineto trace has them unless --trace-detail says otherwise.
void write_asked_trace(const SimulateFlags& flags, const models::Question& question,
                       const models::Prediction& prediction, TraceDetail detail) {
  if (*value_of(trace_format_words, flags.trace_format) == TraceFormat::chrome) {
    return save_trace(marked_trace_of(question, prediction, detail), *flags.trace);
  }
  if (*flags.trace == "-") {
    throw InputError{"--trace", "'-' takes a Chrome trace; expected a folder for kineto files"};
  }
  if (!flags.trace_detail) detail = TraceDetail::operations;
  say_written(write_kineto(marked_trace_of(question, prediction, detail), question, prediction,
                           *flags.trace));
}

/// A table of what-ifs, which has no place for the details of one step.
int simulate_variants(const SimulateFlags& flags, const Scenario& base,
                      const std::vector<ValueList>& lists) {
  const std::pair<bool, const char*> details[] = {
      {flags.explain, "--explain"},         {flags.timing, "--timing"},
      {flags.timeline, "--timeline"},       {flags.verify, "--verify"},
      {flags.sensitivity, "--sensitivity"}, {flags.versus.has_value(), "--versus"},
      {flags.trace.has_value(), "--trace"}, {flags.measured.has_value(), "--measured"}};
  for (const auto& [given, flag] : details) {
    if (!given) continue;
    throw InputError{flag, fmt::format("is of one step, and --set {} lists {} values",
                                       lists.front().pointer, lists.front().values.size())};
  }
  WhatIfRequest request{.headroom = {}, .tokens = base.tokens()};
  if (flags.headroom) request.headroom = read_headroom_flag(flags.headroom);
  if (flags.tokens) request.tokens = read_tokens_flag(*flags.tokens);
  const InterruptGuard guard;
  const WhatIfTable table =
      predict_variants(base, lists, request, {.progress = watched_progress("variants")});
  if (flags.json)
    print_document(to_json(table));
  else
    fmt::print("{}", text_of(table, terminal().colour));
  if (table.stopped) return InterruptGuard::exit_code();
  for (const WhatIf& row : table.rows) {
    if (row.refused.empty() && row.figures.fit != models::Fit::no) return exit_done;
  }
  return exit_answer_is_no;
}

/// The scenario with another mode of its network; phases that it asks for stay.
Scenario in_mode(const Scenario& scenario, const std::string& mode) {
  const auto network = scenario.json().find("network");
  const bool object = network != scenario.json().end() && network->is_object();
  return scenario.replace({{object ? "/network/mode" : "/network", mode}});
}

/// Few runs are enough for whole days.
std::string whole_run_line(const Scenario& scenario, double tokens) {
  constexpr std::size_t runs = 400;
  return in_one_line(whole_run_of(scenario, tokens, runs));
}

/// Whether nothing says how the model is cut, nor which site or year decides it.
bool states_no_plan(const QuestionFlags& question) {
  const bool changes_plan = std::ranges::any_of(
      question.changes, [](const auto& change) { return change.starts_with("/plan"); });
  return !question.scenario && !question.parts.plan && !changes_plan && !question.site &&
         !question.parts.year;
}

/// The same scenario with the best plan of `orrery plan` for the default batch; as it is if no plan
/// fits.
Scenario with_best_plan(const Scenario& scenario, const ScenarioParts& parts) {
  const models::Question question = scenario.question();
  PlanRequest request{.model = parts.model.value_or(""),
                      .cluster = parts.cluster.value_or(""),
                      .software = parts.software,
                      .global_batch = question.plan.batch.global,
                      .seq_len = question.plan.batch.seq_len,
                      .top = 1,
                      .network = models::NetworkMode::fixed};
  if (scenario.json().contains("data")) request.data = scenario.json()["data"].dump();
  if (!request.software) request.software = question.software.name;
  const InterruptGuard guard;
  PlanSearch found;
  try {
    found = search(request, watched_progress("plans"));
  } catch (const InputError&) {  // such as a profile of the user's own: the plan stays assumed
    return scenario;
  }
  if (found.best.empty()) {
    Json written = scenario.json();
    written["assumptions"].push_back(
        "/plan: not stated, and orrery plan found none that fits; one of data parallelism alone is "
        "shown");
    return Scenario::parse(written, scenario.file());
  }
  const PlacedPlan& best = found.best.front().candidate.placed;
  if (best.nodes != question.cluster.nodes) return scenario;
  Json written = scenario.json();
  written["plan"] = models::plan_from_text(models::to_text(best.plan));
  written["assumptions"].push_back(
      "/plan: not stated; the best that orrery plan finds for this batch (--plan states another)");
  return Scenario::parse(written, scenario.file());
}

/// Which numbers move the answer, if --sensitivity was given; its picture goes to --svg.
std::optional<SensitivityReport> sensitivity_asked(const SimulateFlags& flags,
                                                   const Scenario& scenario, double headroom) {
  if (!flags.sensitivity) return std::nullopt;
  const InterruptGuard guard;
  SensitivityReport report =
      sensitivity(scenario, headroom, {.progress = watched_progress("numbers")});
  if (flags.svg && !report.stopped) write_durably(*flags.svg, picture_of(report));
  return report;
}

/// What would make the slower of two plans the faster one, if --versus was given.
std::optional<CrossingReport> versus_asked(const SimulateFlags& flags, const Scenario& scenario,
                                           double headroom) {
  if (!flags.versus) return std::nullopt;
  const ScenarioParts other{.plan = flags.versus};
  const Scenario versus = Scenario::load(scenario.json().dump(), other);
  const InterruptGuard guard;
  return crossings(scenario, versus, headroom, {.progress = watched_progress("numbers")});
}

int simulate(const SimulateFlags& flags) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const TraceDetail detail = detail_of(flags);
  if (flags.svg && !flags.sensitivity) {
    throw InputError{"--svg", "is the picture of --sensitivity; state that, too"};
  }
  std::FILE* const answer = answer_stream(flags.trace, flags.json);
  auto [scenario, lists] = flags.question.load_with_lists();
  if (flags.network) scenario = in_mode(scenario, *flags.network);
  if (!lists.empty()) return simulate_variants(flags, scenario, lists);
  if (states_no_plan(flags.question)) {
    scenario = with_best_plan(scenario, flags.question.parts);
  }
  models::Question question = scenario.question();
  question.headroom = read_headroom_flag(flags.headroom);
  const std::optional<double> tokens =
      flags.tokens ? read_tokens_flag(*flags.tokens) : scenario.tokens();
  const double load = std::chrono::duration<double>(Clock::now() - begin).count();
  const models::Prediction prediction = models::predict(question);
  const auto verification = verified(flags, prediction);
  std::optional<ExplainedStep> measured;
  if (flags.measured) {
    measured =
        explain_measured(scenario, question, prediction, read_measured_flag(*flags.measured));
  }
  const auto sensitive = sensitivity_asked(flags, scenario, question.headroom);
  const auto versus = versus_asked(flags, scenario, question.headroom);
  if (flags.trace) write_asked_trace(flags, question, prediction, detail);
  if (flags.json) {
    Json json = heading_of(scenario.name(), question);
    json.update(to_json(question, prediction, tokens));
    if (flags.timeline) json["timeline"] = timeline_json(prediction);
    if (flags.timing) json["wall_time_s"] = wall_time_json(prediction, load);
    if (measured) json["measured"] = to_json(*measured);
    if (sensitive) json["sensitivity"] = to_json(*sensitive);
    if (versus) json["versus"] = to_json(*versus);
    if (verification) json["verified"] = {{"events", verification->events}};
    print_document(json);
  } else {
    const Terminal shown = terminal();
    fmt::print(answer, "{}",
               report(question, prediction,
                      {.explain = flags.explain,
                       .tokens = tokens,
                       .published = scenario.published(),
                       .whole_run = flags.tokens ? whole_run_line(scenario, *tokens) : "",
                       .width = shown.width,
                       .colour = shown.colour}));
    if (measured) fmt::print(answer, "{}", text_of(*measured, shown.colour));
    if (sensitive) fmt::print(answer, "{}", text_of(*sensitive, shown.colour));
    if (versus) fmt::print(answer, "{}", text_of(*versus, shown.colour));
    if (verification) fmt::print(answer, "{}", text_of(*verification));
  }
  const bool stopped = (sensitive && sensitive->stopped) || (versus && versus->stopped);
  if (stopped) return InterruptGuard::exit_code();
  return prediction.fit == models::Fit::no ? exit_answer_is_no : exit_done;
}

}  // namespace

void add_simulate(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand("simulate", "Predict one training step");
  const auto flags = std::make_shared<SimulateFlags>();
  flags->question.add_to(command);
  command.add_flag("--json", flags->json, "One JSON document instead of the report");
  command.add_flag("--timing", flags->timing, "In the JSON, how long the answer took");
  command.add_flag("--timeline", flags->timeline,
                   "In the JSON, the timeline and memory that orrery report draws");
  command.add_flag("--verify", flags->verify,
                   "Also run the step on the event engine and check that all times are equal");
  command.add_option(
      "--trace", flags->trace,
      "File for the step as a Chrome trace (Perfetto); packed if it ends in .gz; - for "
      "standard output");
  command.add_option("--trace-detail", flags->trace_detail, "instructions (default) or operations");
  command
      .add_option("--trace-format", flags->trace_format,
                  "chrome (default), with arrows and counters, or kineto: a folder with a file for "
                  "each rank as PyTorch's profiler writes them, for Holistic Trace Analysis")
      ->check(CLI::IsMember({"chrome", "kineto"}));
  command.add_flag("--explain", flags->explain,
                   "The slowest rank in detail: utilisation, kernels, collectives and memory");
  command.add_option(
      "--network", flags->network,
      "events: collectives and transfers share links; static: each takes the time of its "
      "cost model; auto (default): events where a placement, perturbation or second job "
      "is stated");
  command.add_option("--measured", flags->measured,
                     "The step time that you measured, such as 1.7s: which default, switch of the "
                     "stack or slow part would explain it");
  command.add_flag("--sensitivity", flags->sensitivity,
                   "Which numbers of the scenario move the answer: percent of step, dollars, "
                   "energy and memory per percent of each");
  command.add_option("--versus", flags->versus,
                     "Another plan, such as tensor=8,pipeline=4 (the fields that differ), or a "
                     "path: which number would have to change, and how much, for the slower one of "
                     "the two to win");
  command.add_option("--svg", flags->svg,
                     "File for the picture of --sensitivity: 10 % less and more of each number");
  command.add_option("--headroom", flags->headroom, headroom_help);
  command.add_option("--tokens", flags->tokens,
                     "Tokens to train on, such as 300B: adds days and cost of the whole training");
  command.callback([flags, &exit_code] { exit_code = simulate(*flags); });
}

}  // namespace orrery::scenarios

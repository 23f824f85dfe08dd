// orrery train: a whole training, from its first to its last step.

#include <fmt/format.h>

#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/question_flags.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/scenario/limits.hpp"
#include "scenarios/whole_run/loop_run.hpp"
#include "scenarios/whole_run/whole_run.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct TrainFlags {
  QuestionFlags question;
  WholeRunRequest request;
  std::optional<std::string> svg, confidence;
  bool json = false;
};

/// A loop of steps, such as a simulation of molecules, has no tokens and no failures to draw.
void refuse_for_loops(const TrainFlags& flags, const Scenario& scenario) {
  const WholeRunRequest& asked = flags.request;
  const std::pair<bool, const char*> given[] = {
      {asked.tokens.has_value(), "--tokens"},     {asked.budget.has_value(), "--budget"},
      {asked.failures.has_value(), "--failures"}, {asked.all_in, "--all-in"},
      {flags.svg.has_value(), "--svg"},           {scenario.json().contains("run"), "/run"}};
  for (const auto& [is_given, flag] : given) {
    if (is_given) throw InputError{flag, "is of a training; this model is a loop of steps"};
  }
}

int train(TrainFlags& flags) {
  flags.request.scenario = flags.question.request();
  if (flags.confidence) flags.request.confidence = read_confidence_flag(*flags.confidence);
  const auto days = flags.request.deadline ? parse_days(*flags.request.deadline) : std::nullopt;
  if (flags.request.deadline && !days) {
    throw InputError{"--deadline",
                     fmt::format("expected {}, found \"{}\"", days_form, *flags.request.deadline)};
  }
  const auto hours = days ? std::optional{*days * 24} : std::nullopt;
  const Scenario scenario = flags.question.load();
  if (const auto loop = loop_run(scenario, hours)) {
    refuse_for_loops(flags, scenario);
    const Terminal shown = terminal();
    if (flags.json)
      print_document(to_json(*loop));
    else
      fmt::print("{}", text_of(*loop, shown.colour));
    return loop->meets() ? exit_done : exit_answer_is_no;
  }
  const InterruptGuard guard;
  const WholeRunReport report = train(flags.request, watched_progress("simulated runs"));
  if (report.stopped) return InterruptGuard::exit_code();
  if (flags.svg) write_durably(*flags.svg, picture_of(report));
  const Terminal shown = terminal();
  if (flags.json)
    print_document(to_json(report));
  else
    fmt::print("{}", text_of(report, shown.width, shown.colour));
  return report.meets() ? exit_done : exit_answer_is_no;
}

}  // namespace

void add_train(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "train", "Predict a whole training: days, dollars and energy as ranges");
  const auto flags = std::make_shared<TrainFlags>();
  WholeRunRequest& request = flags->request;
  flags->question.add_to(command);
  command.add_option("--tokens", request.tokens,
                     "Tokens to train on, such as 15.6T (the scenario's)");
  command.add_option("--deadline", request.deadline, "Longest time, such as 90d or 8w");
  command.add_option("--budget", request.budget, "Largest cost, such as 5M");
  command.add_option("--confidence", flags->confidence,
                     "Probability with which deadline and budget must be kept, such as 0.9 or 90% "
                     "(0.8)");
  command.add_flag("--all-in", request.all_in,
                   "As published runs: their hours over those of the steps alone, instead of the "
                   "range of the step");
  command.add_option("--failures", request.failures,
                     "Failures that you counted on this cluster, such as 14/30d");
  command.add_option("--samples", request.samples, "Runs to simulate (2000)")
      ->check(CLI::Range(std::size_t{20}, std::size_t{1'000'000}));
  command.add_option("--seed", request.seed, "Seed of the simulated runs (1)");
  command.add_option("--svg", flags->svg, "File for the picture of the run");
  command.add_option("--threads", request.threads, "Threads (all of the machine)")
      ->check(CLI::Range(1U, most_threads));
  command.add_flag("--json", flags->json, "One JSON document instead of the report");
  command.footer(
      "Failures, restarts, checkpoints, spares, spot and ownership are stated in /run:\n"
      "  orrery train llama3-405b-16384-h100 --deadline 90d --failures 419/54d \\\n"
      "    --set /run/spares='{\"nodes\": 32}' --set /run/checkpoint/every='5 min'");
  command.callback([flags, &exit_code] { exit_code = train(*flags); });
}

}  // namespace orrery::scenarios

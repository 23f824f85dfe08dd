// orrery contention: what the network costs a step, by placement and next to other jobs.

#include <fmt/format.h>

#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/question_flags.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/contention/contention.hpp"

namespace orrery::scenarios {

namespace {

struct ContentionFlags {
  QuestionFlags question;
  std::optional<std::string> page;
  unsigned threads = 0;
  models::LaunchPhases phases = ContentionRequest{}.phases;
  std::optional<std::string> delay;
  bool json = false;
};

int contention(const ContentionFlags& flags) {
  ContentionRequest request{
      .scenario = flags.question.request(), .threads = flags.threads, .phases = flags.phases};
  if (flags.delay) {
    const Document delay = Document::from(Json(*flags.delay), "--launch-delay");
    request.phases.delay = delay.root().as<Time>();
  }
  const InterruptGuard guard;
  const ContentionReport report = contend(request, watched_progress("cases"));
  if (flags.page) write_page(*flags.page, report);
  if (flags.json)
    print_document(to_json(report));
  else
    fmt::print("{}", text_of(report, terminal().colour));
  if (report.stopped) return InterruptGuard::exit_code();
  for (const ContentionCase& each : report.cases) {
    if (each.refused.empty()) return exit_done;
  }
  return exit_answer_is_no;
}

}  // namespace

void add_contention(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "contention", "What the network costs a step: placements, a second job, a slow NIC");
  const auto flags = std::make_shared<ContentionFlags>();
  flags->question.add_to(command);
  command.add_option("--page", flags->page, "Folder for a page with a picture");
  command
      .add_option("--phases", flags->phases.count,
                  "Samples with random launch delays, whose mean is shown (32)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--launch-delay", flags->delay, "Mean of these delays (1 ms)");
  command.add_option("--seed", flags->phases.seed, "Seed of these delays (1)");
  command.add_option("--threads", flags->threads, "Threads (all of the machine)")
      ->check(CLI::Range(1U, most_threads));
  command.add_flag("--json", flags->json, "One JSON document instead of the table");
  command.callback([flags, &exit_code] { exit_code = contention(*flags); });
}

}  // namespace orrery::scenarios

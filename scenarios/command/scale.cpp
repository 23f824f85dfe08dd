// orrery scale: one scenario on more and more GPUs.

#include <fmt/format.h>

#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/question_flags.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/scaling/scaling.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct ScaleFlags {
  QuestionFlags question;
  std::string gpus, scaling = "weak";
  std::optional<std::string> svg;
  unsigned threads = 0;
  bool json = false;
};

int scale(const ScaleFlags& flags) {
  const ScalingRequest request{.scenario = flags.question.request(),
                               .gpus = parse_gpu_counts(flags.gpus),
                               .scaling = scaling_named(flags.scaling),
                               .threads = flags.threads};
  const InterruptGuard guard;
  const ScalingReport report = scale(request, watched_progress("points"));
  if (flags.svg) write_durably(*flags.svg, picture_of(report));
  if (flags.json)
    print_document(to_json(report));
  else
    fmt::print("{}", text_of(report, terminal().colour));
  if (report.stopped) return InterruptGuard::exit_code();
  for (const ScalingPoint& each : report.points) {
    if (each.refused.empty() && each.fits) return exit_done;
  }
  return exit_answer_is_no;
}

}  // namespace

void add_scale(CLI::App& application, int& exit_code) {
  CLI::App& command =
      *application.add_subcommand("scale", "Predict one scenario on more and more GPUs");
  const auto flags = std::make_shared<ScaleFlags>();
  flags->question.add_to(command);
  command
      .add_option("--gpus", flags->gpus,
                  "Numbers of GPUs: 64:16384:x2 (times 2), 64:512:64 (in steps) or 64,96,128")
      ->required();
  command.add_option(
      "--scaling", flags->scaling,
      "weak: sequences per GPU stay constant (default); strong: the global batch stays constant");
  command.add_option("--svg", flags->svg, "File for the picture: step time and efficiency");
  command.add_option("--threads", flags->threads, "Threads (all of the machine)")
      ->check(CLI::Range(1U, most_threads));
  command.add_flag("--json", flags->json, "One JSON document instead of the table");
  command.callback([flags, &exit_code] { exit_code = scale(*flags); });
}

}  // namespace orrery::scenarios

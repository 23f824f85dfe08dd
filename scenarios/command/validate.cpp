// orrery validate FILE.csv: predictions against published measurements.

#include <fmt/format.h>

#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/command/terminal/repeated.hpp"
#include "scenarios/question/validation_request.hpp"

namespace orrery::scenarios {

namespace {

struct ValidateFlags {
  ValidationRequest request;
  bool json = false;
};

int validate(const ValidateFlags& flags) {
  const InterruptGuard guard;
  const ValidationReport report = validate(flags.request, watched_progress("runs"));
  if (report.stopped) return InterruptGuard::exit_code();
  if (flags.json)
    print_document(report.json);
  else
    fmt::print("{}", report.text);
  return exit_done;
}

}  // namespace

void add_validate(CLI::App& application, int& exit_code) {
  const auto flags = std::make_shared<ValidateFlags>();
  ValidationRequest& request = flags->request;
  CLI::App* command =
      application.add_subcommand("validate", "Compare predictions with measurements");
  command
      ->add_option("file", request.file,
                   "Measured runs, kernels, collectives, storage, energies or whole trainings, CSV")
      ->required();
  command->add_flag("--json", flags->json, "One JSON document on stdout");
  repeated(*command->add_option("--by", request.by,
                                "Column to group errors by; repeat the flag for more (software)"));
  command->add_option("--worst", request.worst, "How many of the worst runs to list (10)");
  repeated(*command->add_option("--software", request.software,
                                "Profile that replaces the shipped one for the stacks that it "
                                "names; repeat the flag for more"));
  command->add_option(
      "--leave-out", request.leave_out,
      "Training runs: leave out every source, software, site, year, gpu or value of another column "
      "in turn (model,gpu: of two columns together), and predict it from the rest");
  command
      ->add_option("--own", request.own,
                   "With --leave-out: fit to that many runs of each group, as to a user's own, and "
                   "score its others")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  command->add_flag("--in-sample", request.in_sample,
                    "Kernels and collectives: score each row with a fit that has seen it");
  command->add_option(
      "--page", request.page,
      "Folder for accuracy.md and accuracy.svg, errors by stack, GPU, size and strategy");
  command->add_option("--record", request.record,
                      "File for the record of prediction errors that the command is built with");
  command->add_option("--threads", request.threads, "Threads (all of the machine)")
      ->check(CLI::Range(1U, most_threads));
  command->callback([flags, &exit_code] { exit_code = validate(*flags); });
}

}  // namespace orrery::scenarios

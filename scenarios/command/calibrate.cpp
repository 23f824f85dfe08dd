// orrery calibrate: measure this machine with the executor's own kernels, or import others' logs,
// into a profile that --cluster takes.

#include "calibrate/calibrate.hpp"

#include <fmt/format.h>

#include <memory>

#include "calibrate/import/import_logs.hpp"
#include "executor/errors.hpp"
#include "executor/module/gpu_vendors.hpp"
#include "hardware/catalogue.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/ending.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/command/terminal/whole_number.hpp"
#include "scenarios/exchange/sections.hpp"
#include "scenarios/question/one_gpu_scenarios.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// The shipped plans that this machine is compared on.
std::vector<calibrate::PlanToMeasure> plans_of_one_gpu() {
  std::vector<calibrate::PlanToMeasure> plans;
  for (const NamedQuestion& each : one_gpu_scenarios()) {
    plans.push_back({each.name, each.question.model, each.question.plan});
  }
  return plans;
}

struct CalibrateFlags {
  calibrate::CalibrateRequest asked;
  calibrate::ImportRequest imported;
  std::optional<std::string> cluster;
  std::string budget = "60 s";
  bool json = false;
};

Time budget_of(const std::string& text) {
  const auto budget = parse_quantity<Time>(text);
  if (!budget || *budget < 1_s) {
    throw InputError{"--budget", fmt::format("expected a time of 1 s or more, found '{}'", text)};
  }
  return *budget;
}

Json expanded_cluster(const std::string& text) {
  return is_path(text) ? hardware::expand_cluster(Document::load(text).root())
                       : hardware::Catalogue::cluster(text);
}

/// What is missing from an answer without a profile.
std::string no_profile(const calibrate::CalibrateRequest& asked, const calibrate::Findings& found) {
  if (asked.cluster) return "the storage was not measured, so there is no profile";
  return fmt::format(
      "no GEMM was measured, so there is no profile: {} points failed, {} were discarded as "
      "disturbed, {} left out by the budget; try a longer --budget",
      found.failures.size(), found.discarded_points, found.points_left_out);
}

int measure(CalibrateFlags flags) {
  flags.asked.budget = budget_of(flags.budget);
  if (flags.cluster) flags.asked.cluster = expanded_cluster(*flags.cluster);
  flags.asked.out = flags.imported.out;
  flags.asked.plans = plans_of_one_gpu();
  const InterruptGuard guard;
  const calibrate::CalibrateAnswer answer =
      calibrate::calibrate(flags.asked, watched_progress("points"));
  for (const std::string& each : answer.findings.failures) {
    fmt::print(stderr, "left out: {}\n", printable(each));
  }
  if (!answer.profile) {
    fmt::print(stderr, "{}\n", no_profile(flags.asked, answer.findings));
    return InterruptGuard::interrupted() ? InterruptGuard::exit_code()
                                         : static_cast<int>(executor::Exit::local_failure);
  }
  if (flags.json)
    print_document(to_json(flags.asked, answer));
  else
    fmt::print("{}", table_of(answer));
  return InterruptGuard::exit_code();
}

int import(CalibrateFlags flags) {
  if (flags.cluster) {
    flags.imported.cluster_name = *flags.cluster;
    flags.imported.cluster = expanded_cluster(*flags.cluster);
  }
  const calibrate::ImportAnswer answer = calibrate::import_logs(flags.imported);
  if (flags.json)
    print_document(to_json(flags.imported, answer));
  else
    fmt::print("{}", table_of(flags.imported, answer));
  return exit_done;
}

}  // namespace

void add_calibrate(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "calibrate", "Measure this machine, or import others' logs, into a cluster profile");
  const auto flags = std::make_shared<CalibrateFlags>();
  calibrate::CalibrateRequest& asked = flags->asked;
  command.add_option("--import", flags->imported.logs,
                     "Logs: nccl-tests, NCCL, OSU, perftest, fio, BabelStream, STREAM, Kineto");
  command.add_option("--backend", asked.backend,
                     "What to measure: " + executor::backend_words() + "; cpu by default");
  command.add_option("--budget", flags->budget, "Time for measuring (60s)");
  command.add_option("--ranks", asked.ranks, "Numbers of concurrent ranks to measure with (1,2)")
      ->delimiter(',');
  command.add_option("--fabric", asked.fabric, "How ranks communicate: tcp (default), threads");
  command.add_option("--cluster", flags->cluster,
                     "With --import: the cluster that was measured; with --storage: the cluster "
                     "that gets the storage's and decoders' rates, and nothing else is measured");
  command.add_option("--storage", asked.storage,
                     "Folder on the storage to measure, such as that of the data set (the folder "
                     "of --out; with --backend cuda none)");
  command.add_option("--widest", asked.widest,
                     "With --backend cuda: hidden size of the widest model measured (16384)");
  command.add_option("--out", flags->imported.out, "Profile to write; its samples go next to it");
  command.add_option("--seed", asked.seed, "Random seed for the order of points (1)")
      ->check(wrong_whole_number);
  command.add_flag("--json", flags->json, "One JSON document on stdout");
  command.callback([flags, &exit_code] {
    if (!flags->imported.logs.empty()) {
      exit_code = import(*flags);
      return;
    }
    try {
      exit_code = measure(*flags);
    } catch (const executor::RunFailure& failure) {
      exit_code =
          report_failure(failure_of(static_cast<int>(failure.code()), failure.what()), flags->json);
    }
  });
}

}  // namespace orrery::scenarios

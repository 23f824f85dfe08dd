// orrery compare PREDICTED MEASURED: two traces of one step, joined by operation.
// orrery compare SCENARIO TRACE...: a real run's traces or logs next to its prediction.

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/question_flags.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/comparison/comparison.hpp"
#include "scenarios/runback/run_comparison.hpp"
#include "sim/input/unpacked_file.hpp"
#include "sim/trace/chrome.hpp"

namespace orrery::scenarios {

namespace {

struct CompareFlags {
  QuestionFlags question;
  std::vector<std::string> files;
  std::string step, run;
  std::optional<std::size_t> skip;
  std::optional<std::string> fit;
  bool json = false;

  bool states_question() const {
    const ScenarioParts& parts = question.parts;
    return parts.model || parts.cluster || parts.plan || parts.software || parts.year ||
           question.site || !question.changes.empty();
  }
  bool states_run() const { return !step.empty() || !run.empty() || skip || fit; }
};

/// The beginning of a file; empty of what is none. Pipes are left alone: they are read once.
std::string beginning_of_file(const std::string& file) {
  constexpr std::size_t enough = std::size_t{1} << 16;
  std::error_code unknown;
  return std::filesystem::is_regular_file(file, unknown) ? first_bytes(file, enough) : "";
}

bool is_pipe_or_device(const std::string& file) {
  std::error_code unknown;
  return std::filesystem::exists(file, unknown) && !std::filesystem::is_directory(file, unknown) &&
         !std::filesystem::is_regular_file(file, unknown);
}

/// Whether a trace was written by PyTorch rather than by Orrery, whose traces have neither.
bool is_of_pytorch(std::string_view beginning) {
  return is_profile(beginning) &&
         (beginning.find("\"schemaVersion\"") != std::string_view::npos ||
          beginning.find("\"deviceProperties\"") != std::string_view::npos ||
          beginning.find("\"distributedInfo\"") != std::string_view::npos);
}

/// Whether two traces of Orrery's are given, as PREDICTED and MEASURED.
bool joins_two_traces(const CompareFlags& flags) {
  const std::vector<std::string>& files = flags.files;
  if (files.size() != 2 || flags.states_question() || flags.states_run()) return false;
  if (is_pipe_or_device(files.front())) return true;
  const std::string first = beginning_of_file(files.front());
  if (!is_profile(first) || is_of_pytorch(first)) return false;
  if (is_of_pytorch(beginning_of_file(files.back()))) {
    throw InputError{files.back(),
                     "is a trace of PyTorch's profiler, which has no operations of Orrery's; "
                     "compare it with the scenario: orrery compare SCENARIO TRACE..."};
  }
  return true;
}

int compare_with_scenario(CompareFlags flags) {
  std::vector<std::string> files = flags.files;
  const bool parts_alone = flags.question.parts.model && flags.question.parts.cluster;
  const bool first_is_run = is_profile(beginning_of_file(files.front())) ||
                            (parts_alone && std::filesystem::exists(files.front()));
  if (!parts_alone && first_is_run) {
    throw InputError{files.front(),
                     "is a trace of PyTorch's profiler; state the scenario first: orrery compare "
                     "SCENARIO TRACE..., or its parts: --model M --cluster C --plan P"};
  }
  if (!first_is_run) {
    flags.question.scenario = files.front();
    files.erase(files.begin());
  }
  if (files.empty()) {
    throw InputError{"TRACE", "expected traces or logs of the run after the scenario"};
  }
  const Scenario scenario = flags.question.load();
  const RunComparison found =
      compare_run(scenario, {.files = files,
                             .profile = {.step_mark = flags.step, .skip = flags.skip},
                             .fit_out = flags.fit,
                             .run = flags.run});
  const Terminal shown = terminal();
  if (flags.json) {
    print_document(to_json(found));
    return exit_done;
  }
  fmt::print("{}", text_of(found, shown.width, shown.colour));
  if (flags.fit) {
    fmt::print(
        "  wrote {0}/software.json and {0}/cluster.json: orrery simulate SCENARIO --software "
        "{0}/software.json --cluster {0}/cluster.json\n",
        *flags.fit);
  }
  return exit_done;
}

}  // namespace

void add_compare(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "compare",
      "Compare a real run's traces or logs with its prediction, or two traces by operation");
  const auto flags = std::make_shared<CompareFlags>();
  command
      .add_option("files", flags->files,
                  "SCENARIO, then what the run left: traces of PyTorch's profiler (.json, "
                  ".json.gz), of one or "
                  "several ranks; or logs of its steps (Megatron-LM, torchtitan, :::MLLOG, MLflow, "
                  "CSV). Or "
                  "PREDICTED MEASURED: traces of orrery simulate and orrery execute")
      ->required();
  flags->question.add_flags_to(command);
  command.add_option("--step", flags->step,
                     "In traces: the annotation that begins each step, where there is no "
                     "ProfilerStep#");
  command.add_option("--skip", flags->skip, "Steps to leave out at the beginning, as warm-up");
  command.add_option("--run", flags->run,
                     "Of a store or experiment of MLflow with several runs: the name or id of one");
  command.add_option("--fit", flags->fit,
                     "Folder for the software profile and the cluster that this run suggests: "
                     "software.json and cluster.json, as --software and --cluster take them");
  command.add_flag("--json", flags->json, "One JSON document instead of the tables");
  command.callback([flags, &exit_code] {
    if (!joins_two_traces(*flags)) {
      exit_code = compare_with_scenario(*flags);
      return;
    }
    const std::vector<std::string>& files = flags->files;
    const Comparison comparison =
        compare(read_chrome(files.front()), read_chrome(files.back()), files.back());
    if (flags->json)
      print_document(to_json(comparison));
    else
      fmt::print("{}", comparison_report(comparison, terminal().colour));
    exit_code = exit_done;
  });
}

}  // namespace orrery::scenarios

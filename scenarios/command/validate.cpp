// `orrery validate FILE.csv`: what was published, predicted and measured. The header says what the
// file holds: training runs, or kernels and collectives (validate_curves.cpp).

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/curves.hpp"
#include "scenarios/command/repeated.hpp"
#include "scenarios/validation/page.hpp"
#include "scenarios/validation/validation.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct ValidateFlags {
  std::string file;
  std::vector<std::string> by;
  std::vector<std::string> software;
  std::size_t worst = 10;
  std::string page, record;
  unsigned threads = 0;
  bool json = false;
  bool in_sample = false;
};

std::vector<Grouping> groupings_of(const orrery::Table& table,
                                   const std::vector<std::string>& columns) {
  std::vector<Grouping> groupings;
  for (const std::string& column : columns) {
    if (!table.has(column)) {
      throw InputError{"--by", "unknown column '" + column + "' in " + table.name()};
    }
    groupings.push_back({column, cells_of(table, column)});
  }
  return groupings;
}

/// Rewrites one line on a terminal; silent elsewhere.
void show_progress(std::size_t done, std::size_t of) {
  constexpr std::size_t stride = 25;
  if (done % stride == 0 || done == of) fmt::print(stderr, "\r{} of {} runs", done, of);
  if (done == of) fmt::print(stderr, "\r{:40}\r", "");
}

void write_page(const ValidateFlags& flags, const std::vector<MeasuredRun>& runs,
                const std::vector<RunResult>& results, const Scores& scores) {
  make_folder(flags.page);
  const std::filesystem::path folder{flags.page};
  write_durably((folder / "accuracy.md").string(),
                page_of(runs, results, scores, flags.file, "accuracy.svg"));
  write_durably((folder / "accuracy.svg").string(), picture_of(runs, results));
}

/// How far off these predictions were, for later ones to say.
void write_record(const ValidateFlags& flags, const std::vector<MeasuredRun>& runs,
                  const std::vector<RunResult>& results, const Scores& scores) {
  ValidationOptions options;
  options.threads = flags.threads;
  options.profiles.push_back(generic_for_all(runs));
  const Scores unfitted = scores_of(runs, validate(runs, options), {});
  const std::string source =
      fmt::format("orrery validate {} --record {}", flags.file, flags.record);
  write_durably(flags.record, record_of(results, scores, unfitted, source).dump(2) + "\n");
}

void run_validate(const ValidateFlags& flags) {
  const orrery::Table table = orrery::Table::load(flags.file);
  if (holds_curves(table)) {
    if (!flags.page.empty()) throw InputError{"--page", "expected a file of training runs"};
    if (!flags.record.empty()) throw InputError{"--record", "expected a file of training runs"};
    const CurveFlags curve{.worst = flags.worst, .json = flags.json, .in_sample = flags.in_sample};
    fmt::print("{}", validate_curves(table, groupings_of(table, flags.by), curve));
    return;
  }
  const std::vector<MeasuredRun> runs = read_runs(table);
  const std::vector<std::string> stacks{"software"};
  const std::vector<Grouping> groupings = groupings_of(table, flags.by.empty() ? stacks : flags.by);
  ValidationOptions options;
  options.threads = flags.threads;
  for (const std::string& path : flags.software) {
    options.profiles.push_back(models::read_software(Document::load(path).root()));
  }
  if (isatty(fileno(stderr)) != 0) options.progress = show_progress;
  const std::vector<RunResult> results = validate(runs, options);
  const Scores scores = scores_of(runs, results, groupings);
  if (!flags.page.empty()) write_page(flags, runs, results, scores);
  if (!flags.record.empty()) write_record(flags, runs, results, scores);
  if (flags.json) {
    fmt::print("{}\n", to_json(runs, results, scores).dump(2));
  } else {
    fmt::print("{}", table_of(runs, results, scores, flags.worst));
  }
}

}  // namespace

void add_validate(CLI::App& application, int& exit_code) {
  const auto flags = std::make_shared<ValidateFlags>();
  CLI::App* command = application.add_subcommand("validate", "Predicted against measured");
  command->add_option("file", flags->file, "Measured runs, kernels or collectives, CSV")
      ->required();
  command->add_flag("--json", flags->json, "One JSON document on stdout");
  repeated(*command->add_option(
      "--by", flags->by, "Column to tell errors apart by; repeat the flag for more (software)"));
  command->add_option("--worst", flags->worst, "How many of the worst runs to list (10)");
  repeated(*command->add_option("--software", flags->software,
                                "Profile that stands before the shipped ones for the stacks it "
                                "names; repeat the flag for more"));
  command->add_flag("--in-sample", flags->in_sample,
                    "Kernels and collectives: score fits that have seen every row");
  command->add_option("--page", flags->page,
                      "Folder for accuracy.md and accuracy.svg: where predictions are right");
  command->add_option("--record", flags->record,
                      "File for how far off predictions were, as a build of Orrery takes it in");
  command->add_option("--threads", flags->threads, "Threads (all of the machine)")
      ->check(CLI::Range(1U, most_threads));
  command->callback([flags, &exit_code] {
    run_validate(*flags);
    exit_code = exit_done;
  });
}

}  // namespace orrery::scenarios

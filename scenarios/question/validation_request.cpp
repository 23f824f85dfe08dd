#include "scenarios/question/validation_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "scenarios/fitting/kernels/curve_tables.hpp"
#include "scenarios/fitting/profile/leave_out_groups.hpp"
#include "scenarios/fitting/profile/transfer.hpp"
#include "scenarios/validation/page/page.hpp"
#include "scenarios/validation/ranges.hpp"
#include "scenarios/validation/runs/energy.hpp"
#include "scenarios/validation/runs/other_simulators.hpp"
#include "scenarios/validation/runs/storage.hpp"
#include "scenarios/validation/validation.hpp"
#include "scenarios/whole_run/published.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

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

/// Columns whose groups the page leaves out in turn, if the table has them.
constexpr std::array<const char*, 6> left_out_columns{"source",        "software", "site",
                                                      "software_year", "gpu",      "model,gpu"};

std::string left_out_section(const orrery::Table& table, unsigned threads,
                             const std::vector<MeasuredRun>& runs,
                             const std::vector<RunResult>& results) {
  std::vector<std::string> columns;
  for (const char* each : left_out_columns) {
    const std::vector<std::string> together = columns_of(each);
    const bool all =
        std::ranges::all_of(together, [&](const std::string& column) { return table.has(column); });
    if (all) columns.push_back(each);
  }
  const std::vector<Transfer> transfers = transfers_of(table, columns, threads);
  return page_section_of(transfers) +
         coverage_section(measured_groups(runs, results, unseen_errors(transfers.front())));
}

void write_page(const orrery::Table& table, const ValidationRequest& request,
                const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                const Scores& scores) {
  make_folder(*request.page);
  const std::filesystem::path folder{*request.page};
  write_durably((folder / "accuracy.md").string(),
                page_of(runs, results, scores, request.file, "accuracy.svg",
                        left_out_section(table, request.threads, runs, results)));
  write_durably((folder / "accuracy.svg").string(), picture_of(runs, results));
}

/// Writes the record of prediction errors that later builds state with their predictions.
void write_record(const orrery::Table& table, const ValidationRequest& request,
                  const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                  const Scores& scores) {
  ValidationOptions options;
  options.threads = request.threads;
  options.profiles.push_back(generic_for_all(runs));
  const Scores unfitted = scores_of(runs, validate(runs, options), {});
  const UnseenErrors unseen = unseen_errors(table, request.threads);
  const std::string source =
      fmt::format("orrery validate {} --record {}", request.file, *request.record);
  const Json record = record_of(
      {.runs = runs, .results = results, .scores = scores, .unfitted = unfitted, .unseen = unseen},
      source);
  write_durably(*request.record, record.dump(2) + "\n");
}

std::size_t worst_listed(const ValidationRequest& request) {
  constexpr std::size_t usually = 10;
  return request.worst.value_or(usually);
}

ValidationReport report_on_curves(const orrery::Table& table, const ValidationRequest& request) {
  if (request.page) throw InputError{"--page", "expected a file of training runs"};
  if (request.record) throw InputError{"--record", "expected a file of training runs"};
  if (request.leave_out) throw InputError{"--leave-out", "expected a file of training runs"};
  if (!request.software.empty()) {
    throw InputError{"--software", "expected a file of training runs"};
  }
  const std::vector<Grouping> groupings = groupings_of(table, request.by);
  const CurveReport report =
      validate_curves(table, request.in_sample ? Scoring::in_sample : Scoring::unseen);
  return {.json = to_json(report, groupings),
          .text = table_of(report, groupings, worst_listed(request))};
}

/// The column that a word of --leave-out means: `year` is `software_year`.
std::string column_of(const std::string& word, const orrery::Table& table) {
  return word == "year" && !table.has(word) ? "software_year" : word;
}

/// Errors  a flag that leaving out would not follow: InputError naming it
void refuse_with_left_out(const ValidationRequest& request) {
  const auto refuse = [](const char* flag, bool given) {
    if (!given) return;
    throw InputError{flag, "not with --leave-out, which takes --own, --threads and --json alone"};
  };
  refuse("--page", request.page.has_value());
  refuse("--record", request.record.has_value());
  refuse("--by", !request.by.empty());
  refuse("--worst", request.worst.has_value());
  refuse("--software", !request.software.empty());
  refuse("--in-sample", request.in_sample);
}

/// Flags that files of whole trainings, energies and storage do not take.
void refuse_of_steps(const ValidationRequest& request) {
  const auto refuse = [](const char* flag, bool given) {
    if (given) throw InputError{flag, "expected a file of training steps"};
  };
  refuse("--page", request.page.has_value());
  refuse("--record", request.record.has_value());
  refuse("--leave-out", request.leave_out.has_value());
  refuse("--by", !request.by.empty());
  refuse("--worst", request.worst.has_value());
  refuse("--software", !request.software.empty());
  refuse("--in-sample", request.in_sample);
}

ValidationReport report_on_left_out(const orrery::Table& table, const ValidationRequest& request) {
  refuse_with_left_out(request);
  const std::vector<MeasuredRun> runs = read_runs(table);
  const Transfer transfer =
      transfers_of(table, {column_of(*request.leave_out, table)}, request.threads, request.own)
          .front();
  return {.json = to_json(runs, transfer), .text = table_of(runs, transfer)};
}

}  // namespace

ValidationReport validate(const ValidationRequest& request, const Progress& progress) {
  if (request.own > 0 && !request.leave_out) throw InputError{"--own", "expected --leave-out"};
  const orrery::Table table = orrery::Table::load(request.file);
  if (table.size() == 0) throw InputError{request.file, "has a header and no rows below it"};
  if (holds_curves(table)) return report_on_curves(table, request);
  if (holds_storage(table) || holds_energy(table) || holds_whole_runs(table)) {
    refuse_of_steps(request);
  }
  if (holds_storage(table)) {
    StorageReport report = compare_storage(table);
    return {.json = std::move(report.json), .text = std::move(report.text)};
  }
  if (holds_energy(table)) {
    EnergyReport report = compare_energy(table, {request.threads, progress});
    return {
        .json = std::move(report.json), .text = std::move(report.text), .stopped = report.stopped};
  }
  if (holds_whole_runs(table)) {
    PublishedRunsReport report = compare_whole_runs(table, {request.threads, progress});
    return {
        .json = std::move(report.json), .text = std::move(report.text), .stopped = report.stopped};
  }
  if (request.leave_out) return report_on_left_out(table, request);
  if (request.in_sample) {
    throw InputError{"--in-sample", "expected a file of kernels or collectives"};
  }
  const std::vector<MeasuredRun> runs = read_runs(table);
  const std::vector<MeasuredRun> flagged = flagged_runs(table, runs);
  const std::vector<std::string> stacks{"software"};
  const std::vector<Grouping> groupings =
      groupings_of(table, request.by.empty() ? stacks : request.by);
  ValidationOptions options;
  options.threads = request.threads;
  for (const std::string& path : request.software) {
    const Json whole = models::resolve_profile(Document::load(path).root(), {}).profile;
    options.profiles.push_back(models::read_software(Document::from(whole, path).root()));
  }
  bool stopped = false;
  options.progress = [&](std::size_t done, std::size_t of) {
    if (of == 0) return !stopped;  // no run of another simulator
    stopped = stopped || (progress && !progress(done, of));
    return !stopped;
  };
  const std::vector<RunResult> results = validate(runs, options);
  const std::vector<RunResult> with_flags =
      stopped ? std::vector<RunResult>{} : validate(flagged, options);
  if (stopped) return {.json = nullptr, .text = {}, .stopped = true};
  const Scores scores = scores_of(runs, results, groupings);
  if (request.page) write_page(table, request, runs, results, scores);
  if (request.record) write_record(table, request, runs, results, scores);
  Json json = to_json(runs, results, scores);
  json["unread_columns"] = unread_columns(table);
  const std::vector<SimulatorScores> simulators =
      scores_by_simulator(table, runs, results, with_flags);
  if (table.has("simulator")) json["by_simulator"] = to_json(simulators);
  return {.json = std::move(json),
          .text = words_of_unread(table) + table_of(runs, results, scores, worst_listed(request)) +
                  table_of(simulators)};
}

}  // namespace orrery::scenarios

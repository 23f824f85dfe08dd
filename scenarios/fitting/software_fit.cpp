#include "scenarios/fitting/software_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "scenarios/fitting/leave_out_groups.hpp"
#include "scenarios/fitting/software_fitter.hpp"
#include "scenarios/validation/validation.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

models::Software generic() {
  const Document document = Document::from(models::software_profile("generic"), "generic");
  return models::read_software(document.root());
}

/// Cross-validation: the error of each row with numbers fitted without its fold; stops early if
/// asked to.
std::vector<double> left_out_errors(SoftwareBench& bench, SoftwareFitter& fitter,
                                    const LeaveOutGroups& groups, bool& complete) {
  std::vector<double> errors(bench.size());
  for (std::size_t fold = 0; fold < groups.folds; ++fold) {
    std::vector<bool> seen(bench.size());
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = groups.fold[i] != fold;
    const std::vector<double> numbers = fitter.fit(seen, complete);
    const auto all = complete ? bench.errors(numbers) : std::nullopt;
    if (!all) return {};
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i]) errors[i] = (*all)[i];
    }
  }
  return errors;
}

/// With fewer rows, the 10th and 90th percentile would each rest on a single run.
constexpr std::size_t least_rows_of_quantiles = 10;

/// The uncertainty that the profile states: quantiles of ln(measured / predicted) left out.
Json residuals_json(const SoftwareFit& fit) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < fit.left_out.size(); ++i) {
    errors.push_back(-fit.left_out[i] / models::widening(fit.fallback_curves[i]));
  }
  const auto hundredth = [](double value) { return std::round(value * 100) / 100; };
  return {{"p10", std::min(0.0, hundredth(quantile(errors, 0.1)))},
          {"p90", std::max(0.0, hundredth(quantile(errors, 0.9)))},
          {"rows", errors.size()},
          {"source", "orrery fit software: errors with groups of " + fit.left_out_by +
                         " left out, over 1.3 for each borrowed curve"}};
}

class FitOfOne {
 public:
  FitOfOne(const orrery::Table& table, const SoftwareFitOptions& options, Json profile)
      : table_{table},
        options_{options},
        profile_(std::move(profile)) {}  // braces would make a JSON array

  SoftwareFit run(const std::string& name, std::vector<BenchRow> rows, bool& complete) const {
    SoftwareFit fit;
    fit.name = name;
    fit.profile = profile_;
    for (const BenchRow& each : rows) fit.rows.push_back(each.row);
    for (BenchRow& each : rows) each.question.software.unexplained = 1;
    SoftwareBench bench{std::move(rows), options_.trials};
    for (std::size_t i = 0; i < bench.size(); ++i)
      fit.fallback_curves.push_back(bench.fallback_curves(i));
    SoftwareFitter fitter{bench, options_.from_generic ? generic() : bench.start()};
    const auto at_start = bench.errors(fitter.start());
    if (!at_start) {
      complete = false;
      return fit;
    }
    fit.at_start = *at_start;
    add_numbers(bench, fitter, fit, complete);
    add_left_out(bench, fitter, fit, complete);
    if (complete) add_unexplained(fit);
    add_uncertainty(fit);
    return fit;
  }

 private:
  void add_numbers(SoftwareBench& bench, SoftwareFitter& fitter, SoftwareFit& fit,
                   bool& complete) const {
    const std::vector<bool> all(bench.size(), true);
    const std::vector<double> numbers = fitter.fit(all, complete);
    if (const auto errors = bench.errors(numbers)) fit.in_sample = *errors;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double growth = complete ? fitter.growth_of(i, numbers, all, complete) : 0;
      fit.numbers.push_back({fitter.start()[i], numbers[i], growth});
    }
    fit.profile = with_numbers(fit.profile, bench.with(numbers));
  }

  void add_left_out(SoftwareBench& bench, SoftwareFitter& fitter, SoftwareFit& fit,
                    bool& complete) const {
    const LeaveOutGroups groups = leave_out_groups(table_, fit.rows, options_.leave_out);
    fit.left_out_by = groups.columns;
    fit.groups = groups.groups;
    if (complete && groups.folds > 1) {
      fit.left_out = left_out_errors(bench, fitter, groups, complete);
    }
  }

  /// Where nine in ten rows are off in one direction, no number of the profile explains it.
  static void add_unexplained(SoftwareFit& fit) {
    std::vector<double> errors;
    for (const double each : fit.in_sample) errors.push_back(-each);
    if (quantile(errors, 0.1) <= 0 && quantile(errors, 0.9) >= 0) return;
    fit.unexplained = unexplained_by(std::move(errors));
    fit.profile["unexplained"] = fit.unexplained;
    for (double& each : fit.in_sample) each += std::log(fit.unexplained);
    for (double& each : fit.left_out) each += std::log(fit.unexplained);
  }

  static void add_uncertainty(SoftwareFit& fit) {
    fit.profile.erase("uncertainty");
    if (fit.left_out.size() >= least_rows_of_quantiles) {
      fit.profile["uncertainty"] = residuals_json(fit);
    }
  }

  const orrery::Table& table_;
  const SoftwareFitOptions& options_;
  Json profile_;
};

/// The document that a fit starts from: the user's, the shipped one, or generic, as of the latest
/// year of the runs.
Json parent_of(const std::string& name, std::optional<std::int64_t> year,
               const SoftwareFitOptions& options) {
  for (const Json& each : options.profiles) {
    if (each.at("name") == name) return each;
  }
  const std::vector<std::string> shipped = models::software_names();
  const bool known = std::ranges::find(shipped, name) != shipped.end();
  const auto then = year ? std::optional{static_cast<int>(*year)} : std::nullopt;
  return models::software_profile(known ? name : "generic", then);
}

/// The document of the fitted profile before the fit: its name, these runs as source, their latest
/// year.
Json document_of(const std::string& name, const std::vector<MeasuredRun>& runs,
                 const std::vector<BenchRow>& rows, const orrery::Table& table,
                 const SoftwareFitOptions& options) {
  std::optional<std::int64_t> year;
  for (const BenchRow& each : rows) year = std::max(year, runs[each.row].year);
  Json json = parent_of(name, year, options);
  const auto parent = json.at("name").get<std::string>();
  json["source"] = fmt::format(
      "orrery fit software: {} runs of {}; numbers that they do not determine as in the profile "
      "{}, "
      "what is no number as in {}",
      rows.size(), table.name(), options.from_generic ? "generic" : parent, parent);
  json.erase("year");
  json.erase("unexplained");
  if (year) json["year"] = *year;
  json["name"] = name;
  return json;
}

/// An error in one line: the first few runs with the reasons why they are not used.
InputError nothing_to_fit(const orrery::Table& table, const std::vector<MeasuredRun>& runs,
                          const std::vector<UnusedRow>& unused) {
  constexpr std::size_t few = 3;
  std::string text = fmt::format("no run to fit: {} rows, 0 used", runs.size());
  for (std::size_t i = 0; i < std::min(few, unused.size()); ++i) {
    text += fmt::format("; {}: {}", runs[unused[i].row].run, unused[i].reason);
  }
  return {table.name(), text + (unused.size() > few ? "; ..." : "")};
}

}  // namespace

bool FittedNumber::determined() const {
  return growth >= least_growth;
}

namespace {

SoftwareFit fit_of_few(const std::string& name, std::vector<BenchRow> rows, Json profile,
                       unsigned threads) {
  SoftwareFit fit;
  fit.name = name;
  for (const BenchRow& each : rows) fit.rows.push_back(each.row);
  fit.prior_fit = prior_fit_of(std::move(rows), std::move(profile), threads);
  fit.profile = fit.prior_fit->profile;
  fit.at_start = fit.prior_fit->at_prior;
  fit.in_sample = fit.prior_fit->fitted;
  return fit;
}

}  // namespace

SoftwareFits fit_software(const orrery::Table& table, const SoftwareFitOptions& options) {
  const std::vector<MeasuredRun> runs = read_runs(table);
  std::vector<models::Software> profiles;
  for (const Json& each : options.profiles) {
    const Document document = Document::from(each, "--software");
    profiles.push_back(models::read_software(document.root()));
  }
  SoftwareRows rows = software_rows(runs, options.stacks, profiles);
  if (rows.by_profile.empty()) throw nothing_to_fit(table, runs, rows.unused);
  SoftwareFits fits;
  fits.unused = std::move(rows.unused);
  const bool few = runs.size() - fits.unused.size() <= options.most_runs_with_prior;
  for (auto& [name, of_profile] : rows.by_profile) {
    Json document = document_of(name, runs, of_profile, table, options);
    if (few) {
      fits.fits.push_back(
          fit_of_few(name, std::move(of_profile), std::move(document), options.trials.threads));
      continue;
    }
    const FitOfOne fit{table, options, std::move(document)};
    fits.fits.push_back(fit.run(name, std::move(of_profile), fits.complete));
    if (!fits.complete) break;
  }
  return fits;
}

std::vector<double> percents(const std::vector<double>& logs) {
  std::vector<double> values;
  for (const double each : logs) values.push_back(100 * (std::exp(each) - 1));
  return values;
}

std::vector<std::optional<double>> errors_of_generic(const std::vector<MeasuredRun>& runs,
                                                     const std::vector<std::size_t>& rows) {
  models::Software everywhere = generic();
  std::vector<MeasuredRun> chosen;
  for (const std::size_t row : rows) {
    chosen.push_back(runs[row]);
    everywhere.stands_for.push_back({.stack = runs[row].software});
  }
  ValidationOptions options;
  options.profiles.push_back(everywhere);
  std::vector<std::optional<double>> errors;
  for (const RunResult& each : validate(chosen, options)) {
    errors.emplace_back();
    if (each.error_pct) errors.back() = std::log(1 + *each.error_pct / 100);
  }
  return errors;
}

}  // namespace orrery::scenarios

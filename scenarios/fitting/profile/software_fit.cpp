#include "scenarios/fitting/profile/software_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "scenarios/fitting/profile/leave_out_groups.hpp"
#include "scenarios/fitting/profile/step_alone.hpp"
#include "scenarios/validation/validation.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

models::Software generic() {
  const Document document = Document::from(models::software_profile("generic"), "generic");
  return models::read_software(document.root());
}

/// With fewer rows the 10th and 90th percentile would each rest on one or two runs.
bool has_quantiles(const SoftwareFit& fit) {
  return fit.left_out.size() > few_runs;
}

double thousandths(double value) {
  return std::round(value * 1000) / 1000;
}

/// What the profile states as its uncertainty: quantiles of ln(measured / predicted) left out; of
/// few rows, what is left of the numbers' spreads.
Json uncertainty_of(const SoftwareFit& fit) {
  if (has_quantiles(fit)) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < fit.left_out.size(); ++i) {
      errors.push_back(-fit.left_out[i] / models::widening(fit.fallback_curves[i]));
    }
    return {{"p10", std::min(0.0, thousandths(quantile(errors, 0.1)))},
            {"p90", std::max(0.0, thousandths(quantile(errors, 0.9)))},
            {"rows", errors.size()},
            {"source", "orrery fit software: errors with groups of " + fit.left_out_by +
                           " left out, over 1.3 for each borrowed curve"}};
  }
  double variance = spread_of_rows * spread_of_rows;
  for (const FittedNumber& each : fit.numbers) variance += each.effect * each.effect;
  const double spread = thousandths(1.28 * std::sqrt(variance));
  return {
      {"p10", -spread},
      {"p90", spread},
      {"rows", fit.rows.size()},
      {"source", "orrery fit software: what is left of the numbers' spreads, and 6 % of a run"}};
}

std::vector<double> negated(const Eigen::VectorXd& logs) {
  std::vector<double> values;
  for (const double each : logs) values.push_back(-each);
  return values;
}

class FitOfOne {
 public:
  FitOfOne(const orrery::Table& table, const SoftwareFitOptions& options, Json profile,
           std::vector<BenchRow> rows)
      : table_{table},
        options_{options},
        profile_(std::move(profile)),  // braces would make a JSON array
        rows_{std::move(rows)},
        fit_{explained(rows_), models::read_software(Document::from(profile_, "start").root()),
             options.trials},
        prior_{coordinates_of(options.from_generic ? generic() : fit_.profile())} {}

  SoftwareFit run(const std::string& name, bool& complete) const {
    SoftwareFit fit;
    fit.name = name;
    fit.profile = profile_;
    for (const BenchRow& each : rows_) {
      fit.rows.push_back(each.row);
      fit.fallback_curves.push_back(step_of(each.question).fallback_curves);
    }
    try {
      fit.at_start = negated(fit_.errors(all_, prior_));
      add_numbers(fit);
      add_left_out(fit);
    } catch (const FitStopped&) {
      complete = false;
      return fit;
    }
    add_unexplained(fit);
    fit.profile["uncertainty"] = uncertainty_of(fit);
    for (const FittedNumber& each : fit.numbers) {
      const ProfileNumber& number = profile_numbers()[each.number];
      fit.profile["uncertainty"]["numbers"][number.pointer] =
          number.written_spread(each.spread_left);
    }
    return fit;
  }

 private:
  /// Rows that are predicted without what their profile leaves unexplained.
  static std::vector<BenchRow> explained(std::vector<BenchRow> rows) {
    for (BenchRow& each : rows) each.question.software.unexplained = 1;
    return rows;
  }

  void add_numbers(SoftwareFit& fit) const {
    const FittedStack found = fit_.fit(all_, prior_);
    const LinearRows there = fit_.rows_at(all_, found.coordinates);
    for (std::size_t k = 0; k < profile_numbers().size(); ++k) {
      const ProfileNumber& number = profile_numbers()[k];
      if (!fit_.determines(all_, number)) continue;
      const double spread = std::sqrt(found.covariance(k, k));
      const double rms = std::sqrt(there.slopes.col(k).squaredNorm() / there.slopes.rows());
      fit.numbers.push_back({.number = k,
                             .start = number.value(prior_[k]),
                             .value = number.value(found.coordinates[k]),
                             .spread_before = number.spread,
                             .spread_left = spread,
                             .effect = rms * spread});
    }
    const models::Software& start = fit_.profile();
    const Eigen::VectorXd own = coordinates_of(start);
    fit.profile = with_numbers(std::move(fit.profile), with_moved(start, own, found.coordinates));
    const Document written = Document::from(fit.profile, "fitted");
    const Eigen::VectorXd rounded = coordinates_of(models::read_software(written.root()));
    fit.in_sample = negated(fit_.errors(all_, rounded));
    if (rows_.size() > few_runs) return;
    fit.site = site_of(fit.numbers);
    fit.next = next_of(fit.numbers);
  }

  /// Cross-validation: the error of each row with numbers fitted without its fold. Of few runs only
  /// where groups are named.
  void add_left_out(SoftwareFit& fit) const {
    const LeaveOutGroups groups = leave_out_groups(table_, rows_, options_.leave_out);
    if (rows_.size() <= few_runs && options_.leave_out.empty()) return;
    fit.left_out_by = groups.columns;
    fit.groups = groups.groups;
    if (groups.folds < 2) return;
    std::vector<double> errors(rows_.size());
    for (std::size_t fold = 0; fold < groups.folds; ++fold) {
      std::vector<std::size_t> seen, unseen;
      for (const std::size_t i : all_) (groups.fold[i] == fold ? unseen : seen).push_back(i);
      const Eigen::VectorXd logs = fit_.errors(unseen, fit_.fit(seen, prior_).coordinates);
      for (std::size_t i = 0; i < unseen.size(); ++i) errors[unseen[i]] = -logs[i];
    }
    fit.left_out = std::move(errors);
  }

  static void add_unexplained(SoftwareFit& fit) {
    std::vector<double> errors;
    for (const double each : fit.in_sample) errors.push_back(-each);
    fit.unexplained = unexplained_by(errors);
    if (fit.unexplained == 1) return;
    fit.profile["unexplained"] = fit.unexplained;
    for (double& each : fit.in_sample) each += std::log(fit.unexplained);
    for (double& each : fit.left_out) each += std::log(fit.unexplained);
  }

  const orrery::Table& table_;
  const SoftwareFitOptions& options_;
  Json profile_;
  std::vector<BenchRow> rows_;
  StackFit fit_;
  Eigen::VectorXd prior_;
  std::vector<std::size_t> all_ = all_rows(fit_);
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
  json.erase("uncertainty");
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

double unexplained_by(const std::vector<double>& errors) {
  constexpr double half_at = 1.4;  // rows
  const bool both_ways = quantile(errors, 0.1) <= 0 && quantile(errors, 0.9) >= 0;
  if (errors.size() > few_runs && both_ways) return 1;
  const auto rows = static_cast<double>(errors.size());
  const double factor = quantile(errors, 0.5) * rows / (rows + half_at);
  return std::round(1000 * std::exp(factor)) / 1000;
}

bool FittedNumber::determined() const {
  return spread_left * spread_left < spread_before * spread_before / 2;
}

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
  for (auto& [name, of_profile] : rows.by_profile) {
    Json document = document_of(name, runs, of_profile, table, options);
    const FitOfOne fit{table, options, std::move(document), std::move(of_profile)};
    fits.fits.push_back(fit.run(name, fits.complete));
    if (!fits.complete) break;
  }
  return fits;
}

Json site_of(const std::vector<FittedNumber>& numbers) {
  Json site{{"name", "yours"}};
  for (const FittedNumber& each : numbers) {
    const ProfileNumber& number = profile_numbers()[each.number];
    if (number.site_key.empty()) continue;
    if (number.differs == Differs::by_amount) {
      const double more = std::max(0.0, each.value - each.start);
      if (more > 0) site[number.site_key] = number.written(more);
      continue;
    }
    const double factor = each.value / each.start;
    site[number.site_key] = thousandths(number.site_key == "clock" ? 1 / factor : factor);
  }
  return site;
}

std::string next_of(const std::vector<FittedNumber>& numbers) {
  const FittedNumber& most = *std::ranges::max_element(numbers, {}, &FittedNumber::effect);
  const ProfileNumber& number = profile_numbers()[most.number];
  return fmt::format(
      "{}: its uncertainty changes these steps by {:.1f} %; it can be measured on {}",
      number.pointer, 100 * most.effect, number.steps);
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

#include "scenarios/fitting/software_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "scenarios/fitting/leave_out_groups.hpp"
#include "scenarios/fitting/pattern_search.hpp"
#include "scenarios/validation/run_question.hpp"
#include "scenarios/validation/validation.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr double robust_from = 0.1;
constexpr double moved = 1.3;          // how far a number is moved to see whether it matters
constexpr double worth_moving = 0.05;  // points of percent: for less a number keeps its start
constexpr double least_growth = 0.1;   // points of percent: below it, it does not

/// Of one logarithmic error.
double loss_of(double error) {
  const double scaled = error / robust_from;
  return robust_from * robust_from * (std::sqrt(1 + scaled * scaled) - 1);
}

/// The error whose square is twice the loss: what the rows typically miss by, in percent.
double typical(double loss) {
  return 100 * std::sqrt(2 * loss);
}

/// Whether a loss holds what the way from the start costs.
enum class Pull : std::uint8_t { counts, is_left };

/// Fits a bench's numbers to some of its rows.
class Fitter {
 public:
  Fitter(SoftwareBench& bench, std::vector<double> start)
      : bench_{bench}, start_{std::move(start)} {}

  const std::vector<double>& start() const { return start_; }

  /// Nothing if told to stop before the first evaluation.
  std::optional<std::vector<double>> fit(const std::vector<bool>& seen, bool& complete) {
    const auto loss = [&](const GridPoint& point) -> std::optional<double> {
      const std::vector<double> numbers = at(point);
      return numbers.empty() ? std::numeric_limits<double>::infinity() : loss_at(numbers, seen);
    };
    const GridMinimum minimum = minimum_on_grid(start_.size(), loss);
    complete = complete && minimum.complete;
    return with_kept(minimum.point, seen);
  }

  /// Mean loss of the rows seen, and what the numbers' way from the start costs where it counts.
  std::optional<double> loss_at(const std::vector<double>& numbers, const std::vector<bool>& seen,
                                Pull pull = Pull::counts) {
    const auto errors = bench_.errors(numbers);
    if (!errors) return std::nullopt;
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i]) continue;
      sum += loss_of((*errors)[i]);
      ++count;
    }
    for (std::size_t i = 0; i < numbers.size() && pull == Pull::counts; ++i) {
      const double octaves = std::log2(numbers[i] / start_[i]);
      sum += loss_of(0.05) * octaves * octaves;
    }
    return sum / count;
  }

  double growth_of(std::size_t number, const std::vector<double>& numbers, bool& complete) {
    const std::vector<bool> all(bench_.size(), true);
    const auto here = loss_at(numbers, all, Pull::is_left);
    double least = std::numeric_limits<double>::infinity();
    for (const double factor : {moved, 1 / moved}) {
      std::vector<double> away = numbers;
      away[number] *= factor;
      const auto there = loss_at(away, all, Pull::is_left);
      if (!here || !there) {
        complete = false;
        return 0;
      }
      least = std::min(least, typical(*there) - typical(*here));
    }
    return least;
  }

 private:
  /// The numbers at a point, but for those that are as good at their start.
  std::optional<std::vector<double>> with_kept(const GridPoint& point,
                                               const std::vector<bool>& seen) {
    std::vector<double> numbers = at(point);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::vector<double> kept = numbers;
      kept[i] = start_[i];
      const auto here = loss_at(numbers, seen);
      const auto there = loss_at(kept, seen);
      if (here && there && typical(*there) - typical(*here) < worth_moving) numbers = kept;
    }
    return numbers;
  }

  /// The numbers at a point; empty beyond what is conceivable.
  std::vector<double> at(const GridPoint& point) const {
    std::vector<double> numbers;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const SoftwareNumber& number = software_numbers()[i];
      const double value = start_[i] * std::pow(number.stride, point[i]);
      if (point[i] != 0 && (value < number.low || value > number.high)) return {};
      numbers.push_back(point[i] == 0 ? start_[i] : number.rounded(value));
    }
    return numbers;
  }

  SoftwareBench& bench_;
  std::vector<double> start_;
};

std::vector<double> numbers_of(const models::Software& software) {
  std::vector<double> numbers;
  for (const SoftwareNumber& each : software_numbers()) {
    numbers.push_back(std::clamp(each.get(software), each.low, each.high));
  }
  return numbers;
}

models::Software generic() {
  const Document document = Document::from(models::software_profile("generic"), "generic");
  return models::read_software(document.root());
}

/// Each row by numbers fitted without its fold; nothing if told to stop.
std::vector<double> left_out_errors(SoftwareBench& bench, Fitter& fitter,
                                    const LeaveOutGroups& groups, bool& complete) {
  std::vector<double> errors(bench.size());
  for (std::size_t fold = 0; fold < groups.folds; ++fold) {
    std::vector<bool> seen(bench.size());
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = groups.fold[i] != fold;
    const auto numbers = fitter.fit(seen, complete);
    const auto all = complete ? bench.errors(*numbers) : std::nullopt;
    if (!all) return {};
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i]) errors[i] = (*all)[i];
    }
  }
  return errors;
}

/// Fewer leave both tenths to a single run.
constexpr std::size_t least_rows_of_quantiles = 10;

/// What the profile states of its uncertainty: quantiles of ln(measured / predicted) left out.
Json residuals_json(const SoftwareFit& fit) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < fit.left_out.size(); ++i) {
    errors.push_back(-fit.left_out[i] / models::widening(fit.borrowed[i]));
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
        profile_(std::move(profile)) {}  // braces would make a list

  SoftwareFit run(const std::string& name, std::vector<BenchRow> rows, bool& complete) const {
    SoftwareFit fit;
    fit.name = name;
    fit.profile = profile_;
    for (const BenchRow& each : rows) fit.rows.push_back(each.row);
    SoftwareBench bench{std::move(rows), options_.trials};
    for (std::size_t i = 0; i < bench.size(); ++i) fit.borrowed.push_back(bench.borrowed(i));
    Fitter fitter{bench, numbers_of(options_.from_generic ? generic() : bench.start())};
    const auto at_start = bench.errors(fitter.start());
    if (!at_start) {
      complete = false;
      return fit;
    }
    fit.at_start = *at_start;
    add_numbers(bench, fitter, fit, complete);
    add_left_out(bench, fitter, fit, complete);
    return fit;
  }

 private:
  void add_numbers(SoftwareBench& bench, Fitter& fitter, SoftwareFit& fit, bool& complete) const {
    const std::vector<double> numbers =
        *fitter.fit(std::vector<bool>(bench.size(), true), complete);
    if (const auto errors = bench.errors(numbers)) fit.in_sample = *errors;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double growth = complete ? fitter.growth_of(i, numbers, complete) : 0;
      fit.numbers.push_back({fitter.start()[i], numbers[i], growth});
    }
    fit.profile = with_numbers(fit.profile, bench.with(numbers));
  }

  void add_left_out(SoftwareBench& bench, Fitter& fitter, SoftwareFit& fit, bool& complete) const {
    const LeaveOutGroups groups = leave_out_groups(table_, fit.rows, options_.leave_out);
    fit.left_out_by = groups.columns;
    fit.groups = groups.groups;
    if (complete && groups.folds > 1) {
      fit.left_out = left_out_errors(bench, fitter, groups, complete);
    }
    fit.profile.erase("uncertainty");
    if (fit.left_out.size() >= least_rows_of_quantiles) {
      fit.profile["uncertainty"] = residuals_json(fit);
    }
  }

  const orrery::Table& table_;
  const SoftwareFitOptions& options_;
  Json profile_;
};

bool is_asked(const SoftwareFitOptions& options, const std::string& stack,
              const std::string& profile) {
  const auto& asked = options.stacks;
  return asked.empty() || std::find(asked.begin(), asked.end(), stack) != asked.end() ||
         std::find(asked.begin(), asked.end(), profile) != asked.end();
}

/// Rows by the profile that they run; a stack without one has its own, that starts as `generic`.
std::map<std::string, std::vector<BenchRow>> rows_by_profile(
    const std::vector<MeasuredRun>& runs, const SoftwareFitOptions& options,
    const std::vector<models::Software>& profiles) {
  Questions questions{profiles};
  std::map<std::string, std::vector<BenchRow>> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const MeasuredRun& run = runs[i];
    if (!run.set_aside.empty() || !run.step_time) continue;
    auto asked = questions.of(run);
    auto* question = std::get_if<models::Question>(&asked);
    if (question == nullptr) continue;
    const std::string& own = question->software.name;
    const std::string name = own == "generic" && !run.software.empty() ? run.software : own;
    if (!is_asked(options, run.software, name)) continue;
    rows[name].push_back({i, std::move(*question), *run.step_time});
  }
  return rows;
}

/// The document of a profile: one's own, the shipped one, or generic under the stack's name.
Json document_of(const std::string& name, const SoftwareFitOptions& options) {
  for (const Json& each : options.profiles) {
    if (each.at("name") == name) return each;
  }
  const std::vector<std::string> shipped = models::software_names();
  const bool known = std::find(shipped.begin(), shipped.end(), name) != shipped.end();
  Json json = models::software_profile(known ? name : "generic");
  json["name"] = name;
  return json;
}

}  // namespace

bool FittedNumber::determined() const {
  return growth >= least_growth;
}

SoftwareFits fit_software(const orrery::Table& table, const SoftwareFitOptions& options) {
  const std::vector<MeasuredRun> runs = read_runs(table);
  std::vector<models::Software> profiles;
  for (const Json& each : options.profiles) {
    const Document document = Document::from(each, "--software");
    profiles.push_back(models::read_software(document.root()));
  }
  auto rows = rows_by_profile(runs, options, profiles);
  if (rows.empty())
    throw InputError{table.name(), "no run to fit: none can be simulated and scored"};
  SoftwareFits fits;
  for (auto& [name, of_profile] : rows) {
    const FitOfOne fit{table, options, document_of(name, options)};
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

std::vector<double> errors_of_generic(const std::vector<MeasuredRun>& runs,
                                      const std::vector<std::size_t>& rows) {
  models::Software everywhere = generic();
  std::vector<MeasuredRun> chosen;
  for (const std::size_t row : rows) {
    chosen.push_back(runs[row]);
    everywhere.stands_for.push_back({.stack = runs[row].software});
  }
  ValidationOptions options;
  options.profiles.push_back(everywhere);
  std::vector<double> errors;
  for (const RunResult& each : validate(chosen, options)) {
    if (each.error_pct) errors.push_back(std::log(1 + *each.error_pct / 100));
  }
  return errors;
}

}  // namespace orrery::scenarios

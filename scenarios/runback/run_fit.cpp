#include <fmt/format.h>

#include <cmath>

#include "scenarios/fitting/profile/posterior.hpp"
#include "scenarios/fitting/profile/profile_numbers.hpp"
#include "scenarios/fitting/profile/software_fit.hpp"
#include "scenarios/runback/run_comparison.hpp"
#include "sim/errors.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using Eigen::VectorXd;
using models::Question;

/// A posterior needs differences of a step's classes in one unit: shares of the step.
constexpr double spread_of_share = 0.01;
constexpr int most_fit_rounds = 4;
/// Where a trace shows the class of a number: single machines differ by more than stacks do.
constexpr double least_spread_of_machines = 0.25;
/// Numbers that belong to the place rather than to the stack: written into the site.
bool of_site(const ProfileNumber& number) {
  return number.site_key == "tensor" || number.site_key == "network";
}

class RunFitter {
 public:
  RunFitter(const Scenario& scenario, const RunComparison& found)
      : scenario_{scenario}, found_{found}, question_{scenario.question()} {
    question_.network = {};
    question_.network.mode = models::NetworkMode::fixed;
    question_.software.unexplained = 1;
    for (std::size_t k = 0; k < profile_numbers().size(); ++k) {
      const ProfileNumber& each = profile_numbers()[k];
      if (each.generation.empty() && each.matters(question_.software)) chosen_.push_back(k);
    }
    start_ = coordinates_of(question_.software);
    fill_targets();
  }

  RunFit run() {
    VectorXd moves = VectorXd::Zero(static_cast<Eigen::Index>(chosen_.size()));
    VectorXd best = moves;
    double least = misfit_of(shares_at(moves)) + prior_of(moves);
    Posterior posterior;
    for (int round = 0; round < most_fit_rounds; ++round) {
      const LinearRows rows = rows_at(moves);
      posterior = posterior_of(rows, spreads());
      if (round == 0) last_ = posterior;
      VectorXd next = clamped(posterior.moves);
      double cost = misfit_of(shares_at(next)) + prior_of(next);
      for (int half = 0; half < 4 && cost > least; ++half) {
        next = (next + best) / 2;
        cost = misfit_of(shares_at(next)) + prior_of(next);
      }
      if (cost >= least - 1e-3) break;
      best = moves = next;
      least = cost;
      last_ = posterior;
    }
    return written(best);
  }

 private:
  void fill_targets() {
    const double step = seconds(found_.measured);
    if (found_.classes.empty()) {
      targets_.push_back({.which = {}, .of_step = true, .share = 1, .spread = 0.06});
      return;
    }
    for (const RunClassTime& row : found_.classes) {
      const bool priced = row.which != RunClass::data_loading && row.which != RunClass::copies &&
                          row.which != RunClass::other;
      if (!priced) continue;
      const double share = seconds(row.measured) / step;
      const double larger = std::max(share, seconds(row.predicted) / step);
      targets_.push_back({.which = row.which,
                          .share = share,
                          .spread = std::hypot(0.06 * larger, spread_of_share)});
    }
  }

  struct Target {
    RunClass which{};
    bool of_step = false;
    double share = 0, spread = 0;  // of the measured step
  };

  VectorXd spreads() const {
    VectorXd all(static_cast<Eigen::Index>(chosen_.size()));
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const ProfileNumber& number = profile_numbers()[chosen_[i]];
      const bool shown = !found_.classes.empty() && number.differs == Differs::by_factor;
      all[static_cast<Eigen::Index>(i)] =
          shown ? std::max(number.spread, least_spread_of_machines) : number.spread;
    }
    return all;
  }

  models::Software moved(const VectorXd& moves) const {
    VectorXd to = start_;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      to[static_cast<Eigen::Index>(chosen_[i])] += moves[static_cast<Eigen::Index>(i)];
    }
    return with_moved(question_.software, start_, to);
  }

  /// Moves that keep every number within its plausible range.
  VectorXd clamped(VectorXd moves) const {
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const ProfileNumber& number = profile_numbers()[chosen_[i]];
      const double own = start_[static_cast<Eigen::Index>(chosen_[i])];
      double& move = moves[static_cast<Eigen::Index>(i)];
      move = number.coordinate(number.value(own + move)) - own;
    }
    return moves;
  }

  models::Prediction prediction_at(const VectorXd& moves) const {
    Question changed = question_;
    changed.software = moved(moves);
    return models::predict(changed);
  }

  VectorXd shares_at(const VectorXd& moves) const {
    const models::Prediction prediction = prediction_at(moves);
    const ClassTimes classes = predicted_classes(prediction, found_.rank_class);
    VectorXd shares(static_cast<Eigen::Index>(targets_.size()));
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const Time time = targets_[i].of_step ? prediction.step : classes[targets_[i].which];
      shares[static_cast<Eigen::Index>(i)] = ratio(time, found_.measured);
    }
    return shares;
  }

  double misfit_of(const VectorXd& shares) const {
    double sum = 0;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const double far =
          (targets_[i].share - shares[static_cast<Eigen::Index>(i)]) / targets_[i].spread;
      sum += std::abs(far) < 3 ? far * far / 2 : 3 * std::abs(far) - 4.5;
    }
    return sum;
  }
  double prior_of(const VectorXd& moves) const {
    return moves.cwiseQuotient(spreads()).squaredNorm() / 2;
  }

  /// The classes' differences around `moves`, in units in which each has the spread of a row.
  LinearRows rows_at(const VectorXd& moves) const {
    const VectorXd base = shares_at(moves);
    const auto rows = static_cast<Eigen::Index>(targets_.size());
    const auto numbers = static_cast<Eigen::Index>(chosen_.size());
    LinearRows made{.errors = VectorXd(rows),
                    .slopes = Eigen::MatrixXd(rows, numbers),
                    .cells = Eigen::MatrixXd(rows, 0),
                    .weights = VectorXd::Ones(rows)};
    for (Eigen::Index k = 0; k < numbers; ++k) {
      const ProfileNumber& number = profile_numbers()[chosen_[static_cast<std::size_t>(k)]];
      const double step = number.differs == Differs::by_factor ? 0.05 : number.spread / 4;
      VectorXd there = moves;
      there[k] += step;
      made.slopes.col(k) = (shares_at(there) - base) / step;
    }
    for (Eigen::Index i = 0; i < rows; ++i) {
      const Target& target = targets_[static_cast<std::size_t>(i)];
      const double unit = spread_of_rows / target.spread;
      made.slopes.row(i) *= unit;
      made.errors[i] = unit * (target.share - base[i]) + made.slopes.row(i).dot(moves);
    }
    return made;
  }

  static std::string spelled(const ProfileNumber& number, double value) {
    const Json written = number.written(value);
    return written.is_string() ? written.get<std::string>() : written.dump();
  }

  RunFit written(const VectorXd& moves) const {
    RunFit fit;
    VectorXd of_stack = moves;
    std::vector<FittedNumber> site;
    const models::Software fitted = moved(moves);
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const ProfileNumber& number = profile_numbers()[chosen_[i]];
      const auto at = static_cast<Eigen::Index>(i);
      const double before = number.get(question_.software), after = number.get(fitted);
      if (of_site(number)) {
        of_stack[at] = 0;
        site.push_back({.number = chosen_[i], .start = before, .value = after});
      }
      const double effect = effect_of(at, moves);
      if (spelled(number, before) == spelled(number, after)) continue;
      fit.numbers.push_back({.pointer = number.pointer,
                             .before = spelled(number, before),
                             .after = spelled(number, after),
                             .of_site = of_site(number),
                             .effect = effect});
    }
    fit.software = with_numbers(scenario_.json().at("software"), moved(of_stack));
    fit.cluster = cluster_with(site);
    state_what_is_left(fit, moves);
    return fit;
  }

  /// Of what is left of a number's spread, on the step.
  double effect_of(Eigen::Index number, const VectorXd& moves) const {
    const double left = last_.spread(static_cast<std::size_t>(number));
    VectorXd there = moves;
    there[number] += left;
    return std::abs(std::log(ratio(prediction_at(there).step, prediction_at(moves).step)));
  }

  Json cluster_with(const std::vector<FittedNumber>& numbers) const {
    Json cluster = scenario_.json().at("cluster");
    const Json found = site_of(numbers);
    const bool sited = cluster.contains("site") && cluster["site"].is_object();
    Json site = sited ? cluster["site"] : Json::object();
    for (const char* key : {"tensor", "network"}) {
      if (!found.contains(key)) continue;
      const double before = site.contains(key) ? site[key].get<double>() : 1.0;
      site[key] = std::round(1e4 * std::clamp(before * found[key].get<double>(), 0.11, 9.9)) / 1e4;
    }
    site["name"] = "yours";
    site.erase("found_by");
    site["notes"] = "orrery compare --fit: the network as a measured run reached it";
    cluster["site"] = std::move(site);
    return cluster;
  }

  /// What the numbers do not explain becomes a part of each step, as `orrery fit software` states
  /// it of one run: half of it and less.
  void state_what_is_left(RunFit& fit, const VectorXd& moves) const {
    constexpr double rows = 1, half_at = 1.4;
    Json& profile = fit.software;
    const auto with = [&](double unexplained) {
      if (unexplained == 1) {
        profile.erase("unexplained");
      } else {
        profile["unexplained"] = unexplained;
      }
      const Scenario changed =
          scenario_.replace({{"/software", profile}, {"/cluster", fit.cluster}});
      return models::predict(changed.question()).step;
    };
    const Time explained = with(1);
    const double left = std::log(ratio(found_.measured, explained)) * rows / (rows + half_at);
    fit.unexplained = std::clamp(std::round(1000 * std::exp(left)) / 1000, 0.2, 5.0);
    fit.predicted = with(fit.unexplained);
    double variance = spread_of_rows * spread_of_rows;
    Json spreads_left = Json::object();
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const ProfileNumber& number = profile_numbers()[chosen_[i]];
      const double effect = effect_of(static_cast<Eigen::Index>(i), moves);
      variance += effect * effect;
      spreads_left[number.pointer] = number.written_spread(last_.spread(i));
    }
    const double spread = std::round(1280 * std::sqrt(variance)) / 1000;
    profile["uncertainty"] = {
        {"p10", -spread},
        {"p90", spread},
        {"rows", 1},
        {"source", "orrery compare --fit: what is left of the numbers' spreads, and 6 % of a run"},
        {"numbers", std::move(spreads_left)}};
    profile["source"] = fmt::format(
        "orrery compare --fit: numbers moved to a measured run of {} steps of {}; what it does not "
        "determine as in the profile {}",
        found_.steps.steps, printable_name(),
        scenario_.json()["software"]["name"].get<std::string>());
  }

  std::string printable_name() const {
    return found_.ranks.empty() ? std::string{found_.log_format}
                                : found_.ranks[found_.chosen].name();
  }

  const Scenario& scenario_;
  const RunComparison& found_;
  Question question_;

  std::vector<std::size_t> chosen_;  // in profile_numbers()
  VectorXd start_;
  std::vector<Target> targets_;
  Posterior last_;
};

}  // namespace

RunFit fit_run(const Scenario& scenario, const RunComparison& found) {
  return RunFitter{scenario, found}.run();
}

}  // namespace orrery::scenarios

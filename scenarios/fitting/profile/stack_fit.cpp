#include "scenarios/fitting/profile/stack_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "scenarios/fitting/profile/step_alone.hpp"
#include "scenarios/search/workers.hpp"
#include "scenarios/validation/statistics.hpp"

namespace orrery::scenarios {

namespace {

using Eigen::VectorXd;

constexpr int most_halvings = 3;
constexpr int most_linearisations = 5;
/// A round that makes the numbers less than e^0.1 times as probable is the last.
constexpr double small_gain = 0.1;
/// Parameters from which a model's steps are mostly GEMMs.
/// Source  Composer's runs on H100: a GEMM factor of 1.1 fits 0.8 and 3 billion parameters, and 1.0
///         those of 7 billion and more
constexpr double large_model = 5e9;

/// How far a number is moved to measure its slope: a fifth, or half of its spread between stacks.
double stride_of(const ProfileNumber& number) {
  return number.differs == Differs::by_factor ? std::log(1.2) : number.spread / 2;
}

VectorXd spreads_of_numbers() {
  VectorXd spreads(profile_numbers().size());
  for (std::size_t i = 0; i < profile_numbers().size(); ++i) {
    spreads[i] = profile_numbers()[i].spread;
  }
  return spreads;
}

/// The moves that keep each number within its range.
VectorXd within_range(const VectorXd& prior, VectorXd moves) {
  for (Eigen::Index k = 0; k < prior.size(); ++k) {
    const ProfileNumber& number = profile_numbers()[k];
    moves[k] = number.coordinate(number.value(prior[k] + moves[k])) - prior[k];
  }
  return moves;
}

/// Share of the way from one to the other, with the other's covariance.
Posterior between(const Posterior& from, const Posterior& to, double share) {
  return {.moves = from.moves + share * (to.moves - from.moves),
          .covariance = to.covariance,
          .factors = from.factors + share * (to.factors - from.factors)};
}

}  // namespace

double FittedStack::spread(std::size_t number) const {
  const std::vector<ProfileNumber>& numbers = profile_numbers();
  double variance = covariance(number, number);
  if (!numbers[number].generation.empty()) {
    const auto all =
        std::ranges::find(numbers, "/kernels/gemm_derate/default", &ProfileNumber::pointer) -
        numbers.begin();
    variance += covariance(all, all) + 2 * covariance(all, number);
  }
  return std::sqrt(variance);
}

StackFit::StackFit(std::vector<BenchRow> rows, models::Software profile, Trials trials)
    : rows_{std::move(rows)},
      profile_{std::move(profile)},
      trials_{std::move(trials)},
      lowered_(rows_.size()),
      own_{coordinates_of(profile_)} {}

/// Keeps each row's last Program: numbers are mostly moved one at a time, and few of them change
/// it.
const models::Program& StackFit::program(std::size_t row, const models::Software& software) const {
  std::vector<double> numbers;
  for (const ProfileNumber& each : profile_numbers()) {
    if (each.lowered) numbers.push_back(each.get(software));
  }
  Lowered& lowered = lowered_[row];
  if (lowered.numbers != numbers) {
    models::Question question = rows_[row].question;
    question.software = software;
    lowered = {std::move(numbers), models::lower(question)};
  }
  return lowered.program;
}

VectorXd StackFit::errors(const std::vector<std::size_t>& rows, const VectorXd& coordinates) const {
  VectorXd logs(rows.size());
  const Workers workers{.threads = trials_.threads, .progress = {}};
  workers.work_through(rows.size(), [&](std::size_t i, unsigned /*member*/) {
    const BenchRow& row = rows_[rows[i]];
    const models::Software software = with_moved(row.question.software, own_, coordinates);
    logs[i] = std::log(row.measured /
                       step_of(program(rows[i], software), row.question.cluster, software).seconds);
  });
  if (trials_.keep_going && !trials_.keep_going()) throw FitStopped{};
  return logs;
}

bool StackFit::determines(const std::vector<std::size_t>& seen, const ProfileNumber& number) const {
  if (!number.matters(profile_)) return false;
  if (number.generation.empty()) return true;
  bool large = false, other = false;
  for (const std::size_t each : seen) {
    const models::Question& question = rows_[each].question;
    const bool here = question.cluster.gpu().generation.name == number.generation;
    other = other || !here;
    large = large || (here && static_cast<double>(question.model.parameters) >= large_model);
  }
  return large && other;
}

/// The rows seen with their cells and weights, without slopes.
LinearRows StackFit::unlinearised(const std::vector<std::size_t>& seen, VectorXd errors) const {
  std::map<std::size_t, double> of_sweep;
  std::map<std::size_t, Eigen::Index> cells;
  for (const std::size_t each : seen) {
    cells.emplace(rows_[each].cell, cells.size());
    of_sweep[rows_[each].sweep] += 1;
  }
  LinearRows rows{.errors = std::move(errors),
                  .slopes = Eigen::MatrixXd::Zero(seen.size(), own_.size()),
                  .cells = Eigen::MatrixXd::Zero(seen.size(), cells.size()),
                  .weights = VectorXd(seen.size())};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    rows.weights[i] = 1 / of_sweep[rows_[seen[i]].sweep];
    rows.cells(i, cells[rows_[seen[i]].cell]) = 1;
  }
  if (seen.size() > few_runs) {
    rows.cells.rowwise() -=
        (rows.weights.transpose() * rows.cells / rows.weights.sum()).eval().row(0);
  }
  return rows;
}

/// Of ln(predicted) by one number.
VectorXd StackFit::slopes_of(const std::vector<std::size_t>& seen, const VectorXd& errors_there,
                             const VectorXd& there, Eigen::Index number) const {
  const ProfileNumber& moving = profile_numbers()[number];
  VectorXd moved = there;
  moved[number] = moving.coordinate(moving.value(there[number] + stride_of(moving)));
  if (moved[number] == there[number]) {
    moved[number] = moving.coordinate(moving.value(there[number] - stride_of(moving)));
  }
  return (errors_there - errors(seen, moved)) / (moved[number] - there[number]);
}

LinearRows StackFit::rows_at(const std::vector<std::size_t>& seen, const VectorXd& there) const {
  LinearRows rows = unlinearised(seen, errors(seen, there));
  for (Eigen::Index k = 0; k < there.size(); ++k) {
    if (!determines(seen, profile_numbers()[k])) continue;
    rows.slopes.col(k) = slopes_of(seen, rows.errors, there, k);
  }
  return rows;
}

LinearRows StackFit::rows_at_prior(const std::vector<std::size_t>& seen,
                                   const VectorXd& prior) const {
  const std::vector<std::size_t> all = all_rows(*this);
  if (lines_.prior.size() != prior.size() || lines_.prior != prior) {
    LinearRows rows = rows_at(all, prior);
    lines_ = {.prior = prior, .errors = std::move(rows.errors), .slopes = std::move(rows.slopes)};
  }
  LinearRows rows = unlinearised(seen, lines_.errors(seen));
  for (Eigen::Index k = 0; k < prior.size(); ++k) {
    if (determines(seen, profile_numbers()[k])) rows.slopes.col(k) = lines_.slopes.col(k)(seen);
  }
  return rows;
}

FittedStack StackFit::fit(const std::vector<std::size_t>& seen, const VectorXd& prior) const {
  const VectorXd spreads = spreads_of_numbers();
  Posterior best{.moves = VectorXd::Zero(prior.size()),
                 .covariance = spreads.cwiseAbs2().asDiagonal(),
                 .factors = {}};
  if (seen.empty()) {
    return {.prior = prior, .coordinates = prior, .covariance = best.covariance, .factors = {}};
  }
  const auto cost = [&](const Posterior& at) {
    return misfit(at, unlinearised(seen, errors(seen, prior + at.moves)), spreads);
  };
  const LinearRows first = rows_at_prior(seen, prior);
  best.factors = VectorXd::Zero(first.cells.cols());
  double least = misfit(best, first, spreads);
  for (int round = 0; round < most_linearisations; ++round) {
    LinearRows rows = round == 0 ? first : rows_at(seen, prior + best.moves);
    rows.errors += rows.slopes * best.moves;  // as they would be at the prior, by the same lines
    const Posterior aim = posterior_of(rows, spreads);
    best.covariance = aim.covariance;
    double share = 1, reached = least;
    Posterior next;
    for (int halving = 0; halving <= most_halvings && reached >= least; ++halving, share /= 2) {
      next = between(best, aim, share);
      next.moves = within_range(prior, std::move(next.moves));
      reached = cost(next);
    }
    if (reached >= least) break;
    const double gain = least - reached;
    best = std::move(next);
    least = reached;
    if (gain < small_gain) break;
  }
  return {.prior = prior,
          .coordinates = prior + best.moves,
          .covariance = std::move(best.covariance),
          .factors = std::move(best.factors)};
}

double StackFit::left_to_stack(const std::vector<std::size_t>& seen,
                               const VectorXd& coordinates) const {
  if (seen.empty() || seen.size() > few_runs) return 0;
  const VectorXd logs = errors(seen, coordinates);
  std::vector<std::size_t> cells;
  for (const std::size_t each : seen) cells.push_back(rows_[each].cell);
  return scenarios::left_to_stack({logs.begin(), logs.end()}, cells);
}

double left_to_stack(const std::vector<double>& errors, const std::vector<std::size_t>& cells) {
  std::map<std::size_t, std::vector<double>> by_cell;
  for (std::size_t i = 0; i < errors.size(); ++i) by_cell[cells[i]].push_back(errors[i]);
  double sum = 0;
  for (const auto& [cell, found] : by_cell) sum += quantile(found, 0.5);
  return sum / (static_cast<double>(by_cell.size()) + 1);
}

std::vector<std::size_t> all_rows(const StackFit& fit) {
  std::vector<std::size_t> all(fit.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace orrery::scenarios

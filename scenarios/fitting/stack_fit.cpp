#include "scenarios/fitting/stack_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "scenarios/fitting/step_alone.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

namespace {

constexpr int most_halvings = 3;
constexpr int most_linearisations = 5;
/// A round that makes the numbers less than e^0.1 times as probable is the last.
constexpr double small_gain = 0.1;

/// How far a number is moved to measure its slope: a fifth, or half of its spread between stacks.
double stride_of(const InheritedNumber& number) {
  return number.differs == Differs::by_factor ? std::log(1.2) : number.spread / 2;
}

std::vector<double> spreads_of_numbers() {
  std::vector<double> spreads;
  for (const InheritedNumber& each : inherited_numbers()) spreads.push_back(each.spread);
  return spreads;
}

std::vector<double> sum(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

/// The moves that keep each number within its range.
std::vector<double> within_range(const std::vector<double>& prior, std::vector<double> moves) {
  for (std::size_t k = 0; k < prior.size(); ++k) {
    const InheritedNumber& number = inherited_numbers()[k];
    moves[k] = number.coordinate(number.value(prior[k] + moves[k])) - prior[k];
  }
  return moves;
}

/// Share of the way from one to the other, with the other's spreads.
Posterior between(const Posterior& from, const Posterior& to, double share) {
  const auto mixed = [share](std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += share * (b[i] - a[i]);
    return a;
  };
  return {.moves = mixed(from.moves, to.moves),
          .spreads = to.spreads,
          .factors = mixed(from.factors, to.factors)};
}

}  // namespace

StackFit::StackFit(std::vector<BenchRow> rows, std::vector<std::size_t> cells,
                   models::Software profile, unsigned threads)
    : rows_{std::move(rows)},
      cells_{std::move(cells)},
      profile_{std::move(profile)},
      lowered_(rows_.size()),
      own_{coordinates_of(profile_)},
      threads_{threads} {}

/// Keeps each row's last Program: numbers are mostly moved one at a time, and few of them change
/// it.
const models::Program& StackFit::program(std::size_t row, const models::Software& software) const {
  std::vector<double> numbers;
  for (const InheritedNumber& each : inherited_numbers()) {
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

std::vector<double> StackFit::errors(const std::vector<std::size_t>& rows,
                                     const std::vector<double>& coordinates) const {
  std::vector<double> logs(rows.size());
  const Workers workers{.threads = threads_, .progress = {}};
  workers.work_through(rows.size(), [&](std::size_t i, unsigned /*member*/) {
    const BenchRow& row = rows_[rows[i]];
    const models::Software software = with_moved(row.question.software, own_, coordinates);
    logs[i] = std::log(row.measured /
                       step_of(program(rows[i], software), row.question.cluster, software).seconds);
  });
  return logs;
}

LinearRows StackFit::rows_at(const std::vector<std::size_t>& seen,
                             const std::vector<double>& prior) const {
  LinearRows rows;
  rows.errors = errors(seen, prior);
  rows.slopes.assign(seen.size(), std::vector<double>(prior.size(), 0));
  for (std::size_t k = 0; k < prior.size(); ++k) {
    const InheritedNumber& number = inherited_numbers()[k];
    if (!number.matters(profile_)) continue;
    std::vector<double> there = prior;
    there[k] = number.coordinate(number.value(prior[k] + stride_of(number)));
    if (there[k] == prior[k])
      there[k] = number.coordinate(number.value(prior[k] - stride_of(number)));
    const std::vector<double> moved_errors = errors(seen, there);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      rows.slopes[i][k] = (rows.errors[i] - moved_errors[i]) / (there[k] - prior[k]);
    }
  }
  rows.cells = cells_of(seen);
  return rows;
}

/// The cells of the rows seen, numbered from 0.
std::vector<std::size_t> StackFit::cells_of(const std::vector<std::size_t>& seen) const {
  std::map<std::size_t, std::size_t> numbered;
  std::vector<std::size_t> cells;
  for (const std::size_t row : seen) {
    cells.push_back(numbered.emplace(cells_[row], numbered.size()).first->second);
  }
  return cells;
}

/// Linearises the rows around moved numbers; errors are those that remain at the prior by the same
/// lines.
LinearRows StackFit::rows_around(const std::vector<std::size_t>& seen,
                                 const std::vector<double>& prior,
                                 const std::vector<double>& moves) const {
  LinearRows rows = rows_at(seen, sum(prior, moves));
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (std::size_t k = 0; k < moves.size(); ++k) rows.errors[i] += rows.slopes[i][k] * moves[k];
  }
  return rows;
}

FittedStack StackFit::fit(const std::vector<std::size_t>& seen,
                          const std::vector<double>& prior) const {
  if (seen.empty()) return {.prior = prior, .coordinates = prior, .spreads = {}, .factors = {}};
  const std::vector<double> spreads = spreads_of_numbers();
  const std::vector<std::size_t> cells = cells_of(seen);
  const auto cost = [&](const Posterior& at) {
    return misfit(at, errors(seen, sum(prior, at.moves)), cells, spreads);
  };
  Posterior best{.moves = std::vector<double>(prior.size(), 0),
                 .spreads = spreads,
                 .factors = std::vector<double>(1 + std::ranges::max(cells), 0)};
  double least = cost(best);
  for (int round = 0; round < most_linearisations; ++round) {
    const Posterior aim = posterior_of(rows_around(seen, prior, best.moves), spreads);
    best.spreads = aim.spreads;
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
          .coordinates = sum(prior, best.moves),
          .spreads = std::move(best.spreads),
          .factors = std::move(best.factors)};
}

}  // namespace orrery::scenarios

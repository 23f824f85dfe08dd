#include "scenarios/fitting/stack_fit.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "hardware/fitting/minimise.hpp"
#include "scenarios/fitting/step_alone.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

namespace {

constexpr int most_halvings = 3;

/// How far a number is moved to measure its slope: a fifth, or half of its spread between stacks.
double stride_of(const InheritedNumber& number) {
  return number.differs == Differs::by_factor ? std::log(1.2) : number.spread / 2;
}

std::vector<double> spreads_of_numbers() {
  std::vector<double> spreads;
  for (const InheritedNumber& each : inherited_numbers()) spreads.push_back(each.spread);
  return spreads;
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
  std::map<std::size_t, std::size_t> numbered;
  for (const std::size_t row : seen) {
    rows.cells.push_back(numbered.emplace(cells_[row], numbered.size()).first->second);
  }
  return rows;
}

/// Sum of soft-L1 losses of the errors of the rows seen, quadratic below spread_of_cells.
double StackFit::loss(const std::vector<std::size_t>& seen,
                      const std::vector<double>& coordinates) const {
  double sum = 0;
  for (const double error : errors(seen, coordinates)) {
    sum += hardware::soft_l1(error, spread_of_cells);
  }
  return sum;
}

FittedStack StackFit::fit(const std::vector<std::size_t>& seen,
                          const std::vector<double>& prior) const {
  FittedStack fitted{.prior = prior, .coordinates = prior, .spreads = {}, .factors = {}};
  if (seen.empty()) return fitted;
  const Posterior found = posterior_of(rows_at(seen, prior), spreads_of_numbers());
  const double before = loss(seen, prior);
  double share = 1;
  for (int halving = 0; halving <= most_halvings; ++halving, share /= 2) {
    for (std::size_t k = 0; k < prior.size(); ++k) {
      const InheritedNumber& number = inherited_numbers()[k];
      fitted.coordinates[k] = number.coordinate(number.value(prior[k] + share * found.moves[k]));
    }
    if (loss(seen, fitted.coordinates) <= before) break;
  }
  fitted.spreads = found.spreads;
  fitted.factors = found.factors;
  return fitted;
}

}  // namespace orrery::scenarios

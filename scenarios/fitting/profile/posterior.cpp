#include "scenarios/fitting/profile/posterior.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double huber = 1.5;   // spreads, beyond which an error counts linearly
constexpr double slow_job = 5;  // and beyond which by its logarithm
constexpr int most_rounds = 12;

/// The rows' slopes by number, then by cell, all in units of their spreads.
MatrixXd scaled_slopes(const LinearRows& rows, const VectorXd& spreads) {
  MatrixXd scaled(rows.errors.size(), spreads.size() + rows.cells.cols());
  scaled << rows.slopes * spreads.asDiagonal(), rows.cells * spread_of_cells;
  return scaled;
}

double half_square(double far) {
  return far * far / 2;
}

/// Cost of an error in spreads, and its weight: the slope of the cost over the error.
double cost_of_error(double far) {
  if (far < huber) return half_square(far);
  if (far < slow_job) return huber * far - half_square(huber);
  return huber * slow_job - half_square(huber) + huber * slow_job * std::log(far / slow_job);
}

double weight_of_error(double far) {
  if (far < huber) return 1;
  return huber / far * std::min(1.0, slow_job / far);
}

}  // namespace

double Posterior::spread(std::size_t number) const {
  return std::sqrt(covariance(number, number));
}

Posterior posterior_of(const LinearRows& rows, const VectorXd& spreads) {
  const Eigen::Index count = rows.errors.size();
  ensure(rows.slopes.rows() == count && rows.weights.size() == count && rows.cells.rows() == count,
         "every row has an error, slopes, a cell and a weight");
  const MatrixXd slopes = scaled_slopes(rows, spreads);
  const MatrixXd prior = MatrixXd::Identity(slopes.cols(), slopes.cols());
  const VectorXd usual = rows.weights / (spread_of_rows * spread_of_rows);
  VectorXd weights = usual, solution;
  Eigen::LLT<MatrixXd> normal;
  for (int round = 0; round < most_rounds; ++round) {
    normal.compute(prior + slopes.transpose() * weights.asDiagonal() * slopes);
    solution = normal.solve(slopes.transpose() * weights.cwiseProduct(rows.errors));
    const VectorXd far = (rows.errors - slopes * solution).cwiseAbs() / spread_of_rows;
    weights = usual.cwiseProduct(far.unaryExpr(&weight_of_error));
  }
  const Eigen::Index numbers = spreads.size();
  const MatrixXd inverse = normal.solve(prior);
  return {.moves = spreads.cwiseProduct(solution.head(numbers)),
          .covariance =
              spreads.asDiagonal() * inverse.topLeftCorner(numbers, numbers) * spreads.asDiagonal(),
          .factors = spread_of_cells * solution.tail(solution.size() - numbers)};
}

double misfit(const Posterior& at, const LinearRows& rows, const VectorXd& spreads) {
  double sum = at.moves.cwiseQuotient(spreads).squaredNorm() / 2 +
               (at.factors / spread_of_cells).squaredNorm() / 2;
  const VectorXd left = (rows.errors - rows.cells * at.factors).cwiseAbs() / spread_of_rows;
  sum += rows.weights.dot(left.unaryExpr(&cost_of_error));
  return sum;
}

}  // namespace orrery::scenarios

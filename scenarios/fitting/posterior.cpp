#include "scenarios/fitting/posterior.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using Column = std::vector<double>;
using Matrix = std::vector<Column>;  // square

constexpr double huber = 1.5;  // spreads, beyond which an error counts linearly
constexpr int most_rounds = 12;

/// Unknowns are the numbers, then a factor for each cell; all in units of their spreads.
class Regression {
 public:
  Regression(const LinearRows& rows, const std::vector<double>& spreads)
      : rows_{rows}, spreads_{spreads} {
    for (const std::size_t cell : rows.cells) cells_ = std::max(cells_, cell + 1);
  }

  std::size_t unknowns() const { return spreads_.size() + cells_; }

  double slope(std::size_t row, std::size_t unknown) const {
    if (unknown < spreads_.size()) return rows_.slopes[row][unknown] * spreads_[unknown];
    return rows_.cells[row] == unknown - spreads_.size() ? spread_of_cells : 0;
  }

  /// Fills matrix and right side of the normal equations for these row weights.
  void put_equations(const std::vector<double>& weights, Matrix& matrix, Column& right) const {
    matrix.assign(unknowns(), Column(unknowns(), 0));
    for (std::size_t i = 0; i < unknowns(); ++i) matrix[i][i] = 1;
    right.assign(unknowns(), 0);
    for (std::size_t row = 0; row < rows_.errors.size(); ++row) {
      const double weight = weights[row] / (spread_of_rows * spread_of_rows);
      for (std::size_t i = 0; i < unknowns(); ++i) {
        const double scaled = weight * slope(row, i);
        if (scaled == 0) continue;
        right[i] += scaled * rows_.errors[row];
        for (std::size_t j = 0; j < unknowns(); ++j) matrix[i][j] += scaled * slope(row, j);
      }
    }
  }

  double left(std::size_t row, const Column& solution) const {
    double error = rows_.errors[row];
    for (std::size_t i = 0; i < unknowns(); ++i) error -= slope(row, i) * solution[i];
    return error;
  }

 private:
  const LinearRows& rows_;
  const std::vector<double>& spreads_;
  std::size_t cells_ = 0;
};

/// Inverse of a symmetric positive definite matrix by Gauss-Jordan elimination, which needs no
/// pivoting.
Matrix inverse_of(Matrix matrix) {
  const std::size_t size = matrix.size();
  for (std::size_t pivot = 0; pivot < size; ++pivot) {
    const double scale = 1 / matrix[pivot][pivot];
    matrix[pivot][pivot] = 1;
    for (double& each : matrix[pivot]) each *= scale;
    for (std::size_t row = 0; row < size; ++row) {
      if (row == pivot) continue;
      const double share = std::exchange(matrix[row][pivot], 0);
      for (std::size_t j = 0; j < size; ++j) matrix[row][j] -= share * matrix[pivot][j];
    }
  }
  return matrix;
}

Column product(const Matrix& matrix, const Column& column) {
  Column result(column.size(), 0);
  for (std::size_t i = 0; i < column.size(); ++i) {
    for (std::size_t j = 0; j < column.size(); ++j) result[i] += matrix[i][j] * column[j];
  }
  return result;
}

}  // namespace

Posterior posterior_of(const LinearRows& rows, const std::vector<double>& spreads) {
  ensure(rows.errors.size() == rows.slopes.size() && rows.errors.size() == rows.cells.size(),
         "every row has an error, slopes and a cell");
  const Regression regression{rows, spreads};
  std::vector<double> weights(rows.errors.size(), 1);
  Matrix matrix, inverse;
  Column right, solution;
  for (int round = 0; round < most_rounds; ++round) {
    regression.put_equations(weights, matrix, right);
    inverse = inverse_of(matrix);
    solution = product(inverse, right);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double far = std::abs(regression.left(i, solution)) / (huber * spread_of_rows);
      weights[i] = 1 / std::max(1.0, far);
    }
  }
  Posterior found;
  for (std::size_t i = 0; i < regression.unknowns(); ++i) {
    if (i >= spreads.size()) {
      found.factors.push_back(spread_of_cells * solution[i]);
      continue;
    }
    found.moves.push_back(spreads[i] * solution[i]);
    found.spreads.push_back(spreads[i] * std::sqrt(inverse[i][i]));
  }
  return found;
}

double misfit(const Posterior& at, const std::vector<double>& errors,
              const std::vector<std::size_t>& cells, const std::vector<double>& spreads) {
  const auto half_square = [](double far) { return far * far / 2; };
  double sum = 0;
  for (std::size_t k = 0; k < spreads.size(); ++k) sum += half_square(at.moves[k] / spreads[k]);
  for (const double factor : at.factors) sum += half_square(factor / spread_of_cells);
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const double far = std::abs(errors[i] - at.factors[cells[i]]) / spread_of_rows;
    sum += far < huber ? half_square(far) : huber * far - half_square(huber);
  }
  return sum;
}

}  // namespace orrery::scenarios

// Recurrences of one number at a time, against the equations of their papers written out for two
// tokens.

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "executor/device/cpu/cpu_device.hpp"

namespace orrery::executor {
namespace {

using models::Operation;
using models::OpKind;
using models::ScanRule;
using models::ScanWork;

double silu(double x) {
  return x / (1 + std::exp(-x));
}
double softplus(double x) {
  return std::log1p(std::exp(x));
}

View rows_view(std::vector<double>& numbers, std::int64_t rows) {
  return {reinterpret_cast<std::byte*>(numbers.data()),
          models::DType::fp64,
          {1, rows, static_cast<std::int64_t>(numbers.size()) / rows}};
}

std::vector<double> scanned(const ScanWork& work, std::vector<double> projected,
                            std::vector<double> taps, std::int64_t rows_of_taps,
                            std::vector<double> numbers, std::int64_t rows_of_numbers,
                            std::vector<double> weights) {
  Operation op;
  op.kind = OpKind::scan;
  op.mutable_scan() = work;
  std::vector<double> out(2 * static_cast<std::size_t>(work.heads * work.value_dim));
  const View reads[] = {rows_view(projected, 2), rows_view(taps, rows_of_taps),
                        rows_view(numbers, rows_of_numbers), rows_view(weights, 1)};
  const View writes[] = {rows_view(out, 2)};
  CpuDevice device;
  device.run(
      {.operation = &op, .reads = reads, .writes = writes, .place = {.sequence = 2}, .adam = {}});
  return out;
}

TEST_CASE("Mamba-2 of one number: convolution, decay, skip and gated norm of two tokens") {
  // Columns gate, value, B, C, step; taps of the token before, of the token itself, and a bias.
  const std::vector<double> first{0.3, 0.5, -0.7, 0.9, 0.2}, second{-0.4, 1.1, 0.6, -0.8, 0.1};
  const double before[] = {0.2, -0.3, 0.4}, own[] = {0.7, 0.8, -0.5}, bias[] = {0.05, 0.1, -0.1};
  const double a = 0.3, skip = 0.6, step_bias = -0.2, weight = 1.7, epsilon = 0.5;
  double x[2], b[2], c[2], s[2];
  double* const inputs[] = {x, b, c};
  for (int j = 0; j < 3; ++j) {
    const auto column = static_cast<std::size_t>(j + 1);
    inputs[j][0] = silu(own[j] * first[column] + bias[j]);
    inputs[j][1] = silu(before[j] * first[column] + own[j] * second[column] + bias[j]);
  }
  s[0] = softplus(first[4] + step_bias);
  s[1] = softplus(second[4] + step_bias);
  const double state = s[0] * x[0] * b[0];
  const double later = std::exp(-s[1] * std::exp(a)) * state + s[1] * x[1] * b[1];
  const double g[] = {(state * c[0] + skip * x[0]) * silu(first[0]),
                      (later * c[1] + skip * x[1]) * silu(second[0])};

  std::vector<double> projected = first;
  projected.insert(projected.end(), second.begin(), second.end());
  const std::vector<double> out =
      scanned({.rule = ScanRule::mamba2,
               .chunks = 1,
               .chunk = 256,
               .taps = 2,
               .heads = 1,
               .value_dim = 1,
               .groups = 1,
               .state = 1,
               .epsilon = epsilon},
              projected,
              {before[0], before[1], before[2], own[0], own[1], own[2], bias[0], bias[1], bias[2]},
              3, {a, skip, step_bias}, 3, {weight});
  for (std::size_t t = 0; t < 2; ++t) {
    CHECK(out[t] == Approx(weight * g[t] / std::sqrt(g[t] * g[t] + epsilon)).epsilon(1e-12));
  }
}

TEST_CASE("The delta rule corrects what the state holds, head by head of one key") {
  // Columns query, key, two values; two gates; strength and step of each of the two heads. One tap,
  // so that the convolution is a factor.
  const std::vector<double> first{0.4, -0.9, 0.5, 1.2, 0.3, -0.6, 0.1, 0.2, -0.3, 0.4};
  const std::vector<double> second{-0.7, 0.8, -0.2, 0.6, 0.9, 0.5, -0.5, 0.3, 0.7, -0.1};
  const std::vector<double> taps{0.9, 1.1, 0.8, 1.3};
  const double a[] = {0.2, -0.4}, step_bias[] = {0.1, 0.3}, weight = 1.4, epsilon = 0.3;
  const auto unit = [](double x) { return x / std::sqrt(x * x + 1e-6); };
  const auto convolved = [&](const std::vector<double>& row, std::size_t column) {
    return silu(taps[column] * row[column]);
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };

  std::vector<double> projected = first;
  projected.insert(projected.end(), second.begin(), second.end());
  const std::vector<double> out =
      scanned({.rule = ScanRule::delta,
               .chunks = 1,
               .chunk = 64,
               .taps = 1,
               .heads = 2,
               .value_dim = 1,
               .groups = 1,
               .state = 1,
               .epsilon = epsilon},
              projected, taps, 1, {a[0], a[1], step_bias[0], step_bias[1]}, 2, {weight});
  for (std::size_t h = 0; h < 2; ++h) {
    double state = 0;
    const std::vector<double>* const rows[] = {&first, &second};
    for (std::size_t t = 0; t < 2; ++t) {
      const std::vector<double>& row = *rows[t];
      const double q = unit(convolved(row, 0)), k = unit(convolved(row, 1));
      const double strength = sigmoid(row[6 + 2 * h]);
      state *= std::exp(-std::exp(a[h]) * softplus(row[7 + 2 * h] + step_bias[h]));
      state += k * strength * (convolved(row, 2 + h) - state * k);
      const double y = state * q;
      CHECK(out[2 * t + h] ==
            Approx(weight * y / std::sqrt(y * y + epsilon) * silu(row[4 + h])).epsilon(1e-12));
    }
  }
}

}  // namespace
}  // namespace orrery::executor

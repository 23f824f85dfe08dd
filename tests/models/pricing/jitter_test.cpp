// What ranks wait for each other where kernels vary: order statistics against a simulation.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "models/pricing/jitter.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// A deviation of 1 around 0.
double deviation_of(JitterKind kind, std::mt19937_64& random) {
  if (kind == JitterKind::normal) return std::normal_distribution<>{}(random);
  return std::exponential_distribution<>{}(random)-1;
}

/// The longest of n sums of k deviations.
double simulated(JitterKind kind, int n, int k, std::mt19937_64& random) {
  double most = -1e9;
  for (int rank = 0; rank < n; ++rank) {
    double sum = 0;
    for (int i = 0; i < k; ++i) sum += deviation_of(kind, random);
    most = std::max(most, sum);
  }
  return most;
}

TEST_CASE("The last of n ranks with k kernels each is as late as a simulation says") {
  std::mt19937_64 random{7};
  for (const JitterKind kind : {JitterKind::normal, JitterKind::exponential}) {
    for (const auto& [n, k] :
         {std::pair{2, 1}, std::pair{8, 1}, std::pair{8, 12}, std::pair{64, 5}}) {
      constexpr int trials = 4000;
      double sum = 0, square = 0;
      for (int i = 0; i < trials; ++i) {
        const double most = simulated(kind, n, k, random);
        sum += most;
        square += most * most;
      }
      const double mean = sum / trials, variance = square / trials - mean * mean;
      const LargestOf expected = largest_of(kind, n, k);
      INFO("n " << n << " k " << k << " distribution " << static_cast<int>(kind));
      // Four standard errors of the mean; the variance's own is about a twentieth.
      CHECK(std::abs(mean - expected.mean) < 4 * std::sqrt(variance / trials));
      CHECK(std::abs(variance / expected.variance - 1) < 0.2);
    }
  }
}

TEST_CASE("Maxima that are known in closed form") {
  // Two standard normals: 1 / sqrt(pi). n exponentials: 1 + 1/2 + ... + 1/n, less their mean.
  CHECK(std::abs(largest_of(JitterKind::normal, 2, 1).mean - 1 / std::sqrt(std::acos(-1.0))) <
        1e-5);
  CHECK(std::abs(largest_of(JitterKind::normal, 1, 1).mean) < 1e-9);
  CHECK(std::abs(largest_of(JitterKind::exponential, 4, 1).mean - (1.0 / 2 + 1.0 / 3 + 1.0 / 4)) <
        1e-4);
}

Question jitter_question(const std::string& plan) {
  return models::question("gpt2", "dgx-a100-80gb x 2", plan + ",overlap=false");
}

Time step_with(Question question, Time deviation) {
  question.network.jitter = KernelJitter{JitterKind::exponential, deviation};
  return predict(question).step;
}

std::int64_t kernels_before_norm(const Program& program) {
  std::int64_t kernels = 0;
  for (const Instruction& each : program.classes[0].instructions) {
    if (each.op == Opcode::reduce_gradient) return kernels;
    if (each.op != Opcode::forward && each.op != Opcode::backward) continue;
    for (const Invocation& run : program.phases[each.target].invocations) {
      for (const Operation& op : program.blocks[run.block].operations) {
        kernels += op.kind != OpKind::collective && op.queue == Lane::compute ? run.count : 0;
      }
    }
  }
  return kernels;
}

TEST_CASE("Replicas that meet once a step wait for the last of all their kernels") {
  const Question question = jitter_question("micro_batch=1,global_batch=32,seq_len=1024,zero=0");
  const Prediction usual = predict(question);
  const Time deviation = 20_us;
  const std::int64_t kernels = kernels_before_norm(*usual.program);
  REQUIRE(kernels > 100);
  const double deviations = largest_of(JitterKind::exponential, 16, kernels).mean;
  const Time wait = scaled(deviation, deviations);
  // What comes after the reduction is the norm and the optimizer, whose few kernels vary, too.
  const Time longer = step_with(question, deviation) - usual.step;
  CHECK(longer >= wait);
  CHECK(longer < wait + scaled(deviation, 40));
}

TEST_CASE("Tensor groups wait at every collective of a layer, and more the more they vary") {
  const Question question = jitter_question("tensor=4,micro_batch=1,global_batch=32,seq_len=1024");
  const Time usual = predict(question).step;
  const Time little = step_with(question, 1_us) - usual, much = step_with(question, 4_us) - usual;
  CHECK(little > Time{});
  CHECK(much > little * 3);
  Question varied = question;
  varied.network.jitter = KernelJitter{JitterKind::normal, 4_us};
  CHECK(predict(varied).network.jitter > Time{});
}

}  // namespace
}  // namespace orrery::models

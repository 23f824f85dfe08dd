// Encoders that fill in masked tokens: which tokens those are, and that every cut computes what one
// rank does.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "executor/run/weights/masks.hpp"
#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Plan;
using models::Zero;

// 0.15 * 128 = 19.2; 0.15 * 2 = 0.3, and one is the least.
TEST_CASE("15 % of a sequence's tokens are to be filled in, at least one") {
  CHECK(masked_tokens(128) == 19);
  CHECK(masked_tokens(2) == 1);
}

// 1,000 samples of 100 tokens: 15 of each. Of 15,000 draws with p = 0.8 the deviation is 49, and a
// random token of 1,000 is the one that stood there once in 1,000.
TEST_CASE("Of masked tokens 8 in 10 become the last row, one a random token, one stays") {
  std::int64_t masked = 0, random = 0, kept = 0;
  for (std::int64_t sample = 0; sample < 1000; ++sample) {
    std::vector<std::int64_t> tokens(100), labels(101, 7);
    std::iota(tokens.begin(), tokens.end(), 0);
    mask({.seed = 1, .step = 3, .sample = sample, .vocabulary = 1000}, tokens, labels);
    CHECK(std::count(labels.begin(), labels.end(), -1) == 85);
    CHECK(labels.back() == 7);
    for (std::int64_t i = 0; i < 100; ++i) {
      const std::int64_t label = labels[static_cast<std::size_t>(i)];
      const std::int64_t token = tokens[static_cast<std::size_t>(i)];
      if (label < 0) {
        REQUIRE(token == i);
        continue;
      }
      REQUIRE(label == i);
      (token == 999 ? masked : token == i ? kept : random) += 1;
    }
  }
  CHECK(masked == Approx(12000).margin(200));
  CHECK(kept == Approx(1500).margin(150));
  CHECK(random == Approx(1500).margin(150));
}

std::vector<Cut> encoder_cuts() {
  std::vector<Cut> all;
  const auto add = [&](std::string name, auto change) {
    all.push_back(cut(std::move(name), small_bert(), change));
  };
  add("accumulation", [](Plan&) {});
  add("tensor 4", [](Plan& p) { p.tensor = 4; });
  add("sequence, recomputation", [](Plan& p) {
    p.tensor = 2;
    p.sequence_parallel = true;
    p.recompute.kind = models::Recompute::full;
  });
  add("attention recomputed, ZeRO-1", [](Plan& p) {
    p.data = 2;
    p.sharding.zero = Zero::one;
    p.sharding.bucket = Bytes{1};
    p.recompute.kind = models::Recompute::selective;
  });
  add("tensor, sequence, data, ZeRO-3", [](Plan& p) {
    p.tensor = p.data = 2;
    p.sequence_parallel = true;
    p.sharding.zero = Zero::three;
  });
  add("zb-h1, tensor", [](Plan& p) {
    p.pipeline = p.tensor = 2;
    p.stages.schedule = "zb-h1";
  });
  add("1f1b, tensor, sequence, data", [](Plan& p) {
    p.pipeline = p.tensor = p.data = 2;
    p.sequence_parallel = true;
    p.sharding.zero = Zero::one;
  });
  return all;
}

TEST_CASE("In the ring every cut of an encoder gives the bits of one rank") {
  check_in_ring(encoder_cuts());
}
TEST_CASE("In fp64 every cut of an encoder gives what one rank does, to rounding") {
  check_in_fp64(encoder_cuts());
}
TEST_CASE("In fp32 every cut of an encoder gives what one rank does, to its rounding") {
  check_in_fp32(encoder_cuts());
}

// log 37 is 3.61: what a model that knows nothing loses on a token of 37, however few have labels.
TEST_CASE("The loss is the mean over the tokens that are to be filled in") {
  const Outcome one = run({.model = small_bert(), .plan = small_plan()});
  CHECK(one.steps[0].loss == Approx(std::log(37)).epsilon(0.02));
}

TEST_CASE("A token that counts though it was not masked shows") {
  const auto planted = [](Kernel& kernel) {
    if (kernel.operation->kind != models::OpKind::cross_entropy_backward) return;
    auto* const labels = reinterpret_cast<std::int64_t*>(kernel.reads[1].data);
    *std::find(labels, labels + kernel.reads[1].elements(), -1) = 0;
  };
  const Outcome one = run({.model = small_bert(), .plan = small_plan()});
  const Outcome wrong = run({.model = small_bert(), .plan = small_plan(), .disturb = planted});
  CHECK(distance(wrong.gradients, one.gradients) > 1e-3);
}

}  // namespace
}  // namespace orrery::executor

// Documents that share a sequence.

#include <catch2/catch.hpp>

#include "tests/executor/world.hpp"

namespace orrery::executor {
namespace {

/// One stream of tokens, cut into samples that follow each other and share their edge.
class Stream final : public TokenSource {
 public:
  Time fill(std::int64_t step, std::int64_t sample, std::span<std::int64_t> to) const override {
    const auto length = static_cast<std::int64_t>(to.size()) - 1;
    for (std::int64_t i = 0; i <= length; ++i) {
      const std::int64_t at = step * 32 + sample * length + i;
      to[static_cast<std::size_t>(i)] = (at * at + 5 * at) % 37;
    }
    return {};
  }
};

/// `samples` sequences of 32 / samples tokens each, in documents of these lengths.
Outcome learned(
    const models::Model& model, std::int64_t samples, Arithmetic arithmetic,
    const std::vector<std::int64_t>& documents,
    const std::function<void(models::Plan&)>& change = [](models::Plan&) {}) {
  const Stream stream;
  models::Plan plan = small_plan(samples);
  plan.batch.seq_len = 32 / samples;
  plan.batch.documents = documents;
  change(plan);
  Job job{.model = model, .plan = plan, .arithmetic = arithmetic, .steps = 2};
  job.settings.tokens = &stream;
  return run(job);
}

TEST_CASE("Documents of four tokens packed in sequences of eight are sequences of four") {
  for (const models::Model& model : {small_gpt(), small_llama()}) {
    INFO(model.name);
    for (const Arithmetic arithmetic : {Arithmetic::ring, Arithmetic::real}) {
      const Outcome apart = learned(model, 8, arithmetic, {});
      const Outcome packed = learned(model, 4, arithmetic, {4});
      const Outcome together = learned(model, 4, arithmetic, {});
      if (arithmetic == Arithmetic::ring) {
        CHECK(same_bits(packed.gradients, apart.gradients));
        CHECK_FALSE(same_bits(together.gradients, apart.gradients));
      } else {
        CHECK(distance(packed.gradients, apart.gradients) < 1e-12);
        CHECK(packed.steps[1].loss == Approx(apart.steps[1].loss).epsilon(1e-12));
        CHECK(distance(together.gradients, apart.gradients) > 1e-3);
      }
    }
  }
}

TEST_CASE("Packed documents cut over ranks are those of one rank; the last is cut off") {
  // Of 3, 4 and again 3 tokens the last document has one.
  const models::Model model = small_llama();
  const Outcome one = learned(model, 4, Arithmetic::real, {3, 4});
  const Outcome many = learned(model, 4, Arithmetic::real, {3, 4}, [](models::Plan& plan) {
    plan.tensor = plan.pipeline = plan.data = 2;
    plan.sequence_parallel = true;
    plan.recompute.kind = models::Recompute::selective;
  });
  CHECK(distance(many.gradients, one.gradients) < 1e-12);
  CHECK(many.steps[1].loss == Approx(one.steps[1].loss).epsilon(1e-12));
}

}  // namespace
}  // namespace orrery::executor

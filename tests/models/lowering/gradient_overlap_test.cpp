#include <catch2/catch.hpp>

#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// Does some backward still run after the first reduction of gradients?
bool reduces_beside_backward(const Program& program) {
  bool reduced = false;
  for (const Instruction& each : program.classes[0].instructions) {
    reduced = reduced || each.op == Opcode::reduce_gradient;
    if (reduced && each.op == Opcode::backward) return true;
  }
  return false;
}

/// Two replicas of `tensor` ranks each, a bucket for every layer.
Program replicas(std::int64_t tensor, Zero zero, std::int64_t node_gpus,
                 const Software& software = plain_software()) {
  Plan plan;
  plan.tensor = tensor;
  plan.data = 2;
  plan.batch.global = 2;
  plan.batch.micro = 1;
  plan.batch.seq_len = 8;
  plan.sharding.zero = zero;
  plan.sharding.bucket = Bytes{1};
  const Model model = tiny_gpt(2);
  return lower(BlockInputs{model, plan, software, "other", node_gpus});
}

TEST_CASE("A stack may reduce sharded gradients only after backward") {
  Software software = plain_software();
  software.overlap.gradients = true;
  software.overlap.sharded_gradients = false;
  CHECK(reduces_beside_backward(replicas(1, Zero::none, 8, software)));
  CHECK_FALSE(reduces_beside_backward(replicas(1, Zero::one, 8, software)));
}

TEST_CASE("A profile that states one rule for gradients means it for sharded ones too") {
  Json profile = software_profile("generic");
  profile["overlap"]["gradients"] = false;
  profile["overlap"].erase("sharded_gradients");
  const Document document = Document::from(profile, "own");
  CHECK_FALSE(read_software(document.root()).overlap.sharded_gradients);
}

TEST_CASE(
    "On some stacks gradients do not hide where tensor groups of several nodes use the NICs") {
  Software software = plain_software();
  CHECK(reduces_beside_backward(replicas(2, Zero::none, 1, software)));
  software.overlap.gradients_across_tensor = false;
  CHECK(reduces_beside_backward(replicas(2, Zero::none, 2, software)));
  CHECK_FALSE(reduces_beside_backward(replicas(2, Zero::none, 1, software)));
}

}  // namespace
}  // namespace orrery::models

#include <catch2/catch.hpp>

#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// What `--plan` with this plan's text becomes.
Plan read_back(const Plan& plan) {
  const Document document = Document::from(plan_from_text(to_text(plan)), "--plan");
  std::vector<std::string> assumptions;
  return read_plan(document.root(), tiny_gpt(8), plan.gpus(), assumptions);
}

/// One plan for each value of each field that is a choice, and odd values of those that count.
std::vector<Plan> plans_of_every_field() {
  std::vector<Plan> plans(1);
  plans.front().seq_len = 8;
  const Plan plain = plans.front();
  const auto add = [&](auto change) {
    plans.push_back(plain);
    change(plans.back());
  };
  for (const Zero each : {Zero::one, Zero::two, Zero::three}) {
    add([&](Plan& plan) { plan.data = 4, plan.zero = each; });
  }
  for (const Precision each : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                               Precision::fp8, Precision::fp64}) {
    add([&](Plan& plan) { plan.precision = each; });
  }
  for (const Recompute each : {Recompute::selective, Recompute::full}) {
    add([&](Plan& plan) { plan.recompute = each; });
  }
  for (const char* each : {"naive", "gpipe", "1f1b"}) {
    add([&](Plan& plan) { plan.pipeline = 2, plan.schedule = each; });
    add([&](Plan& plan) { plan.pipeline = 2, plan.virtual_stages = 2, plan.schedule = each; });
  }
  add([](Plan& plan) {
    plan.pipeline = 2, plan.virtual_stages = 4, plan.schedule = "interleaved-1f1b";
  });
  add([](Plan& plan) { plan.compression = Compression::fp16; });
  for (const double share : {0.01, 0.3, 1.0, 1e-7}) {
    add([&](Plan& plan) { plan.compression = Compression::top_k, plan.compression_share = share; });
  }
  add([](Plan& plan) { plan.tensor = 2, plan.sequence_parallel = true; });
  add([](Plan& plan) { plan.overlap_gradients = false; });
  add([](Plan& plan) { plan.bucket = 26'214'401_B; });
  add([](Plan& plan) { plan.pipeline = 3, plan.stage_layers = {2, 3, 3}; });
  add([](Plan& plan) { plan.embedding_counts = true; });
  add([](Plan& plan) { plan.pipeline = 2, plan.embedding_counts = true; });
  add([](Plan& plan) { plan.cuda_graphs = true; });
  add([](Plan& plan) { plan.data = 3, plan.micro_batch = 5, plan.global_batch = 75; });
  return plans;
}

TEST_CASE("The text of a plan is the plan, for every value of every field") {
  for (const Plan& each : plans_of_every_field()) {
    INFO(to_text(each));
    CHECK(to_text(each).find(' ') == std::string::npos);
    CHECK(to_json(read_back(each)) == to_json(each));
  }
}

TEST_CASE("The text of a pipeline says whether embedding and head count, whatever the stack does") {
  // BLOOM's stack counts them where a plan does not say.
  Plan plan;
  plan.pipeline = 2;
  plan.seq_len = 8;
  CHECK(to_text(plan) ==
        "tensor=1,pipeline=2,data=1,micro_batch=1,global_batch=1,seq_len=8,precision=bf16,"
        "recompute=none,embedding_counts=false");
}

}  // namespace
}  // namespace orrery::models

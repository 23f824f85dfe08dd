#include "models/software/runnable.hpp"

#include <catch2/catch.hpp>

#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

RunnablePlans read_runs(const std::string& text) {
  const Document document = Document::parse(text, "mine.json");
  return read_runnable(document.root());
}

TEST_CASE("Every shipped profile says with a source which ZeRO stages its stack runs") {
  for (const std::string& name : software_names()) {
    INFO(name);
    const Software software = catalogue_software(name);
    CHECK(software.runs.source.size() > 20);
    CHECK(!software.runs.zero.empty());
  }
  // --use-distributed-optimizer is all that Megatron-LM had; FSDP wraps what it shards.
  CHECK(stages_of(catalogue_software("megatron-lm").runs) == "0, 1");
  CHECK(stages_of(catalogue_software("pytorch-fsdp").runs) == "0, 2, 3");
  CHECK(stages_of(catalogue_software("deepspeed").runs) == "0, 1, 2, 3");
}

TEST_CASE("Stages rise, and have a source") {
  CHECK(stages_of(read_runs(R"({"zero": [0, 3], "source": "its manual"})")) == "0, 3");
  CHECK_THROWS_WITH(read_runs(R"({"zero": [1, 0], "source": "its manual"})"),
                    "mine.json:/zero/1: stages must rise");
  CHECK_THROWS_WITH(read_runs(R"({"zero": [], "source": "its manual"})"),
                    "mine.json:/zero: expected ZeRO stages from 0 to 3, found []");
  CHECK_THROWS_WITH(read_runs(R"({"zero": [0]})"), "mine.json:/source: missing");
}

TEST_CASE("What a stack does not run of a plan is reported, and nothing of one that says nothing") {
  Plan plan;
  plan.data = 2;
  plan.tensor = 2;
  plan.pipeline = 2;
  plan.sharding.zero = Zero::three;
  const RunnablePlans plans =
      read_runs(R"({"zero": [0, 1], "tensor": false, "pipeline": false, "source": "its manual"})");
  CHECK(
      not_run(plan, plans, "mine") ==
      std::vector<std::string>{"/plan/zero: ZeRO stage 3 is not supported by mine; supported: 0, 1",
                               "/plan/tensor: mine has no tensor parallelism",
                               "/plan/pipeline: mine has no pipeline parallelism"});
  CHECK(not_run(plan, RunnablePlans{}, "mine").empty());
}

TEST_CASE("What a stack lacks to send tokens to experts, or to overlap that, is reported") {
  const RunnablePlans plans = read_runs(R"({"zero": [0, 1], "dispatchers": ["alltoall", "deepep"],
               "expert_overlaps": ["shared", "micro-batches"],
               "recompute_modules": ["core_attn", "mlp"], "source": "its manual"})");
  CHECK(plans.recompute_modules == std::vector{RecomputeModule::core_attn, RecomputeModule::mlp});
  Plan plan;
  plan.experts.ranks = 8;
  plan.experts.dispatcher = Dispatcher::deepep;
  CHECK(runs_experts(plan, plans));
  const auto says = [&](const std::string& words) {
    CHECK_FALSE(runs_experts(plan, plans));
    CHECK(not_run(plan, plans, "mine") == std::vector<std::string>{words});
    CHECK(runs_experts(plan, RunnablePlans{}));  // a profile that does not say
  };
  plan.experts.overlap = ExpertOverlap::shared;
  says("/plan/expert_overlap: shared of mine needs dispatcher alltoall");
  plan.experts.overlap = ExpertOverlap::micro_batches;
  CHECK(runs_experts(plan, plans));
  plan.recompute.kind = Recompute::full;
  says("/plan/expert_overlap: micro-batches of mine excludes recompute full");
  plan.recompute.kind = Recompute::selective;
  plan.pipeline = 2;
  says("/plan/expert_overlap: micro-batches of mine needs virtual_stages above 1 in a pipeline");
  plan.stages.virtual_stages = 2;
  CHECK(runs_experts(plan, plans));
  plan.experts.ranks = 1;
  says("/plan/expert_overlap: micro-batches of mine needs expert above 1");
  plan.experts.overlap = ExpertOverlap::none;
  plan.experts.dispatcher = Dispatcher::hybridep;
  says("/plan/dispatcher: mine does not support hybridep");
}

}  // namespace
}  // namespace orrery::models

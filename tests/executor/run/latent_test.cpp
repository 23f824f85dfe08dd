// Latent attention: every cut computes what one rank does, and faults in what heads share show.

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Model;
using models::ModelDraft;
using models::OpKind;
using models::Plan;
using models::Zero;

/// As DeepSeek V3: a dense layer first, then experts by sigmoids of groups, a shared one, positions
/// beyond those it was trained with first.
Model group_routed() {
  ModelDraft model = draft_of(with_experts(small_deepseek()));
  model.name += "-by-groups";
  model.experts.shared_width = 8;
  model.dense = models::dense_layers(model.depth, 1, 1);
  model.dense_width = 16;
  model.experts.routing = {.score = models::Routing::Score::sigmoid,
                           .corrected = true,
                           .groups = 2,
                           .groups_kept = 1,
                           .best_of_group = 2,
                           .scale = 2.5};
  model.embedding.rotary.magnitude = 1.1;
  model.embedding.rotary.score_factor = 1.3;
  return built(std::move(model));
}

std::vector<Cut> latent_cuts() {
  std::vector<Cut> all;
  const Model direct = changed(small_deepseek(), [](ModelDraft& model) {
    model.name = "small-deepseek-direct";
    model.attention.latents->query_rank = 0;
  });
  for (const Model& model : {small_deepseek(), direct}) {
    const auto add = [&](std::string name, auto change) {
      all.push_back(cut(name + " of " + model.name, model, change));
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
  }
  const Model experts = changed(with_experts(small_deepseek()),
                                [](ModelDraft& model) { model.experts.shared_width = 8; });
  all.push_back(cut("experts, one shared", experts, [](Plan& p) {
    p.data = p.experts.ranks = 2;
    p.sharding.zero = Zero::one;
  }));
  const Model routed = group_routed();
  const auto add = [&](std::string name, auto change) {
    all.push_back(cut(name + " of groups of experts", routed, change));
  };
  add("shards", [](Plan& p) {
    p.data = 2;
    p.sharding.zero = Zero::three;
  });
  add("tensor ranks and stages", [](Plan& p) {
    p.tensor = p.pipeline = 2;
    p.sequence_parallel = true;
    p.sharding.zero = Zero::one;
  });
  add("zb-h1, replicas", [](Plan& p) {
    p.pipeline = p.data = p.experts.ranks = 2;
    p.stages.schedule = "zb-h1";
  });
  return all;
}

TEST_CASE("In the ring every cut of latent attention gives the bits of one rank") {
  check_in_ring(latent_cuts());
}
TEST_CASE("In fp64 every cut of latent attention gives what one rank does, to rounding") {
  check_in_fp64(latent_cuts());
}
TEST_CASE("In fp32 every cut of latent attention gives what one rank does, to its rounding") {
  check_in_fp32(latent_cuts());
}

// In 16 bits attention is one kernel, in 32 products per head: 8 bits of mantissa in some dozens of
// operations.
TEST_CASE("Latent attention in bf16 is as near to fp32 as other attention is") {
  Plan plan = small_plan();
  plan.formats.precision = models::Precision::fp32;
  const Outcome wide = run({.model = small_deepseek(), .plan = plan});
  plan.formats.precision = models::Precision::bf16;
  plan.tensor = 2;
  const Outcome narrow = run({.model = small_deepseek(), .plan = plan});
  CHECK(distance(narrow.gradients, wide.gradients) < 5e-2);
  CHECK(narrow.steps[0].loss == Approx(wide.steps[0].loss).epsilon(1e-3));
}

TEST_CASE("A rank that forgets its heads' share of the rotated keys' gradient shows") {
  Plan plan = small_plan();
  const Outcome one = run({.model = small_deepseek(), .plan = plan});
  plan.tensor = 2;
  const auto forget = [](Kernel& kernel) {
    const bool product = kernel.operation->name == "key_value_up.dgrad";
    if (!product || kernel.operation->kind != OpKind::gemm) return;
    const View& shared = kernel.reads[2];
    std::fill_n(reinterpret_cast<double*>(shared.data), shared.elements(), 0.0);
  };
  const Outcome right = run({.model = small_deepseek(), .plan = plan});
  const Outcome wrong = run({.model = small_deepseek(), .plan = plan, .disturb = forget});
  CHECK(distance(right.gradients, one.gradients) < 1e-12);
  CHECK(distance(wrong.gradients, one.gradients) > 1e-3);
}

TEST_CASE("What of latent attention is not executed is refused by name") {
  const auto why = [](auto change) {
    ModelDraft model = draft_of(small_deepseek());
    Plan plan = small_plan();
    change(model, plan);
    return lowered(built(model), plan).inexact_feature;
  };
  CHECK(why([](ModelDraft&, Plan&) {}).empty());
  CHECK(why([](ModelDraft& m, Plan&) { m.embedding.positions = models::Positions::none; }) ==
        "latent attention without rotary positions");
  CHECK(why([](ModelDraft& m, Plan&) { m.attention.latents->rotary_dim = 3; }) ==
        "rotary positions with an odd rotary_dim 3");
  CHECK(why([](ModelDraft&, Plan& p) { p.task = models::Task::lora; }) ==
        "adapters of latent attention");
  CHECK(why([](ModelDraft&, Plan& p) { p.formats.precision = models::Precision::fp8; }) ==
        "latent attention in fp8");
}

}  // namespace
}  // namespace orrery::executor

// Modules that predict further tokens (MTP): what they hold and compute, by hand.

#include <catch2/catch.hpp>

#include <algorithm>

#include "models/model/counts.hpp"
#include "models/program/check/check.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// A Llama of h = 8, f = 16, 16 tokens of vocabulary, two layers and so many modules.
Model predicting(std::int64_t modules, bool tied = false) {
  ModelDraft model = draft_of(tiny_gpt(2));
  model.family = Family::llama;
  model.norms.kind = Norm::rms_norm;
  model.embedding.positions = Positions::rotary;
  model.mlp.gated = true;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = model.norms.bias =
      false;
  model.embedding.tied = tied;
  model.mlp.width = 16;
  model.prediction_layers = modules;
  return built(std::move(model));
}

Plan plan_of(std::int64_t pipeline, std::int64_t data = 1) {
  Plan plan;
  plan.pipeline = pipeline;
  plan.data = data;
  plan.batch.global = 4 * data;
  plan.batch.seq_len = 8;
  return plan;
}

Program lowered(const Model& model, const Plan& plan) {
  const Software software = plain_software();
  Program program = lower(BlockInputs{model, plan, software});
  check(program);
  return program;
}

std::int64_t held(const Program& program) {
  std::int64_t sum = 0;
  for (const RankClass& ranks : program.classes) sum += ranks.parameters;
  return sum;
}

Flops head_flops(const Model& model) {
  const Program program = lowered(model, plan_of(1));
  return program.blocks[program.kind(ModelPart::head).forward].flops();
}

TEST_CASE("A module that predicts a further token is a layer, a joining matrix and three norms") {
  // Attention 4 x 8 x 8, gated MLP 3 x 8 x 16, two norms of 8: 656. Joining matrix 2 x 8 x 8 and
  // norms of both its inputs and before the head: 128 + 24.
  for (const std::int64_t modules : {1, 3}) {
    const Model model = predicting(modules);
    CHECK(model.parameters - predicting(0).parameters == modules * (656 + 128 + 24));
    CHECK(held(lowered(model, plan_of(1))) == model.parameters);
  }
}

TEST_CASE("It computes a layer, 2 T (2h) h, and the head once more") {
  // T = 8 tokens: the layer's products 2 T (256 + 384), its attention 2 T 8 x 4 x 2 (half of the
  // square), the joining matrix 2 T x 128 and the head 2 T x 128.
  const Flops layer{2 * 8 * 640 + 2 * 8 * 64};
  const Flops rest{2 * 8 * 128 + 2 * 8 * 128};
  const Flops more = head_flops(predicting(1)) - head_flops(predicting(0));
  CHECK(more.count() >= (layer + rest).count());
  CHECK(more.count() <= (layer + rest).count() + 2 * 8 * 64);  // the unfused square is whole
  const auto counted = [](std::int64_t modules) {
    return forward_flops_per_token(predicting(modules), 8);
  };
  CHECK(counted(1) - counted(0) == Approx((layer + rest).count() / 8.0));
}

TEST_CASE(
    "On the last stage of a pipeline it reads a copy of the table, whose gradients are summed") {
  // The table is 16 x 8; without the module nothing is copied.
  Plan halves = plan_of(2);
  halves.stages.layers = {1, 1};
  const Program alone = lowered(predicting(0), halves);
  const Program with = lowered(predicting(1), halves);
  CHECK(held(alone) == predicting(0).parameters);
  CHECK(held(with) == predicting(1).parameters + 128);
  const auto tie = std::find_if(with.collectives.begin(), with.collectives.end(),
                                [](const auto& each) { return each.name == "tied embedding"; });
  REQUIRE(tie != with.collectives.end());
  CHECK(tie->bytes == Bytes{128 * 4});
  CHECK(with.classes[0].parameters == alone.classes[0].parameters);
}

TEST_CASE("A tied head's table serves what predicts further tokens, too") {
  for (const std::int64_t stages : {1, 2}) {
    const Program program = lowered(predicting(2, true), plan_of(stages));
    CHECK(held(program) == predicting(2, true).parameters + (stages - 1) * 128);
  }
}

TEST_CASE("A module's experts are reduced among their own replicas") {
  const Model model = changed(predicting(1), [](ModelDraft& draft) {
    draft.experts.count = 4;
    draft.experts.per_token = 2;
  });
  Plan plan = plan_of(2, 4);
  plan.experts.ranks = 2;
  plan.experts.tensor = 1;
  plan.sharding.zero = Zero::one;
  const Program program = lowered(model, plan);
  const auto of_head =
      std::find_if(program.units.begin(), program.units.end(),
                   [](const Unit& each) { return each.name == "experts of head"; });
  REQUIRE(of_head != program.units.end());
  CHECK(of_head->elements == 2 * 3 * 8 * 16);  // two of the four experts
  CHECK(of_head->sharded.has(MeshAxis::expert_data));
}

TEST_CASE("ZeRO-3, recomputation, split backwards and adapters go through such a head") {
  const Model model = predicting(2);
  Plan sharded = plan_of(1, 4);
  sharded.sharding.zero = Zero::three;
  // Two layers, and one unit of what shares the table.
  CHECK(lowered(model, sharded).units.size() == 3);
  Plan again = plan_of(2);
  again.recompute.kind = Recompute::full;
  lowered(model, again);
  Plan split = plan_of(2);
  split.stages.schedule = "zb-h1";
  lowered(model, split);
  Plan adapters = plan_of(1);
  adapters.task = Task::lora;
  adapters.adapters.rank = 1;
  // Of each of four layers 8 + 24 for qkv and 8 + 8 for the projection.
  CHECK(held(lowered(model, adapters)) == 4 * (32 + 16));
}

TEST_CASE("A module of several layers runs them in turn, and modules may share their weights") {
  // A layer of attention alone, 4 x 8 x 8 + 8, and one of an MLP alone, 3 x 8 x 16 + 8: together
  // the layer above, 656. Joining matrix and norms: 128 + 24.
  const auto model = [](std::int64_t modules, bool shared) {
    ModelDraft draft = draft_of(predicting(modules));
    const Layer both = predicting(modules).layers.back();
    draft.prediction_module = {{both.mixer, NoPart{}}, {NoPart{}, both.channel}};
    draft.prediction_shared = shared;
    return built(std::move(draft));
  };
  const std::int64_t module = 656 + 128 + 24, none = predicting(0).parameters;
  for (const std::int64_t modules : {1, 2, 3}) {
    const Model apart = model(modules, false), shared = model(modules, true);
    CHECK(apart.parameters == none + modules * module);
    CHECK(shared.parameters == none + module);
    for (const Model& each : {apart, shared}) {
      CHECK(held(lowered(each, plan_of(1))) == each.parameters);
      CHECK(head_flops(each) == head_flops(predicting(modules)));
      CHECK(forward_flops_per_token(each, 8) ==
            Approx(forward_flops_per_token(predicting(modules), 8)));
    }
  }
}

TEST_CASE("Nemotron 3 Super predicts two further tokens with one module") {
  // Attention 4096 x (32 + 4 + 32) x 128; router, latents, 512 experts and the shared one:
  // 4096 x 512 + 2 x 4096 x 1024 + 512 x 2 x 1024 x 2688 + 2 x 4096 x 5376; joining matrix
  // 2 x 4096^2; norms of both layers and three more.
  const std::int64_t h = 4096;
  const std::int64_t module = h * 68 * 128 + h * 512 + 2 * h * 1024 +
                              std::int64_t{512} * 2 * 1024 * 2688 + 2 * h * 5376 + 2 * h * h +
                              5 * h;
  const Model model = catalogue_model("nemotron-3-super-120b-a12b");
  CHECK(model.prediction_layers == 2);
  CHECK(model.parameters == 120'668'687'360 + module);
}

TEST_CASE("DeepSeek-V3 has one such module, 11.6 billion of its parameters") {
  // Its publication counts 671 B without: 671,026,404,352. The module: latent attention
  // 187,107,328, 257 experts of 3 x 7168 x 2048, router 7168 x 256, joining matrix
  // 2 x 7168^2 and five norms of 7168.
  // Source  deepseek-ai/DeepSeek-V3, README_WEIGHTS.md: 11.5 B parameters unique to it
  const std::int64_t module = 187'107'328 + 257 * 3 * std::int64_t{7168} * 2048 + 7168 * 256 +
                              2 * std::int64_t{7168} * 7168 + 5 * 7168;
  const Model model = catalogue_model("deepseek-v3");
  CHECK(model.parameters == 671'026'404'352 + module);
  CHECK(model.parameters == count_parameters(model));
}

}  // namespace
}  // namespace orrery::models

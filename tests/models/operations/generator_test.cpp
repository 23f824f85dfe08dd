// ELECTRA: an encoder and the smaller one that makes up tokens for it, by hand.

#include <catch2/catch.hpp>

#include <algorithm>

#include "models/model/counts.hpp"
#include "models/program/check/check.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// h = 8 of 2 heads, f = 32, two layers, and a generator of this width.
Model electra(std::int64_t width) {
  Model model = tiny_gpt(2);
  model.family = Family::bert;
  model.causal = false;
  model.norms.final = model.embedding.tied = false;
  model.norms.embedding = model.head.transform = true;
  model.embedding.token_types = 2;
  model.head.task_outputs = 1;
  model.generator_hidden = width;
  return changed(model, [](ModelDraft&) {});
}

Program lowered(const Model& model, double predicted_share = 0.25) {
  Plan plan;
  plan.batch.global = 1;
  plan.batch.seq_len = 8;
  Software software = plain_software();
  software.kernels.predicted_share = predicted_share;
  Program program = lower(BlockInputs{model, plan, software});
  check(program);
  return program;
}

TEST_CASE("A generator has its own layers, two matrices and a bias; the tables are its model's") {
  // Of width 4: layers of 12 x 4 x 4 + 9 x 4 + 4 x 4 (MLP of 16, its biases and the norms' four
  // vectors): 192 + 52 each; 2 x 8 x 4 + 4 in and out, and 16 biases.
  const std::int64_t own = 2 * (192 + 52) + 2 * 8 * 4 + 4 + 16;
  CHECK(electra(4).parameters - electra(0).parameters == own);
  CHECK(lowered(electra(4)).classes[0].parameters == electra(4).parameters);
}

TEST_CASE("Its head predicts the masked share of the tokens") {
  // Two of eight tokens: 2 x 2 x (4 x 8 + 8 x 16).
  const Program program = lowered(electra(4));
  const Block& block = program.blocks[program.kind(ModelPart::embedding).forward];
  Flops head{};
  for (const Operation& op : block.operations) {
    const bool of_head = op.name.rfind("generator.head.", 0) == 0;
    if (of_head && op.kind == OpKind::gemm) head += op.flops;
  }
  CHECK(head == Flops{2 * 2 * (4 * 8 + 8 * 16)});
  const Block& alone = lowered(electra(0)).blocks[program.kind(ModelPart::embedding).forward];
  CHECK(block.flops() > alone.flops() + head);
}

TEST_CASE("The FLOPs of a model count all products that its Program runs, the generator's too") {
  // A token's forward, h = 8, f = 32, V = 16, 8 tokens. Of the model: two layers of 4 x 64 + 2 x 8
  // x 32 = 768 weights, a transform of 64 and a head of 8; attention to 8 tokens of 2 x 8 columns.
  // Of its generator, of width 4: two layers of 192 weights, 2 x 32 in and out, a head of 16 x 8;
  // attention to 8 tokens of 2 x 4 columns.
  const std::int64_t own = 2 * (2 * 768 + 64 + 8) + 2 * 2 * 8 * 16;
  const std::int64_t generated = 2 * (2 * 192 + 2 * 32 + 128) + 2 * 2 * 8 * 8;
  for (const auto& [width, flops] : {std::pair{0, own}, std::pair{4, own + generated}}) {
    const Model model = electra(width);
    const Program program = lowered(model, 1);
    Flops forward{};
    for (const Invocation& run : program.phases[program.chunks[0].forward].invocations) {
      forward += program.blocks[run.block].flops() * run.count;
    }
    CHECK(forward == Flops{8 * flops});
    CHECK(forward_flops_per_token(model, 8) == static_cast<double>(flops));
  }
}

}  // namespace
}  // namespace orrery::models

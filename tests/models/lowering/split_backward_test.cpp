#include <algorithm>
#include <catch2/catch.hpp>

#include "models/program/memory.hpp"
#include "models/program/walk.hpp"
#include "tests/models/ledger.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Plan pipeline_of(std::int64_t stages, const std::string& schedule) {
  Plan plan;
  plan.pipeline = stages;
  plan.batch.global = 2 * stages;
  plan.stages.schedule = schedule;
  plan.formats.precision = Precision::fp32;
  return plan;
}

std::vector<std::string> names_of(const Block& block) {
  std::vector<std::string> names;
  for (const Operation& op : block.operations) names.push_back(op.name);
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Flops flops_of_step(const Program& program) {
  Flops sum{};
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) sum += ledger_of(program, c).flops;
  return sum;
}

}  // namespace

TEST_CASE(
    "Split, a layer's backward keeps what leads to its input; the rest are weight gradients") {
  const Program program = tiny_program(pipeline_of(2, "zb-h1"), 2);
  const LayerKind& layer = program.kind(ModelPart::layer);
  REQUIRE(layer.weight_gradient);
  const std::vector<std::string> back = names_of(program.blocks[layer.backward]);
  const std::vector<std::string> weights = names_of(program.blocks[*layer.weight_gradient]);
  for (const char* linear : {"qkv", "projection", "up", "down"}) {
    CAPTURE(linear);
    CHECK(has(back, std::string{linear} + ".dgrad"));
    CHECK_FALSE(has(back, std::string{linear} + ".wgrad"));
    CHECK(has(weights, std::string{linear} + ".wgrad"));
  }
  CHECK(has(back, "norm1.backward"));  // one kernel makes both gradients of a norm
  CHECK(program.blocks[*layer.weight_gradient].find("x.grad") == std::nullopt);
}

TEST_CASE("Whatever is split computes and keeps as much as before, but for how long") {
  const Program whole = tiny_program(pipeline_of(2, "1f1b"), 2);
  const Program split = tiny_program(pipeline_of(2, "zb-h1"), 2);
  CHECK(flops_of_step(split) == flops_of_step(whole));
  const RankClass &before = whole.classes[0], &after = split.classes[0];
  const auto bytes = [](const RankClass& ranks, std::uint16_t type) {
    return ranks.types[type].bytes;
  };
  const ChunkBuffers& own = after.chunk_buffers[0];
  CHECK(bytes(after, own.saved) + bytes(after, own.kept) ==
        bytes(before, before.chunk_buffers[0].saved));
  // By hand, 8 tokens of h = 8 in fp32, per layer. What the four products read: norm1.out,
  // attention.out and norm2.out of h each, the activation of 4h: 7h. What backward makes for them:
  // gradients of qkv (3h), projection (h), up (4h) and down (h, the arriving one): 9h. And what
  // arrives at the embedding.
  const std::int64_t h = 8 * 8 * 4;
  CHECK(bytes(after, own.kept).count() == 7 * h);
  CHECK(bytes(after, own.delayed).count() == 9 * h + h);
}

TEST_CASE("Each layer of a chunk keeps and delays what one layer does") {
  // As above, with 1, 2 and 4 layers on each of two stages: 7h and 9h for each of them, and once
  // what arrives at the embedding.
  const std::int64_t h = 8 * 8 * 4;
  for (const std::int64_t layers : {1, 2, 4}) {
    const Program program = tiny_program(pipeline_of(2, "zb-h1"), 2 * layers);
    const RankClass& first = program.classes[0];
    const ChunkBuffers& own = first.chunk_buffers[0];
    CAPTURE(layers);
    CHECK(first.types[own.kept].bytes.count() == layers * 7 * h);
    CHECK(first.types[own.delayed].bytes.count() == layers * 9 * h + h);
  }
}

TEST_CASE("H1 holds as many micro-batches as 1F1B, H2 nearly twice as many") {
  const auto peak = [](const std::string& schedule) {
    const Program program = tiny_program(pipeline_of(4, schedule), 4);
    const auto activations = static_cast<std::size_t>(BufferKind::activation);
    return static_cast<double>(memory_peaks(program)[0].by_kind[activations].count());
  };
  CHECK(peak("zb-h1") <= 1.15 * peak("1f1b"));  // and one layer's delayed gradients
  CHECK(peak("zb-h2") == Approx(7.0 / 4 * peak("zb-h1")).epsilon(0.1));
}

TEST_CASE("Gradients are reduced after the last weight gradients of their chunk") {
  Plan plan = pipeline_of(2, "zb-h1");
  plan.data = 2;
  plan.batch.global *= 2;
  Software software = plain_software();
  software.overlap.bucket = Bytes{1};
  const Program program = tiny_program(plan, 4, software);
  check(program);
  for (const RankClass& ranks : program.classes) {
    for (std::size_t i = 1; i < ranks.instructions.size(); ++i) {
      if (ranks.instructions[i].op != Opcode::reduce_gradient) continue;
      CHECK(ranks.instructions[i - 1].op == Opcode::weight_gradient);
    }
  }
}

TEST_CASE("The last stage leaves so many gradients of the head's weights until it is done") {
  Plan plan = pipeline_of(2, "1f1b");
  plan.batch.global = 8;
  const Program whole = tiny_program(plan, 2);
  plan.stages.deferred_head_gradients = 3;
  const Program program = tiny_program(plan, 2);
  check(program);
  CHECK(flops_of_step(program) == flops_of_step(whole));
  CHECK_FALSE(program.kind(ModelPart::layer).weight_gradient);
  CHECK_FALSE(program.kind(ModelPart::embedding).weight_gradient);
  REQUIRE(program.kind(ModelPart::head).weight_gradient);
  const auto order = [](const RankClass& ranks) {
    std::string text;
    for (const Instruction& each : ranks.instructions) {
      if (each.op == Opcode::backward) text += " B" + std::to_string(each.micro_batch);
      if (each.op == Opcode::weight_gradient) text += " W" + std::to_string(each.micro_batch);
    }
    return text;
  };
  CHECK(order(program.classes[1]) == " B0 B1 B2 B3 W3 B4 W4 B5 W5 B6 W6 B7 W7 W0 W1 W2");
  CHECK(order(program.classes[0]) == " B0 B1 B2 B3 B4 B5 B6 B7");
  CHECK(text_of(program).find("kept.c0") == std::string::npos);
}

TEST_CASE("Layers' gradients are reduced when they are complete, deferred ones of the head later") {
  Plan plan = pipeline_of(2, "1f1b");
  plan.data = 2;
  plan.batch.global *= 2;
  plan.stages.deferred_head_gradients = 50;
  Software software = plain_software();
  software.overlap.bucket = Bytes{1};
  const Program program = tiny_program(plan, 4, software);
  check(program);
  std::vector<Opcode> before;
  const std::vector<Instruction>& list = program.classes[1].instructions;
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (list[i].op == Opcode::reduce_gradient) before.push_back(list[i - 1].op);
  }
  REQUIRE(before.size() == 3);  // two layers and the head
  CHECK(before.front() == Opcode::backward);
  CHECK(before.back() == Opcode::weight_gradient);
}

TEST_CASE("A pipeline's step is shorter by what its last stage does when the others end") {
  const std::string plan = "tensor=4,pipeline=4,global_batch=64,seq_len=2048,precision=bf16";
  const auto step = [&](const std::string& more) {
    return predict(question("llama3-70b", "dgx-h100 x 4", plan + more, "nemo"));
  };
  const Prediction usual = step(""), deferred = step(",deferred_head_gradients=22");
  CHECK(deferred.step < usual.step);
  const std::size_t last = usual.memory.size() - 1;
  CHECK(deferred.memory[last].total > usual.memory[last].total);
}

TEST_CASE("On a V both ends of the model are on the first stage, and the turn is no transfer") {
  Plan plan = pipeline_of(2, "zb-v");
  plan.stages.virtual_stages = 2;
  const Program program = tiny_program(plan, 4);
  check(program);
  CHECK(program.chunks[0].stage == 0);
  CHECK(program.chunks[1].stage == 1);
  CHECK(program.chunks[2].stage == 1);
  CHECK(program.chunks[3].stage == 0);
  CHECK(program.tied == TiedTable::shared);
  const auto turn = std::count_if(program.channels.begin(), program.channels.end(),
                                  [](const Channel& each) { return each.from == each.to; });
  CHECK(turn == 2);  // activations and gradients
  const Question asked = question(
      "gpt2", "dgx-a100-80gb", "pipeline=4,data=2,virtual_stages=2,schedule=zb-v,global_batch=16");
  const Prediction found = predict(asked);
  for (std::size_t c = 0; c < found.program->channels.size(); ++c) {
    const Channel& channel = found.program->channels[c];
    CHECK((found.priced.channels[c] == Time{}) == (channel.from == channel.to));
  }
}

TEST_CASE("A step is shorter by weight gradients that fill what 1F1B stands idle") {
  const auto step = [](const std::string& schedule) {
    return predict(question("gpt2", "dgx-a100-80gb",
                            "pipeline=8,micro_batch=8,global_batch=128,seq_len=1024,"
                            "stage_layers=1:2:2:2:2:1:1:1,schedule=" +
                                schedule))
        .step;
  };
  const Time usual = step("1f1b");
  CHECK(step("zb-h1") < usual);
  CHECK(step("zb-1p") <= step("zb-h1"));
}

}  // namespace orrery::models

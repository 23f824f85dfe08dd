// Cross-attention and the encoder whose output it reads: parameters, FLOPs, shapes and bytes worked
// out by hand, what is carried between blocks, and what is refused.

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "models/lowering/lower.hpp"
#include "models/model/counts.hpp"
#include "models/operations/layouts.hpp"
#include "models/plan/conflicts.hpp"
#include "models/pricing/price.hpp"
#include "models/program/check/check.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// T5-XXL's width and heads: h = a = 4096, MLPs of 10,240 with gates; so many layers on each side.
Model both_sides_of(std::int64_t layers, std::int64_t source) {
  ModelDraft model;
  model.name = "both-sides";
  model.hidden = 4096;
  model.depth = layers;
  model.attention.heads = model.attention.kv_heads = 64;
  model.attention.head_dim = 64;
  model.attention.qkv_bias = model.attention.output_bias = false;
  model.mlp = {.width = 10'240, .gated = true, .bias = false};
  model.norms.kind = Norm::rms_norm;
  model.embedding.positions = Positions::none;
  model.embedding.vocab = 32'128;
  model.encoder = EncoderPart{.layers = layers, .seq_len = source};
  return built(std::move(model));
}

Question asked_of(const Model& model, const std::string& plan) {
  Question asked = question("gpt2", "dgx-h100 x 1", plan);
  asked.model = model;
  return asked;
}

Program program_of(const Question& asked) {
  Program program = lower(
      BlockInputs{asked.model, asked.plan, asked.software, asked.cluster.gpu().generation.name});
  check(program);
  return program;
}

const LayerKind& kind_named(const Program& program, std::string_view name) {
  const auto found = std::ranges::find(program.kinds, name, &LayerKind::name);
  REQUIRE(found != program.kinds.end());
  return *found;
}

const Operation& crossing_operation(const Block& block, std::string_view name) {
  const auto found = std::ranges::find(block.operations, name, &Operation::name);
  INFO(block.name << " " << name);
  REQUIRE(found != block.operations.end());
  return *found;
}

bool has_operation(const Block& block, std::string_view name) {
  return std::ranges::find(block.operations, name, &Operation::name) != block.operations.end();
}

std::vector<std::string> pointers(const Question& asked) {
  std::vector<std::string> found;
  for (const Conflict& each : conflicts(asked)) found.push_back(each.pointer);
  return found;
}

}  // namespace

TEST_CASE("Cross-attention of T5-XXL has the parameters and FLOPs that follow from its sizes") {
  // 4 h a = 4 * 4096 * 4096 = 67,108,864 weights, of which a decoder's token multiplies half (query
  // and projection), an encoder's the other half (keys and values). At 512 keys a decoder's token
  // adds 4 a S = 8,388,608 FLOPs: 67,108,864 + 8,388,608 = 75,497,472 in all.
  const Model model = both_sides_of(24, 512);
  const Layer& decodes = model.layers.back();
  REQUIRE(decodes.cross);
  Layer without = decodes;
  without.cross.reset();
  CHECK(tally_of(decodes, 4096).total - tally_of(without, 4096).total == 67'108'864);
  const Program program = program_of(asked_of(model, "global_batch=8,seq_len=128,zero=1"));
  const Block& forward = program.blocks[kind_named(program, "decoder layer").forward];
  const auto flops = [&](const char* name) {
    return static_cast<double>(crossing_operation(forward, name).flops.count());
  };
  CHECK((flops("cross.query") + flops("cross.projection") + flops("cross.attention")) / 128 ==
        75'497'472);
  CHECK(flops("cross.key_value") / 512 == 67'108'864);
  const AttentionShape& shape = crossing_operation(forward, "cross.attention").attention();
  CHECK(shape.seq == 128);
  CHECK(shape.keys == 512);
  CHECK_FALSE(shape.causal);
  // Forward has two products of the core, backward five.
  const Block& backward = program.blocks[kind_named(program, "decoder layer").backward];
  CHECK(crossing_operation(backward, "cross.attention.backward").flops.count() * 2 ==
        crossing_operation(forward, "cross.attention").flops.count() * 5);
}

TEST_CASE("Forward FLOPs of a model with both sides are those of its blocks") {
  // FLOPs of a sequence: of GEMMs and attention in all forward blocks.
  for (const std::int64_t source : {64, 512, 1500}) {
    const Model model = both_sides_of(3, source);
    const Program program = program_of(asked_of(model, "global_batch=8,seq_len=256"));
    double sum = 0;
    const auto add = [&](const LayerKind& kind) {
      for (const Operation& op : program.blocks[kind.forward].operations) {
        const bool counts = is_gemm(op.kind) || op.kind == OpKind::attention;
        if (counts) sum += static_cast<double>(op.flops.count());
      }
    };
    for (const std::uint32_t kind : program.kind_of_layer) add(program.kinds[kind]);
    add(program.kind(ModelPart::head));
    CHECK(sum / 256 == Approx(forward_flops_per_token(model, 256)).epsilon(1e-9));
  }
}

TEST_CASE("One more token of a source adds what its own arithmetic is") {
  // An encoder's matrices (4 h h + 3 h f), its attention over one more token on either side, keys
  // and values of the decoder (2 h h), and 4 h for each decoder token that attends to it.
  const double h = 4096, f = 10'240, layers = 24, source = 512, target = 512;
  const auto whole = [&](std::int64_t tokens) {
    return forward_flops_per_token(both_sides_of(24, tokens), 512) * target;
  };
  const double encoder = 2 * (4 * h * h + 3 * h * f) + 4 * h * (2 * source + 1);
  const double decoder = 2 * 2 * h * h + 4 * h * target;
  CHECK(whole(513) - whole(512) == Approx(layers * (encoder + decoder)).epsilon(1e-6));
}

TEST_CASE("An encoder's output is kept once, and its gradient is a sum over all layers") {
  const Model model = both_sides_of(3, 512);
  const Program program = program_of(asked_of(model, "global_batch=16,micro_batch=2,seq_len=128"));
  std::vector<std::string> names;
  Bytes carried{};
  for (const Operand* const each : program.carried()) {
    names.push_back(each->name);
    carried += each->bytes();
  }
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"encoded", "encoded.grad", "target", "target.grad"});
  // In bf16: two of 2 x 512 rows and two of 2 x 128 rows of 4096.
  CHECK(carried == Bytes{2 * (1024 + 256) * 4096 * 2});
  Bytes saved{};
  for (const Invocation& run : program.phases[program.chunks[0].backward].invocations) {
    saved += program.blocks[run.block].bytes(Role::saved) * run.count;
  }
  const RankClass& ranks = program.classes[0];
  CHECK(ranks.types[ranks.chunk_buffers[0].saved].bytes == saved + carried);
  // Layers in order: two that encode, the last of them, the first that decodes, one, the last.
  std::vector<std::string> kinds;
  for (const std::uint32_t kind : program.kind_of_layer) kinds.push_back(program.kinds[kind].name);
  CHECK(kinds == std::vector<std::string>{"encoder layer", "encoder layer", "last encoder layer",
                                          "first decoder layer", "decoder layer",
                                          "last decoder layer"});
  const auto adds = [&](const char* kind) {
    return has_operation(program.blocks[kind_named(program, kind).backward], "cross.encoded.sum");
  };
  CHECK(adds("first decoder layer"));
  CHECK(adds("decoder layer"));
  CHECK_FALSE(adds("last decoder layer"));  // the first in backward begins the sum
  // Of each layer with cross-attention: q [T, a], kv [S, 2 a], output, and a log-sum-exp a head.
  const Block& block = program.blocks[kind_named(program, "decoder layer").backward];
  const auto bytes = [&](const char* name) {
    const auto id = block.find(name);
    REQUIRE(id);
    CHECK(block.operands[*id].role == Role::saved);
    return block.operands[*id].bytes().count();
  };
  CHECK(bytes("cross.query.out") == 2 * 128 * 4096 * 2);
  CHECK(bytes("cross.key_value.out") == 2 * 512 * 2 * 4096 * 2);
  CHECK(bytes("cross.out") == 2 * 128 * 4096 * 2);
  CHECK(bytes("cross.attention.lse") == 2 * 64 * 128 * 4);
}

TEST_CASE("Tensor parallelism cuts cross-attention by heads and sums its gradients") {
  const Model model = both_sides_of(2, 512);
  const auto collectives = [&](const char* plan, const char* kind, bool forward) {
    const Program program = program_of(asked_of(model, plan));
    const LayerKind& of = kind_named(program, kind);
    std::vector<std::string> names;
    for (const Operation& op : program.blocks[forward ? of.forward : of.backward].operations) {
      const bool crosses = op.name.find("cross.") != std::string::npos ||
                           op.name.find("encoded") != std::string::npos;
      if (op.kind == OpKind::collective && crosses) names.push_back(op.name);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  const char* const whole = "tensor=8,global_batch=8,seq_len=128";
  CHECK(collectives(whole, "first decoder layer", true) == Names{"cross.projection.sum"});
  CHECK(collectives(whole, "first decoder layer", false) ==
        Names{"cross.key_value.dgrad.sum", "cross.query.dgrad.sum"});
  const char* const sequence = "tensor=8,sequence=true,global_batch=8,seq_len=128";
  CHECK(collectives(sequence, "first decoder layer", true) ==
        Names{"norm_cross.out.gather", "encoded.gather", "cross.projection.scatter"});
  const Program cut = program_of(asked_of(model, whole));
  const Block& block = cut.blocks[kind_named(cut, "first decoder layer").forward];
  CHECK(crossing_operation(block, "cross.attention").attention().heads == 8);
  CHECK(crossing_operation(block, "cross.key_value").gemm().n == 2 * 4096 / 8);
}

TEST_CASE("A curve prices cross-attention by the square with as many scores") {
  // 256 queries of 1,024 keys have the scores of 512 of 512, and the price of a square that is not
  // causal.
  const auto time_of = [](std::int64_t queries, std::int64_t keys) {
    const Question asked = question("gpt2", "dgx-h100 x 1", "global_batch=8,seq_len=512");
    Operation op;
    op.kind = OpKind::attention;
    op.name = "cross.attention";
    op.dtype = DType::bf16;
    op.mutable_attention() = {.batch = 8,
                              .seq = queries,
                              .heads = 16,
                              .kv_heads = 16,
                              .head_dim = 64,
                              .causal = false,
                              .keys = keys,
                              .crosses = keys > 0};
    const std::int64_t scores = queries * (keys > 0 ? keys : queries);
    op.flops = Flops{4 * 8 * 16 * 64 * scores};
    return kernel_time(op, asked.cluster.gpu(), asked.software);
  };
  CHECK(time_of(256, 1024) == time_of(512, 0));
  CHECK(time_of(1024, 256) == time_of(512, 0));
  CHECK(time_of(256, 2048) > time_of(512, 0));
}

TEST_CASE("A step with an encoder takes longer the longer its source is") {
  Time before{};
  for (const std::int64_t source : {128, 256, 512, 1024}) {
    const Question asked =
        asked_of(both_sides_of(4, source), "tensor=2,global_batch=16,micro_batch=4,seq_len=256");
    const Prediction prediction = predict(asked);
    CHECK(prediction.step > before);
    before = prediction.step;
    CHECK(prediction.model_flops ==
          Approx(3 * forward_flops_per_token(asked.model, 256) * 16 * 256));
  }
}

TEST_CASE("Recomputing all layers keeps the encoder's output and what layers read") {
  const Model model = both_sides_of(3, 512);
  const Program program = program_of(asked_of(model, "global_batch=8,seq_len=128,recompute=full"));
  const Block& block = program.blocks[kind_named(program, "decoder layer").backward];
  CHECK(block.bytes(Role::saved) == Bytes{128 * 4096 * 2});
  CHECK(has_operation(block, "cross.key_value.again"));
  CHECK(program.blocks[kind_named(program, "first decoder layer").backward].bytes(Role::saved) ==
        Bytes{});
}

TEST_CASE("What is not simulated with cross-attention is refused by name") {
  const Model model = both_sides_of(2, 500);
  using Found = std::vector<std::string>;
  CHECK(pointers(asked_of(model, "tensor=2,zero=3,global_batch=8,seq_len=128")).empty());
  const Question piped = asked_of(model, "pipeline=2,global_batch=8,seq_len=128");
  CHECK(pointers(piped) == Found{"/plan/pipeline"});
  CHECK(conflicts(piped)[0].problem == "a pipeline is not simulated with cross-attention");
  CHECK(pointers(asked_of(model, "context=2,global_batch=8,seq_len=128")) ==
        Found{"/plan/context"});
  CHECK(pointers(asked_of(model, "task=lora,global_batch=8,seq_len=128")) == Found{"/plan/task"});
  CHECK(pointers(asked_of(model, "sequence_lengths=64,global_batch=8,seq_len=128")) ==
        Found{"/plan/sequence_lengths"});
  const Question split = asked_of(model, "schedule=zb-h1,global_batch=8,seq_len=128");
  REQUIRE(pointers(split) == Found{"/plan/schedule"});
  CHECK(conflicts(split)[0].problem ==
        "zb-h1 splits backward, which is not simulated with cross-attention");
  const Question uneven = asked_of(model, "tensor=8,sequence=true,global_batch=8,seq_len=128");
  REQUIRE(pointers(uneven) == Found{"/plan/sequence"});
  CHECK(conflicts(uneven)[0].problem ==
        "tensor 8 does not divide the 500 tokens of the encoder, as sequence parallelism needs");
}

TEST_CASE("A source of no stated length widens the range, as other assumed defaults do") {
  Question asked = asked_of(both_sides_of(2, 512), "global_batch=8,seq_len=128");
  const Prediction stated = predict(asked);
  asked.model.encoder->length_assumed = true;
  const Prediction assumed = predict(asked);
  CHECK(assumed.step == stated.step);
  CHECK(assumed.evidence.high > stated.evidence.high);
}

TEST_CASE("Orrery's own form has an encoder by name") {
  const std::string own = R"({"format": "orrery-model", "layers": 2, "hidden": 64, "heads": 4,
    "vocab": 128, "max_positions": 32, "encoder": )";
  const auto read = [&](const std::string& encoder) {
    return read_model(Document::parse(own + encoder + "}", "model.json").root());
  };
  const Model model = read(R"({"layers": 3, "source_len": 24, "ffn_hidden": 96})");
  CHECK(model.layers.size() == 5);
  CHECK(source_length(model) == 24);
  CHECK(model.layers[0].encodes());
  CHECK(model.layers[0].mlp()->width == 96);
  CHECK_FALSE(model.layers[0].cross);
  CHECK(model.layers[3].cross);
  // Vh + 2 Ph + 3 (4hh + 4h + 2hf + f + h + 4h) + 2 (8hh + 8h + 2hg + g + h + 6h) + 2 * 2h with
  // h = 64, V = 128, P = 32, f = 96, g = 256
  const std::int64_t h = 64, f = 96, g = 256;
  CHECK(model.parameters == 128 * h + 2 * 32 * h + 3 * (4 * h * h + 2 * h * f + f + 9 * h) +
                                2 * (8 * h * h + 2 * h * g + g + 15 * h) + 4 * h);
  const auto refusal = [&](const std::string& encoder) {
    try {
      read(encoder);
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{"accepted"};
  };
  CHECK(refusal(R"({"layers": 3})") == "model.json:/encoder/source_len: missing");
  CHECK(refusal(R"({"layers": 3, "source_len": 24, "max_positions": 20})") ==
        "model.json:/encoder/max_positions: 20 is below source_len 24");
  CHECK(refusal(R"({"layers": 3, "source_len": 24, "length": 1})")
            .starts_with("model.json:/encoder/length: "));
}

}  // namespace orrery::models

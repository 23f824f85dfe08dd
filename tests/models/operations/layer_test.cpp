#include <catch2/catch.hpp>

#include "models/model/counts.hpp"
#include "models/operations/blocks.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Flops flops_of(const Block& block, OpKind kind) {
  Flops sum{};
  for (const Operation& op : block.operations) {
    if (op.kind == kind) sum += op.flops;
  }
  return sum;
}

const Operation& layer_operation(const Block& block, const std::string& name) {
  for (const Operation& op : block.operations) {
    if (op.name == name) return op;
  }
  throw ContractError{"no operation " + name};
}

struct Made {
  Model model;
  Plan plan;
  Software software;
  std::string_view generation = "ampere";

  BlockInputs inputs() const { return {model, plan, software, generation}; }
  const Layer& layer() const { return model.layers[0]; }
};

Made made_of(const std::string& model, std::int64_t seq_len) {
  Made made{catalogue_model(model), {}, plain_software()};
  made.plan.batch.seq_len = seq_len;
  made.software.kernels.attention["default"] = "flash-2";
  return made;
}

/// OPT-350m's ends around a small body: tokens' rows of 512, layers of 1024.
Made narrow(std::int64_t seq_len) {
  Made made = made_of("gpt2-medium", seq_len);
  made.model.embedding.width = 512;
  made.model.norms.final = false;
  made.model.parameters = count_parameters(made.model);
  return made;
}

}  // namespace

namespace {

std::size_t place_of(const Block& block, const std::string& name) {
  for (std::size_t i = 0; i < block.operations.size(); ++i) {
    if (block.operations[i].name == name) return i;
  }
  return block.operations.size();
}

std::string read_by(const Block& block, const std::string& name) {
  return block.operands[layer_operation(block, name).reads[0]].name;
}

}  // namespace

TEST_CASE("A norm of an output stands between its part and the residual, in place of the input's") {
  Made made = made_of("llama3-8b", 512);
  made.model.norms.of_outputs = true;
  const Block block = layer_blocks(made.inputs(), made.layer()).forward;
  CHECK(read_by(block, "qkv") == "x");
  CHECK(read_by(block, "norm1") == "projection.out");
  CHECK(read_by(block, "up") == "middle");
  CHECK(read_by(block, "norm2") == "down.out");
  CHECK(place_of(block, "norm1") < place_of(block, "attention.add"));
}

TEST_CASE("Norms on both sides are four, and those after a part keep its output for backward") {
  Made made = made_of("llama3-8b", 512);
  const Bytes before = layer_blocks(made.inputs(), made.layer()).forward.bytes(Role::saved);
  made.model.norms.sandwich = true;
  made.model.norms.offset = 1;
  const Block block = layer_blocks(made.inputs(), made.layer()).forward;
  CHECK(read_by(block, "norm1") == "x");
  CHECK(read_by(block, "norm1_after") == "projection.out");
  CHECK(read_by(block, "norm2") == "middle");
  CHECK(read_by(block, "norm2_after") == "down.out");
  CHECK(layer_operation(block, "norm2_after").offset() == 1);
  // Two outputs of [512, 4096] in two bytes.
  CHECK((block.bytes(Role::saved) - before).count() == 2 * 512 * 4096 * 2);
}

TEST_CASE("Tokens' rows narrower than the layers are projected in, and out before the head") {
  const Made made = narrow(512);
  const BlockInputs inputs = made.inputs();
  const BlockPair embedding = embedding_blocks(inputs), head = head_blocks(inputs);
  const Operation& in = layer_operation(embedding.forward, "project_in");
  CHECK((in.gemm().m == 512 && in.gemm().k == 512 && in.gemm().n == 1024));
  const Operation& out = layer_operation(head.forward, "project_out");
  CHECK((out.gemm().m == 512 && out.gemm().k == 1024 && out.gemm().n == 512));
  CHECK(layer_operation(head.forward, "head").gemm().k == 512);
  const std::int64_t table = made.model.embedding.vocab * 512;
  CHECK(parameters_of(embedding.forward) + parameters_of(head.forward) - table +
            made.model.layers.size() * parameters_of(layer_blocks(inputs, made.layer()).forward) ==
        made.model.parameters);
  // Each parameter has one gradient of its size.
  for (const BlockPair& pair : {embedding, head}) {
    for (const Operand& each : pair.forward.operands) {
      if (each.role != Role::parameter) continue;
      INFO(each.name);
      const auto gradient = pair.backward.find(each.name + ".grad");
      REQUIRE(gradient);
      CHECK(pair.backward.operands[*gradient].elements() == each.elements());
    }
  }
  Flops multiplied = layer_blocks(inputs, made.layer()).forward.flops() * made.model.layers.size();
  multiplied += embedding.forward.flops();
  multiplied += head.forward.flops();
  CHECK(static_cast<double>(multiplied.count()) == 512 * forward_flops_per_token(made.model, 512));
}

TEST_CASE("A GPT-3 175B layer multiplies what its matrices say, forward once and backward twice") {
  // T = 2048, h = 12288. Forward GEMMs 2 T (3 h^2 + h^2 + 4 h^2 + 4 h^2) = 24 T h^2; attention
  // 4 s^2 h, half of it for causality; its fused backward has five products for forward's two.
  const Made made = made_of("gpt3-175b", 2048);
  const BlockPair layer = layer_blocks(made.inputs(), made.layer());
  const std::int64_t gemms = 24 * std::int64_t{2048} * 12288 * 12288;
  const std::int64_t attention = 2 * std::int64_t{2048} * 2048 * 12288;
  CHECK(flops_of(layer.forward, OpKind::gemm).count() == gemms);
  CHECK(flops_of(layer.forward, OpKind::attention).count() == attention);
  CHECK(flops_of(layer.backward, OpKind::gemm).count() == 2 * gemms);
  CHECK(flops_of(layer.backward, OpKind::attention_backward).count() == attention * 5 / 2);
}

TEST_CASE("An activation says its function, forward and backward") {
  const Made gpt = made_of("gpt3-175b", 2048), llama = made_of("llama3-8b", 2048);
  CHECK(
      layer_operation(layer_blocks(gpt.inputs(), gpt.layer()).forward, "activation").activation() ==
      Activation::gelu);
  const BlockPair layer = layer_blocks(llama.inputs(), llama.layer());
  CHECK(layer_operation(layer.forward, "activation").activation() == Activation::silu);
  CHECK(layer_operation(layer.backward, "activation.backward").activation() == Activation::silu);
}

TEST_CASE("A Llama 3 8B layer multiplies with fewer keys and three matrices in its MLP") {
  // T = 8192: per token 4096 (4096 + 2 * 1024) + 4096^2 + 3 * 4096 * 14336 = 218,103,808 weights.
  const Made made = made_of("llama3-8b", 8192);
  const BlockPair layer = layer_blocks(made.inputs(), made.layer());
  CHECK(flops_of(layer.forward, OpKind::gemm).count() == 2 * std::int64_t{8192} * 218'103'808);
  CHECK(flops_of(layer.forward, OpKind::attention).count() ==
        2 * std::int64_t{8192} * 8192 * 32 * 128);
}

TEST_CASE("Blocks count the forward FLOPs that the model's formula counts") {
  for (const char* name : {"gpt2", "gpt3-175b", "llama3-8b", "llama2-70b", "bloom-176b",
                           "gpt-neox-20b", "falcon-40b", "qwen3-8b", "mistral-7b", "bert-large"}) {
    CAPTURE(name);
    const std::int64_t seq = 512;
    const Made made = made_of(name, seq);
    const Flops layer = layer_blocks(made.inputs(), made.layer()).forward.flops();
    Flops head{};
    for (const Operation& op : head_blocks(made.inputs()).forward.operations) {
      // The pooler works on one token per sequence and is left out of the formula.
      const bool pooler = op.name == "pooler" || op.name == "relation";
      if (!pooler) head += op.flops;
    }
    const Flops all = layer * made.model.layers.size() + head;
    CHECK(static_cast<double>(all.count()) ==
          static_cast<double>(seq) * forward_flops_per_token(made.model, seq));
  }
}

TEST_CASE("A sliding window takes its corner out of the attention's square") {
  // s = 8192, w = 4096: of s^2/2 pairs, w s - w^2/2 = 3/4 of them remain.
  const Made made = made_of("mistral-7b", 8192);
  const Flops windowed =
      flops_of(layer_blocks(made.inputs(), made.layer()).forward, OpKind::attention);
  Made full = made;
  full.model = changed(full.model, [](ModelDraft& draft) { draft.attention.window = 0; });
  CHECK(windowed.count() * 4 ==
        flops_of(layer_blocks(full.inputs(), full.layer()).forward, OpKind::attention).count() * 3);
}

TEST_CASE("Unfused attention multiplies the whole square, per head, and moves each tensor once") {
  // GPT-2, s = 1024, 12 heads of 64, bf16: Q, K and V 768 columns each.
  Made made = made_of("gpt2", 1024);
  made.software.kernels.attention["default"] = "unfused";
  const BlockPair layer = layer_blocks(made.inputs(), made.layer());
  const std::int64_t square = 12 * 1024 * 1024;
  for (const char* name : {"scores", "context"}) {
    const Operation& op = layer_operation(layer.forward, name);
    CHECK(op.flops.count() == 2 * square * 64);
    CHECK(op.bytes.count() == 2 * (square + 2 * 1024 * 768));
  }
  for (const char* name : {"context.dgrad", "value.grad", "query.grad", "key.grad"}) {
    const Operation& op = layer_operation(layer.backward, name);
    CHECK(op.flops.count() == 2 * square * 64);
    CHECK(op.bytes.count() == 2 * (square + 2 * 1024 * 768));
  }
  CHECK(layer_operation(layer.forward, "softmax").bytes.count() == 2 * 2 * square);
}

TEST_CASE(
    "Automatic mixed precision saves a softmax's output in fp32, next to what a product reads") {
  // GPT-2, s = 128: 12 squares of 128 in fp32 and in bf16, where bf16 alone was; with dropout the
  // product reads what is left of them. Time is over 16-bit traffic, as mixed_derate is.
  Made made = made_of("gpt2", 128);
  made.software.kernels.attention["default"] = "unfused";
  const std::int64_t square = 12 * 128 * 128;
  for (const bool dropout : {false, true}) {
    CAPTURE(dropout);
    made.software.kernels.dropout = dropout;
    made.software.kernels.mixed_derate = 1;
    const BlockPair plain = layer_blocks(made.inputs(), made.layer());
    made.software.kernels.mixed_derate = 2;
    const BlockPair mixed = layer_blocks(made.inputs(), made.layer());
    CHECK(mixed.forward.bytes(Role::saved).count() ==
          plain.forward.bytes(Role::saved).count() + (dropout ? 2 : 4) * square);
    for (const char* name : {"softmax", "context"}) {
      CHECK(layer_operation(mixed.forward, name).bytes ==
            layer_operation(plain.forward, name).bytes);
    }
    CHECK(layer_operation(mixed.backward, "softmax.backward").bytes ==
          layer_operation(plain.backward, "softmax.backward").bytes);
  }
}

TEST_CASE("Keys and values that heads share are read once") {
  // Llama 3 8B, s = 128: 32 heads of 128 read 8 of keys: (32 * 128^2 + 128 (4096 + 1024)) bf16.
  Made made = made_of("llama3-8b", 128);
  made.software.kernels.attention["default"] = "unfused";
  const Block forward = layer_blocks(made.inputs(), made.layer()).forward;
  CHECK(layer_operation(forward, "scores").bytes.count() == 2 * (32 * 128 * 128 + 128 * 5120));
}

TEST_CASE("A GEMM moves its three matrices, and an accumulator twice") {
  // GPT-2, T = 1024: up is [1024, 768] x [768, 3072] in bf16 with a bias of 3072; its weight
  // gradient adds to fp32.
  const Made made = made_of("gpt2", 1024);
  const BlockPair layer = layer_blocks(made.inputs(), made.layer());
  CHECK(layer_operation(layer.forward, "up").bytes.count() ==
        2 * (1024 * 768 + 768 * 3072 + 1024 * 3072 + 3072));
  CHECK(layer_operation(layer.backward, "up.dgrad").bytes.count() ==
        2 * (1024 * 3072 + 768 * 3072 + 1024 * 768));
  CHECK(layer_operation(layer.backward, "up.wgrad").bytes.count() ==
        2 * (1024 * 768 + 1024 * 3072) + 4 * (2 * 768 * 3072 + 3072));
}

TEST_CASE("Stacks without fused accumulation add a kernel that reads, reads and writes") {
  Made made = made_of("gpt2", 1024);
  made.software.accumulation = Accumulation::separate;
  const Block backward = layer_blocks(made.inputs(), made.layer()).backward;
  CHECK(layer_operation(backward, "up.accumulate").bytes.count() == (2 + 4 + 4) * 768 * 3072);
  CHECK_FALSE(layer_operation(backward, "up.wgrad").gemm().accumulate);
}

TEST_CASE("Every parameter of a forward block has one gradient, of its size, in backward") {
  for (const char* name : {"gpt2", "llama3-8b", "bloom-176b", "gpt-neox-20b", "falcon-40b",
                           "qwen3-8b", "opt-175b", "bert-large"}) {
    const Made made = made_of(name, 512);
    for (const BlockPair& pair : {layer_blocks(made.inputs(), made.layer()),
                                  embedding_blocks(made.inputs()), head_blocks(made.inputs())}) {
      for (const Operand& each : pair.forward.operands) {
        if (each.role != Role::parameter) continue;
        CAPTURE(name, pair.forward.name, each.name);
        const auto gradient = pair.backward.find(each.name + ".grad");
        REQUIRE(gradient);
        CHECK(pair.backward.operands[*gradient].elements() == each.elements());
        std::size_t writers = 0;
        for (const Operation& op : pair.backward.operations) {
          for (const OperandId id : op.writes) writers += id == *gradient ? 1 : 0;
        }
        CHECK(writers == 1);
      }
    }
  }
}

TEST_CASE("Blocks hold the parameters of the model") {
  for (const char* name : {"gpt2", "gpt3-175b", "llama3-8b", "llama2-70b", "llama3.1-405b",
                           "bloom-176b", "gpt-neox-20b", "falcon-40b", "qwen3-8b", "opt-175b",
                           "mistral-7b", "bert-base", "bert-large"}) {
    CAPTURE(name);
    const Made made = made_of(name, 512);
    const BlockInputs inputs = made.inputs();
    std::int64_t sum =
        parameters_of(embedding_blocks(inputs).forward) +
        made.model.layers.size() * parameters_of(layer_blocks(inputs, made.layer()).forward) +
        parameters_of(head_blocks(inputs).forward);
    if (made.model.embedding.tied) sum -= made.model.embedding.vocab * made.model.hidden;
    CHECK(sum == made.model.parameters);
  }
}

TEST_CASE("A tensor group holds each matrix once and each norm on every rank") {
  // GPT-3 175B over 8: a layer's matrices 12 h^2 and column biases 3 h + 4 h are cut; row biases
  // 2 h and two norms of 2 h are on every rank.
  Made made = made_of("gpt3-175b", 2048);
  made.plan.tensor = 8;
  const std::int64_t h = 12288;
  CHECK(parameters_of(layer_blocks(made.inputs(), made.layer()).forward) ==
        (12 * h * h + 7 * h) / 8 + 6 * h);
}

TEST_CASE("More ranks than key-value heads repeat them") {
  // Llama 3 8B over 16: 2 of 32 heads each; 8 key-value heads stand twice, one per rank.
  Made made = made_of("llama3-8b", 8192);
  made.plan.tensor = 16;
  const Block forward = layer_blocks(made.inputs(), made.layer()).forward;
  CHECK(layer_operation(forward, "qkv").gemm().n == 2 * 128 + 2 * 128);
}

TEST_CASE("A padded vocabulary is a multiple of 128 for each tensor rank") {
  const auto rows_of_a_rank = [](std::int64_t tensor) {
    Made made = made_of("gpt2", 512);
    made.plan.tensor = tensor;
    const Block forward = embedding_blocks(made.inputs()).forward;
    const Operand& table = forward.operands[*forward.find("embedding.weight")];
    CHECK(table.uncut == Shape{1, 50257, 768});
    return table.shape[1];
  };
  CHECK(rows_of_a_rank(1) == 50257);
  CHECK(rows_of_a_rank(2) == 197 * 128);
  CHECK(rows_of_a_rank(8) == 50 * 128);
}

TEST_CASE("Eight-bit training quantises what its products read and keeps the head in 16 bits") {
  Made made = made_of("llama3-8b", 1024);
  made.plan.formats.precision = Precision::fp8;
  const BlockPair layer = layer_blocks(made.inputs(), made.layer());
  CHECK(layer_operation(layer.forward, "qkv").dtype == DType::fp8);
  CHECK(layer_operation(layer.forward, "norm1.out.fp8").kind == OpKind::quantise);
  // bf16 read, fp8 written.
  CHECK(layer_operation(layer.forward, "norm1.out.fp8").bytes.count() == 3 * 1024 * 4096);
  CHECK(layer_operation(head_blocks(made.inputs()).forward, "head").dtype == DType::bf16);
  // Kept in fp8: two norms' outputs, context, activation; in bf16 what other kernels read: x and
  // middle, queries, keys and values (4096 + 2 x 1024), context, gate and up; fp32 log-sum-exp.
  const std::int64_t eight = 2 * 4096 + 4096 + 14336;
  const std::int64_t sixteen = 2 * 4096 + 6144 + 4096 + 2 * 14336;
  CHECK(layer.backward.bytes(Role::saved).count() == 1024 * (eight + 2 * sixteen + 4 * 32));
}

TEST_CASE("Training in fp64 keeps everything in fp64") {
  // GPT-2, 1024 tokens: neither an operand nor an operation in another floating-point format.
  Made made = made_of("gpt2", 1024);
  made.plan.formats.precision = Precision::fp64;
  for (const BlockPair& pair : {layer_blocks(made.inputs(), made.layer()),
                                embedding_blocks(made.inputs()), head_blocks(made.inputs())}) {
    for (const Block* block : {&pair.forward, &pair.backward}) {
      for (const Operand& each : block->operands) {
        CAPTURE(block->name, each.name);
        const bool index = each.role == Role::tokens || each.role == Role::labels;
        CHECK(each.dtype == (index ? DType::int64 : DType::fp64));
      }
      for (const Operation& op : block->operations) CHECK(op.dtype == DType::fp64);
    }
  }
  // Reads 8 + 3 * 8 bytes and writes 3 * 8 + 8: the master is the parameter.
  CHECK(adam_block(made.inputs(), 1000).operations[0].bytes.count() == 64'000);
  CHECK(gradient_norm_block(made.inputs(), 1000).operations[0].bytes.count() == 8 * 1000 + 8);
}

TEST_CASE("A product of unfused attention says which of its operands' heads it multiplies") {
  Made made = made_of("gpt2", 1024);
  made.plan.formats.precision = Precision::fp32;
  const BlockPair layer = layer_blocks(made.inputs(), made.layer());
  const std::vector<std::pair<std::string, AttentionGemm>> forward{
      {"scores", AttentionGemm::scores}, {"context", AttentionGemm::context}};
  const std::vector<std::pair<std::string, AttentionGemm>> backward{
      {"context.dgrad", AttentionGemm::weights_gradient},
      {"value.grad", AttentionGemm::value_gradient},
      {"query.grad", AttentionGemm::query_gradient},
      {"key.grad", AttentionGemm::key_gradient}};
  for (const auto& [name, which] : forward)
    CHECK(layer_operation(layer.forward, name).attention_gemm() == which);
  for (const auto& [name, which] : backward) {
    CHECK(layer_operation(layer.backward, name).attention_gemm() == which);
  }
  for (const Operation& op : layer.backward.operations) {
    CHECK((op.kind == OpKind::batched_gemm) == (op.attention_gemm() != AttentionGemm::none));
  }
}

TEST_CASE("A loss leaves exponentials and three numbers per token for its backward") {
  // The largest logit, the sum of exponentials and the label's logit, in fp32.
  const Made made = made_of("gpt2", 512);
  const BlockPair head = head_blocks(made.inputs());
  const Operation& loss = layer_operation(head.forward, "loss");
  REQUIRE(loss.writes.size() == 2);
  const Operand& statistics = head.forward.operands[loss.writes[1]];
  CHECK(statistics.name == "loss.statistics");
  CHECK(statistics.role == Role::saved);
  CHECK(statistics.dtype == DType::fp32);
  CHECK(statistics.shape == std::array<std::int64_t, 3>{1, 512, 3});
  const Operation& back = layer_operation(head.backward, "loss.backward");
  CHECK(head.backward.operands[back.reads[2]].name == "loss.statistics");
}

TEST_CASE("An embedding reads one row per token, and adds positions after the tokens' sum") {
  // GPT-2, two sequences of 512: 1024 rows of 768 in bf16 and int64 tokens; positions are read once
  // for both. Their fp32 gradient is read and written.
  Made made = made_of("gpt2", 512);
  made.plan.batch.micro = 2;
  const BlockPair embedding = embedding_blocks(made.inputs());
  const Operation& words = layer_operation(embedding.forward, "embedding");
  CHECK(words.makes.empty());
  CHECK(words.bytes.count() == 2 * 2 * 1024 * 768 + 8 * 1024);
  const Operation& positions = layer_operation(embedding.forward, "positions");
  CHECK(positions.by_position());
  CHECK(positions.bytes.count() == 2 * (2 * 1024 + 512) * 768);
  CHECK(layer_operation(embedding.backward, "embedding.backward").bytes.count() ==
        2 * 1024 * 768 + 2 * 4 * 1024 * 768);
  CHECK(layer_operation(embedding.backward, "positions.backward").bytes.count() ==
        2 * 1024 * 768 + 2 * 4 * 512 * 768);
  // Llama turns queries and keys instead.
  CHECK(embedding_blocks(made_of("llama3-8b", 512).inputs()).forward.operations.size() == 1);
}

TEST_CASE("A shared norm of a parallel block is undone once") {
  Made made = made_of("falcon-40b", 512);
  made.model.norms.shared = true;
  std::size_t norms = 0;
  for (const Operation& op : layer_blocks(made.inputs(), made.layer()).backward.operations) {
    norms += op.kind == OpKind::norm_backward ? 1 : 0;
  }
  CHECK(norms == 1);
}

TEST_CASE("AdamW reads gradient and state and writes state, gradient and working weights") {
  // Reads 4 + 3 * 4 bytes, writes 3 * 4 + 4 and 2 of bf16: 34 per parameter.
  const Made made = made_of("gpt2", 1024);
  CHECK(adam_block(made.inputs(), 1000).operations[0].bytes.count() == 34'000);
  CHECK(gradient_norm_block(made.inputs(), 1000).operations[0].bytes.count() == 4 * 1000 + 4);
}

}  // namespace orrery::models

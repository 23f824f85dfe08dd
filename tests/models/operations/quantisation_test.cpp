#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>

#include "models/operations/blocks.hpp"
#include "models/plan/conflicts.hpp"
#include "models/prediction/prediction.hpp"
#include "models/pricing/price.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t few_tokens = 1024, few_hidden = 4096;

BlockPair layer_in(const std::string& precision) {
  Question asked = question("llama3-8b", "dgx-b200 x 1",
                            "data=8,global_batch=8,seq_len=1024,precision=" + precision, "generic");
  return layer_blocks({asked.model, asked.plan, asked.software, "blackwell"},
                      asked.model.layers[0]);
}

const Operation& operation_of(const Block& block, const std::string& name) {
  for (const Operation& op : block.operations) {
    if (op.name == name) return op;
  }
  throw ContractError{"no operation " + name};
}

Bytes kept_of(const Block& backward, const std::string& name) {
  const auto found = backward.find(name);
  return found && backward.operands[*found].role == Role::saved ? backward.operands[*found].bytes()
                                                                : Bytes{};
}

TEST_CASE("Scales of blocks need a copy by rows and one by columns, of which backward keeps one") {
  const BlockPair layer = layer_in("mxfp8");
  // Two bytes read; twice one byte and a scale for 32 written.
  CHECK(operation_of(layer.forward, "norm1.out.fp8").bytes.count() ==
        few_tokens * few_hidden * 4 + 2 * few_tokens * few_hidden / 32);
  CHECK(kept_of(layer.backward, "norm1.out.fp8").count() == 0);
  CHECK(kept_of(layer.backward, "norm1.out.fp8.columns").count() == few_tokens * few_hidden);
  CHECK(kept_of(layer.backward, "norm1.out.fp8.columns.scales").count() ==
        few_tokens * few_hidden / 32);
  CHECK(operation_of(layer.backward, "qkv.wgrad").dtype == DType::fp8);
}

TEST_CASE("nvfp4 reads a tensor for its largest number and again to write it in 4 bits") {
  const BlockPair layer = layer_in("nvfp4");
  CHECK(operation_of(layer.forward, "norm1.out.fp4.largest").bytes.count() ==
        2 * few_tokens * few_hidden + 4);
  CHECK(operation_of(layer.forward, "norm1.out.fp4").bytes.count() ==
        2 * few_tokens * few_hidden +
            2 * (few_tokens * few_hidden / 2 + few_tokens * few_hidden / 16));
  CHECK(kept_of(layer.backward, "norm1.out.fp4.columns").count() == few_tokens * few_hidden / 2);
  CHECK(operation_of(layer.forward, "qkv").dtype == DType::fp4);
}

TEST_CASE("A Hadamard transform in its own pass reads the tensor again for the copy by columns") {
  const BlockPair layer = layer_in("nvfp4,hadamard_pass=true");
  const std::int64_t copy = few_tokens * few_hidden / 2 + few_tokens * few_hidden / 16;
  for (const char* name : {"norm1.out.fp4", "norm1.out.fp4.hadamard"}) {
    CHECK(operation_of(layer.forward, name).bytes.count() == 2 * few_tokens * few_hidden + copy);
  }
  CHECK(operation_of(layer.backward, "qkv.out.grad.fp4.hadamard").bytes.count() > 0);
  CHECK(kept_of(layer.backward, "norm1.out.fp4.columns").count() == few_tokens * few_hidden / 2);
  const Question other =
      question("llama3-8b", "dgx-b200 x 1", "precision=mxfp8,hadamard_pass=true", "generic");
  CHECK(conflicts(other).front().problem == "transforms what nvfp4 quantises; precision is mxfp8");
}

TEST_CASE("With frozen matrices tensors are quantised by rows alone, by their largest number") {
  const auto names = [](const Block& block) {
    std::vector<std::string> found;
    for (const Operation& op : block.operations) {
      if (op.kind == OpKind::quantise) found.push_back(op.name);
    }
    return found;
  };
  const BlockPair layer = layer_in("nvfp4,task=lora,hadamard_pass=true");
  const std::vector<std::string> back = names(layer.backward);
  CHECK(std::ranges::count(back, "up.out.grad.fp4") == 1);
  CHECK(std::ranges::count(back, "up.out.grad.fp4.largest") == 1);
  // No weight gradient reads a copy by columns.
  CHECK(operation_of(layer.forward, "norm1.out.fp4").bytes.count() ==
        2 * few_tokens * few_hidden + few_tokens * few_hidden / 2 + few_tokens * few_hidden / 16);
  CHECK(operation_of(layer_in("mxfp8,task=lora").forward, "norm1.out.fp8").bytes.count() ==
        few_tokens * few_hidden * 3 + few_tokens * few_hidden / 32);
  for (const auto& all : {names(layer.forward), back}) {
    CHECK(std::ranges::none_of(all, [](const auto& n) { return n.ends_with(".hadamard"); }));
  }
}

TEST_CASE("Norms and activations that find the largest number spare quantisation a pass") {
  const auto passes = [](const std::string& plan) {
    const BlockPair layer = layer_in(plan);
    std::vector<std::string> found;
    for (const Block* block : {&layer.forward, &layer.backward}) {
      for (const Operation& op : block->operations) {
        if (op.name.ends_with(".largest")) found.push_back(op.name);
      }
    }
    return found;
  };
  // Inputs of queries, keys and values, projection, up and down, then their outputs' gradients.
  const std::vector<std::string> all = passes("nvfp4");
  CHECK(all.size() == 8);
  const std::vector<std::string> fewer = passes("nvfp4,fused_amax=norm:activation");
  CHECK(fewer.size() == 4);
  for (const char* name :
       {"norm1.out.fp4.largest", "norm2.out.fp4.largest", "up.out.grad.fp4.largest"}) {
    CHECK(std::ranges::count(all, name) == 1);
    CHECK(std::ranges::count(fewer, name) == 0);
  }
  CHECK(passes("nvfp4,fused_amax=norm").size() == 6);
  const auto refusal = [](const std::string& plan) {
    const Question asked = question("llama3-8b", "dgx-b200 x 1", "precision=" + plan, "generic");
    return conflicts(asked).front().problem;
  };
  CHECK(refusal("mxfp8,fused_amax=norm") ==
        "needs a precision that quantises by a tensor's own amax, fp8-current or nvfp4; precision "
        "is mxfp8");
  CHECK(refusal("nvfp4,hadamard_pass=true,fused_amax=norm") ==
        "a Hadamard transform needs the amax of what it makes: hadamard_pass");
}

TEST_CASE("Current scaling finds the scale first, blocks of 128 have fp32 scales") {
  const BlockPair current = layer_in("fp8-current");
  CHECK(operation_of(current.forward, "norm1.out.fp8.largest").bytes.count() ==
        2 * few_tokens * few_hidden + 4);
  CHECK(operation_of(current.forward, "norm1.out.fp8").bytes.count() ==
        3 * few_tokens * few_hidden);
  CHECK(operation_of(layer_in("fp8-block").forward, "norm1.out.fp8").bytes.count() ==
        few_tokens * few_hidden * 4 + 2 * 4 * few_tokens * few_hidden / 128);
}

TEST_CASE("A GPU without a format, or without scales of blocks, refuses it by name") {
  const auto refusal = [](const std::string& cluster, const std::string& precision) {
    const Question asked = question("llama3-8b", cluster, "precision=" + precision, "generic");
    const std::vector<Conflict> found = conflicts(asked);
    return found.empty() ? "" : found.front().problem;
  };
  CHECK(refusal("dgx-h100 x 1", "nvfp4") == "h100-sxm-80gb does not support fp4");
  CHECK(refusal("dgx-h100 x 1", "mxfp8") ==
        "h100-sxm-80gb is not known to support GEMMs with block scales, which mxfp8 needs");
  CHECK(refusal("dgx-a100-80gb x 1", "mxfp8") == "a100-sxm-80gb does not support fp8");
  CHECK(refusal("dgx-h100 x 1", "fp8-block").empty());
  CHECK(refusal("dgx-b200 x 1", "mxfp8").empty());
  CHECK(refusal("dgx-b200 x 1", "nvfp4").empty());
}

TEST_CASE("A stack that decodes blocks needs 16 bits alone, and multiplies in them") {
  for (const char* cluster : {"dgx-a100-80gb x 1", "dgx-h100 x 1", "dgx-b200 x 1"}) {
    for (const char* precision : {"mxfp8", "nvfp4"}) {
      const Question asked = question("llama3-8b", cluster,
                                      fmt::format("precision={},zero=3", precision), "orrery-cuda");
      CHECK(conflicts(asked).empty());
      const Program program = lower(asked);
      for (const Block& block : program.blocks) {
        for (const Operation& op : block.operations) {
          if (is_gemm(op.kind) && op.dtype != DType::bf16) FAIL(op.name);
        }
      }
    }
  }
  const Question fp8 = question("llama3-8b", "dgx-a100-80gb x 1", "precision=fp8", "orrery-cuda");
  CHECK(conflicts(fp8).front().problem == "a100-sxm-80gb does not support fp8");
}

TEST_CASE("Attention in 8 bits casts what it reads and writes, and keeps copies of a byte") {
  // Llama 3 8B: 4,096 columns of queries, 2,048 of keys and values; two bytes one way, one the
  // other.
  constexpr std::int64_t queries = few_tokens * 4096, all = few_tokens * (4096 + 2048);
  const BlockPair layer = layer_in("nvfp4,low_precision_attention=true");
  CHECK(operation_of(layer.forward, "attention.qkv.narrow").bytes.count() == 3 * all);
  CHECK(operation_of(layer.forward, "attention.widen").bytes.count() == 3 * queries);
  CHECK(operation_of(layer.backward, "attention.grad.narrow").bytes.count() == 3 * queries);
  CHECK(operation_of(layer.backward, "attention.grad.widen").bytes.count() == 3 * all);
  CHECK(kept_of(layer.backward, "qkv.out.narrow").count() == all);
  CHECK(kept_of(layer.backward, "attention.out.narrow").count() == queries);
  CHECK(operation_of(layer.forward, "attention").dtype == DType::fp8);
  CHECK(operation_of(layer.forward, "attention").flops ==
        operation_of(layer_in("nvfp4").forward, "attention").flops);
  CHECK(operation_of(layer.backward, "attention.backward").dtype == DType::fp8);
}

TEST_CASE("Attention in 8 bits has a curve of its own: forward faster, on Hopper backward slower") {
  const auto time = [](const std::string& cluster, const std::string& name,
                       const std::string& more) {
    const Question asked =
        question("llama3-8b", cluster, "data=8,global_batch=8,seq_len=8192,precision=fp8" + more,
                 "megatron-core");
    const std::string generation = asked.cluster.gpu().generation.name;
    const BlockPair layer =
        layer_blocks({asked.model, asked.plan, asked.software, generation}, asked.model.layers[0]);
    const bool backward = name == "attention.backward";
    const Operation& op = operation_of(backward ? layer.backward : layer.forward, name);
    return seconds(kernel_time(op, asked.cluster.gpu(), asked.software));
  };
  const std::string narrow = ",low_precision_attention=true";
  CHECK(time("dgx-b200 x 1", "attention", narrow) < time("dgx-b200 x 1", "attention", ""));
  CHECK(time("dgx-b200 x 1", "attention.backward", narrow) <
        time("dgx-b200 x 1", "attention.backward", ""));
  CHECK(time("dgx-h200 x 1", "attention", narrow) < time("dgx-h200 x 1", "attention", ""));
  CHECK(time("dgx-h200 x 1", "attention.backward", narrow) >
        time("dgx-h200 x 1", "attention.backward", ""));
  // 4 s^2 h / 2 at 0.49 / (1 + 111 (1 + 2.6) / s) of 1,979 TFLOP/s.
  const double work = 2.0 * 8192 * 8192 * 4096;
  const double rate = 0.49 / (1 + 111 * 3.6 / 8192) * 1979e12;
  CHECK(time("dgx-h200 x 1", "attention", narrow) == Approx(work / rate).epsilon(1e-3));
}

TEST_CASE("Weights in 8 bits are transposed in backward where products read along the sum alone") {
  const auto layer = [](const std::string& plan, const std::string& generation) {
    const Question asked =
        question("llama3-8b", "dgx-h100 x 1",
                 "data=8,global_batch=8,seq_len=1024,precision=fp8" + plan, "generic");
    return layer_blocks({asked.model, asked.plan, asked.software, generation},
                        asked.model.layers[0]);
  };
  const std::string again = ",transpose_weights=true";
  // Queries, keys and values: 4,096 x 6,144. Trained weights are read in 16 bits, frozen ones in 8.
  constexpr std::int64_t numbers = 4096 * 6144;
  const BlockPair trained = layer(again, "hopper");
  CHECK(operation_of(trained.backward, "qkv.transpose").bytes.count() == 3 * numbers);
  CHECK_THROWS(operation_of(trained.forward, "qkv.transpose"));
  const BlockPair frozen = layer(again + ",task=lora,low_precision_gather=true", "hopper");
  CHECK(operation_of(frozen.backward, "qkv.transpose").bytes.count() == 2 * numbers);
  CHECK_THROWS(operation_of(layer(again, "blackwell").backward, "qkv.transpose"));
  CHECK_THROWS(operation_of(layer("", "hopper").backward, "qkv.transpose"));
  const Question wide =
      question("llama3-8b", "dgx-h100 x 1", "precision=bf16,transpose_weights=true", "generic");
  CHECK(conflicts(wide).front().problem == "needs weights in 8 bits; precision is bf16");
}

TEST_CASE("Attention in 8 bits needs products in few bits, whole sequences and a kernel") {
  const auto refusal = [](const std::string& cluster, const std::string& plan,
                          const std::string& model = "llama3-8b") {
    const Question asked = question(
        model, cluster, "seq_len=8192,low_precision_attention=true," + plan, "megatron-core");
    const std::vector<Conflict> found = conflicts(asked);
    return found.empty() ? "" : found.front().pointer + ": " + found.front().problem;
  };
  CHECK(refusal("dgx-b200 x 1", "precision=nvfp4").empty());
  CHECK(refusal("dgx-b200 x 1", "precision=nvfp4,context=2,context_form=ulysses").empty());
  CHECK(refusal("dgx-b200 x 1", "precision=bf16") ==
        "/plan/low_precision_attention: needs GEMMs in 8 or 4 bits; precision is bf16");
  CHECK(refusal("dgx-b200 x 1", "precision=nvfp4,context=2") ==
        "/plan/low_precision_attention: is not simulated with context ranks that exchange keys and "
        "values");
  CHECK(refusal("dgx-b200 x 1", "precision=fp8", "deepseek-v3") ==
        "/plan/low_precision_attention: is not simulated with latent attention");
}

TEST_CASE("Bounds of an expert's activation are kernels of their own") {
  const auto bytes = [](bool clamped, const std::string& name, const char* stack = "generic") {
    Question asked = question("gpt-oss-120b", "dgx-b200 x 1",
                              "data=8,expert=8,global_batch=8,seq_len=1024", stack);
    asked.model = changed(asked.model, [&](ModelDraft& draft) { draft.mlp.clamped = clamped; });
    const BlockPair layer =
        layer_blocks({asked.model, asked.plan, asked.software, "blackwell"}, asked.model.layers[0]);
    const bool backward = name.ends_with("backward");
    return operation_of(backward ? layer.backward : layer.forward, name).bytes.count();
  };
  CHECK(usual_mlp(catalogue_model("gpt-oss-120b")).clamped);
  CHECK(usual_mlp(catalogue_model("gpt-oss-120b")).limit == 7);
  CHECK_FALSE(usual_mlp(catalogue_model("mixtral-8x7b")).clamped);
  // 4 rows of a token on 8 ranks whose rows come to as many: 2,880 columns of two bytes.
  constexpr std::int64_t made = 4 * few_tokens * 2880 * 2;
  CHECK(bytes(true, "experts.activation") - bytes(false, "experts.activation") == 8 * made);
  CHECK(bytes(true, "experts.activation.backward") - bytes(false, "experts.activation.backward") ==
        15 * made);
  // Megatron-Core's quick_geglu, kernel by kernel: 36 bytes forward and 158 backward for each
  // output, less the 6 and 10 of a fused kernel, over the profile's 1.27 for memory traffic.
  const char* eager = "megatron-core";
  CHECK(bytes(true, "experts.activation", eager) - bytes(false, "experts.activation", eager) ==
        20 * made);
  CHECK(bytes(true, "experts.activation.backward", eager) -
            bytes(false, "experts.activation.backward", eager) ==
        73 * made);
}

TEST_CASE("Weights gathered in 8 bits are half the traffic") {
  const auto gathered = [](const std::string& more) {
    const Program program = lower(
        question("llama3-8b", "dgx-h100 x 1",
                 "data=8,zero=1,global_batch=8,seq_len=1024,precision=fp8" + more, "generic"));
    return program.collectives.back().bytes.count();
  };
  CHECK(gathered("") == 2 * gathered(",low_precision_gather=true"));
}

TEST_CASE("Layers left in bf16 multiply what is stored, the others in few bits") {
  const Question asked =
      question("llama3-8b", "dgx-b200 x 1",
               "data=8,precision=nvfp4,start_layers_bf16=1,end_layers_bf16=2,global_batch=8,"
               "seq_len=1024",
               "megatron-bridge");
  CHECK(conflicts(asked).empty());
  const Program program = lower(asked);
  check(program);
  std::vector<std::size_t> wide;
  for (std::size_t layer = 0; layer < program.kind_of_layer.size(); ++layer) {
    const Block& block = program.blocks[program.kinds[program.kind_of_layer[layer]].forward];
    const bool narrow = std::any_of(block.operations.begin(), block.operations.end(),
                                    [](const Operation& op) { return op.dtype == DType::fp4; });
    const bool casts = std::any_of(block.operations.begin(), block.operations.end(),
                                   [](const Operation& op) { return op.kind == OpKind::quantise; });
    CHECK(narrow == casts);
    if (!narrow) wide.push_back(layer);
  }
  CHECK(wide == std::vector<std::size_t>{0, 30, 31});
  const auto step = [](const std::string& more) {
    return predict(question("llama3-8b", "dgx-b200 x 1",
                            "data=8,global_batch=8,seq_len=8192," + more, "megatron-bridge"))
        .step;
  };
  CHECK(step("precision=nvfp4") < step("precision=nvfp4,end_layers_bf16=4"));
  CHECK(step("precision=nvfp4,end_layers_bf16=4") < step("precision=bf16"));
}

}  // namespace
}  // namespace orrery::models

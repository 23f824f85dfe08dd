// Sparse attention: parameters and FLOPs of the indexer and of the core worked out by hand, which
// form of the core runs, and rates of scans, windows and selections as the table has them.

#include <catch2/catch.hpp>

#include "hardware/gpu/kernel_rates.hpp"
#include "models/pricing/price.hpp"
#include "models/program/check/check.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// DeepSeek-V3.2: 128 heads of 192 and 128, latents of 1536 and 512, 64 rotated, 64 index heads of
/// 128, 2,048 tokens.
AttentionPart of_v32() {
  AttentionPart part{.heads = 128, .kv_heads = 128, .head_dim = 192, .value_dim = 128};
  part.qkv_bias = part.output_bias = false;
  part.latents = LatentAttention{.query_rank = 1536, .kv_rank = 512, .rotary_dim = 64};
  part.indexer = Indexer{.heads = 64, .dim = 128, .top = 2048};
  return part;
}

constexpr std::int64_t wide_hidden = 7168;

Model sparse_model(const AttentionPart& part, std::int64_t width = wide_hidden) {
  ModelDraft model;
  model.family = Family::llama;
  model.norms.kind = Norm::rms_norm;
  model.embedding.positions = Positions::rotary;
  model.embedding.tied = false;
  model.embedding.vocab = 64;
  model.hidden = width;
  model.layers.push_back({part, MlpPart{.width = 256, .gated = true, .bias = false}});
  return built(std::move(model));
}

const Operation* listed_operation_of(const Block& block, std::string_view name) {
  const auto found = std::ranges::find(block.operations, name, &Operation::name);
  return found == block.operations.end() ? nullptr : &*found;
}

BlockPair layer_at(const Model& model, std::int64_t length, std::int64_t tensor = 1) {
  static Software software = fused_software();
  Plan plan;
  plan.batch.seq_len = length;
  plan.tensor = tensor;
  return layer_blocks({model, plan, software, "hopper"}, model.layers[0]);
}

}  // namespace

TEST_CASE("DeepSeek-V3.2's indexer has the parameters and FLOPs that follow from its sizes") {
  // r I d + h d + h I + 2 d = 1536 * 8192 + 7168 * 128 + 7168 * 64 + 256
  const AttentionPart part = of_v32();
  AttentionPart without = part;
  without.indexer.reset();
  const std::int64_t own = tally_of(Layer{part, NoPart{}}, wide_hidden).total -
                           tally_of(Layer{without, NoPart{}}, wide_hidden).total;
  CHECK(own == 13'959'424);
  // At 4,096 tokens: 2 I d s / 2, and 2 k H (512 + 64 + 512) with 2,048 - 2,048 * 2,047 / 8,192.
  CHECK(index_flops(*part.indexer, 4096) == 33'554'432);
  CHECK(selected_tokens(*part.indexer, 4096) == 1536.25);
  CHECK(selected_flops(part, 4096) == 427'888'640);
}

TEST_CASE("The core over all tokens runs until selected ones are fewer FLOPs") {
  // Equal near s (192 + 128) = 2 k (576 + 512), at 13.9 thousand tokens.
  const AttentionPart part = of_v32();
  CHECK_FALSE(selects_faster(part, 2048));
  CHECK_FALSE(selects_faster(part, 12'288));
  CHECK(selects_faster(part, 13'926));
  CHECK(selects_faster(part, 131'072));
}

TEST_CASE("A layer of sparse attention selects in forward and scores again in backward") {
  const Model model = sparse_model(of_v32());
  const BlockPair near = layer_at(model, 4096), far = layer_at(model, 16'384);
  const Operation* const scores = listed_operation_of(near.forward, "index.scores");
  REQUIRE(scores != nullptr);
  CHECK(scores->flops.count() == std::int64_t{4096} * 33'554'432);
  std::int64_t projections = 0;
  for (const char* name : {"index_query", "index_key", "index_weight"}) {
    projections += listed_operation_of(near.forward, name)->flops.count();
  }
  CHECK(projections == std::int64_t{4096} * 27'918'336);
  CHECK(listed_operation_of(near.forward, "attention")->attention().selected == 0);
  CHECK(listed_operation_of(far.forward, "attention")->attention().selected == 2048);
  CHECK(static_cast<double>(listed_operation_of(far.forward, "attention")->flops.count()) ==
        16'384 * selected_flops(of_v32(), 16'384));
  CHECK(listed_operation_of(far.backward, "attention.backward")->flops.count() * 2 ==
        listed_operation_of(far.forward, "attention")->flops.count() * 5);
  CHECK(listed_operation_of(near.backward, "index.scores.again")->flops.count() ==
        2 * scores->flops.count());
  CHECK(parameters_of(near.forward) ==
        tally_of(model.layers[0], wide_hidden).total + 2 * wide_hidden);
}

TEST_CASE("Tensor parallelism cuts the core by heads, repeats the scores, and sums their target") {
  const Model model = sparse_model(of_v32());
  const BlockPair one = layer_at(model, 16'384), eight = layer_at(model, 16'384, 8);
  CHECK(listed_operation_of(eight.forward, "attention")->flops.count() * 8 ==
        listed_operation_of(one.forward, "attention")->flops.count());
  CHECK(listed_operation_of(eight.forward, "index.scores")->flops ==
        listed_operation_of(one.forward, "index.scores")->flops);
  CHECK(listed_operation_of(one.backward, "index.target") == nullptr);
  const Operation* const target = listed_operation_of(eight.backward, "index.target");
  REQUIRE(target != nullptr);
  CHECK(target->bytes == Bytes{std::int64_t{4} * 16'384 * 2048});
}

TEST_CASE("A layer that takes another's selection has no indexer, and the same core") {
  AttentionPart part = of_v32();
  part.indexer->shared = true;
  const BlockPair shared = layer_at(sparse_model(part), 16'384);
  CHECK(listed_operation_of(shared.forward, "index.scores") == nullptr);
  CHECK(listed_operation_of(shared.forward, "attention")->attention().selected == 2048);
}

TEST_CASE("Sparse cores and selections take what was measured on H100") {
  // ai-dynamo/aiconfigurator, flash_mla_sparse_fwd: 8,192 queries of 64 heads, 3,822 us; top-k of
  // as many rows 391 us; scores of 32 heads of 128 in fp8 289 us.
  const hardware::Gpu gpu = hardware::named_gpu("h100-sxm-80gb");
  Operation core;
  core.kind = OpKind::attention;
  core.mutable_attention() = {.batch = 1, .seq = 8192, .heads = 64, .head_dim = 192};
  core.mutable_attention().selected = 2048;
  const double keys = 2048 - 2048.0 * 2047 / (2 * 8192);
  core.flops = nearest_count<Flops>(2 * keys * 64 * 1088 * 8192);
  CHECK(seconds(kernel_time(core, gpu, fused_software())) == Approx(3822e-6).epsilon(0.05));
  Operation top;
  top.kind = OpKind::kernel;
  top.mutable_named() = {"top_k", false, 8192};
  top.flops = Flops{std::int64_t{8192} * 8192};
  CHECK(seconds(kernel_time(top, gpu, fused_software())) == Approx(391e-6).epsilon(0.27));
  Operation scores;
  scores.kind = OpKind::kernel;
  scores.dtype = DType::fp8;
  scores.mutable_named() = {"index_scores", false, 0};
  scores.flops = Flops{std::int64_t{32} * 128 * 8192 * 8192};
  CHECK(seconds(kernel_time(scores, gpu, fused_software())) == Approx(289e-6).epsilon(0.1));
}

TEST_CASE("A window on Blackwell is priced by whole tiles") {
  // NVIDIA/cudnn-frontend, gpt_oss on GB200: 2 sequences of 32,768, 128 heads of 64, window 128:
  // 2,634 us forward and 3,692 us backward.
  const hardware::Gpu gpu = hardware::named_gpu("gb200");
  Operation op;
  op.kind = OpKind::attention;
  op.mutable_attention() = {
      .batch = 2, .seq = 32'768, .heads = 128, .kv_heads = 128, .head_dim = 64, .window = 128};
  op.flops = Flops{1};
  // The longest of five lengths, which one factor for all of them misses most.
  CHECK(seconds(kernel_time(op, gpu, fused_software())) == Approx(2634e-6).epsilon(0.34));
  op.kind = OpKind::attention_backward;
  CHECK(seconds(kernel_time(op, gpu, fused_software())) == Approx(3692e-6).epsilon(0.05));
}

TEST_CASE("Every row of the rates says what it was fitted to and how far it is off") {
  const hardware::Gpu h200 = hardware::named_gpu("h200-sxm-141gb");
  const hardware::Gpu a100 = hardware::named_gpu("a100-sxm-80gb");
  const hardware::KernelRate& own = hardware::kernel_rate("delta", "forward", h200);
  CHECK(own.where == "h200-sxm-141gb");
  CHECK(own.rows == 35);
  CHECK(own.median_error_pct < 5);
  CHECK(own.p90_error_pct < 15);
  // A GPU without a row reaches no more of its peak than any that was measured.
  const hardware::KernelRate& borrowed = hardware::kernel_rate("delta", "forward", a100);
  CHECK(borrowed.speed(a100.peak(DType::bf16)->count()) <= 0.33 * a100.peak(DType::bf16)->count());
  CHECK(hardware::find_kernel_rate("no such kernel", "forward", a100) == nullptr);
  CHECK(hardware::kernel_rate("mamba2", "", a100).median_error_pct < 5);
}

}  // namespace orrery::models

// Mamba-2, gated delta rules and narrowed experts: FLOPs, bytes and saved numbers worked out by
// hand, and what tensor parallelism does not divide.

#include <catch2/catch.hpp>

#include "models/prediction/flops.hpp"
#include "models/pricing/price.hpp"
#include "models/program/check/check.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

const Operation& operation_named(const Block& block, std::string_view name) {
  for (const Operation& op : block.operations) {
    if (op.name == name) return op;
  }
  throw ContractError{"no operation " + std::string{name}};
}

/// A model of layers of this kind; h columns, 128 sequences' worth of tokens.
Model recurrent_model(std::int64_t hidden, const Layer& layer, std::int64_t layers = 1) {
  ModelDraft model;
  model.family = Family::llama;
  model.norms.kind = Norm::rms_norm;
  model.embedding.positions = Positions::rotary;
  model.embedding.tied = false;
  model.embedding.vocab = 64;
  model.hidden = hidden;
  for (std::int64_t i = 0; i < layers; ++i) model.layers.push_back(layer);
  return built(std::move(model));
}

/// Nemotron-3 Nano's Mamba-2.
constexpr Mamba2Part nano{.heads = 64, .head_dim = 64, .groups = 8, .state = 128, .chunk = 128};
/// Qwen3-Next's delta rule.
constexpr DeltaPart next{.key_heads = 16, .key_dim = 128, .value_heads = 32, .value_dim = 128};

struct OneLayer {
  Model model;
  Plan plan;
  Software software = plain_software();

  BlockPair layer() const {
    return layer_blocks({model, plan, software, "hopper"}, model.layers[0]);
  }
};

OneLayer of_one_layer(std::int64_t hidden, const Layer& layer, std::int64_t seq_len,
                      std::int64_t tensor = 1) {
  OneLayer made{recurrent_model(hidden, layer), {}};
  made.plan.batch.seq_len = seq_len;
  made.plan.tensor = tensor;
  return made;
}

std::int64_t gemms_per_token(const Block& block, std::int64_t tokens) {
  Flops sum{};
  for (const Operation& op : block.operations) {
    if (op.kind == OpKind::gemm) sum += op.flops;
  }
  return sum.count() / tokens;
}

TEST_CASE("Nano's Mamba-2 multiplies, moves and keeps what its papers say") {
  const OneLayer one = of_one_layer(2688, {nano, NoPart{}}, 1024);
  const Block forward = one.layer().forward;
  const Operation& scan = operation_named(forward, "mixer.scan");
  // 2 h (2d + 2gs + H) + 2 d h;  2 * 4 * 6144;  2 Q g s + Q d + 4 s d.
  CHECK(gemms_per_token(forward, 1024) == 77'414'400);
  CHECK(scan.flops.count() / 1024 == 49'152 + 2'883'584);
  CHECK(scan.bytes.count() / 1024 == 163'968);
  CHECK(scan.scan().chunks == 8);
  std::int64_t kept = 0;
  for (const Operand& each : forward.operands) {
    const bool own = each.name == "mixer.in.out" || each.name == "mixer.scan.out";
    if (own && each.role == Role::saved) kept += each.bytes().count() / 1024;
  }
  CHECK(kept == 20'608 + 8'192);
  CHECK(tally_of(one.model.layers[0], 2688).total == 38'742'208);
}

TEST_CASE("Qwen3-Next's delta rule multiplies what its authors count") {
  const OneLayer one = of_one_layer(2048, {next, NoPart{}}, 1024);
  const Block forward = one.layer().forward;
  CHECK(gemms_per_token(forward, 1024) == 67'371'008);
  CHECK(operation_named(forward, "mixer.scan").flops.count() / 1024 == 65'536 + 5'767'168);
  CHECK(tally_of(one.model.layers[0], 2048).total == 33'718'464);
}

/// Kimi Linear's: 32 heads of 128 in a model of width 2304.
constexpr DeltaPart kimi{
    .key_heads = 32, .key_dim = 128, .value_heads = 32, .value_dim = 128, .gate_rank = 128};

TEST_CASE("Kimi's delta rule has its decay and its gate through narrow matrices") {
  // h (3 a + H + 2 d) + 2 d a + a h, a = 4096 of all heads; 3 a c + a + H + d.
  const std::int64_t h = 2304, a = 4096, heads = 32, d = 128, taps = 4;
  const OneLayer one = of_one_layer(h, {kimi, NoPart{}}, 1024);
  const BlockPair layer = one.layer();
  const std::int64_t matrices = h * (3 * a + heads + 2 * d) + 2 * d * a + a * h;
  CHECK(gemms_per_token(layer.forward, 1024) == 2 * matrices);
  CHECK(gemms_per_token(layer.backward, 1024) == 4 * matrices);
  CHECK(tally_of(one.model.layers[0], h).total == matrices + 3 * a * taps + a + heads + d);
  for (const std::int64_t tensor : {1, 2}) {
    OneLayer cut = of_one_layer(h, {kimi, NoPart{}}, 1024, tensor);
    cut.plan.sequence_parallel = tensor > 1;
    const Program program = lower(BlockInputs{cut.model, cut.plan, cut.software});
    CHECK_NOTHROW(check(program));
    if (tensor == 1) CHECK(program.classes.front().parameters == cut.model.parameters);
  }
}

TEST_CASE("Kimi's narrow matrices are not made again with an MLP") {
  OneLayer one = of_one_layer(2304, {kimi, NoPart{}}, 1024);
  one.plan.recompute.kind = Recompute::selective;
  one.plan.recompute.modules = {RecomputeModule::mlp};
  CHECK(recomputed_flops_per_token(one.model, one.plan) == 0);
}

TEST_CASE("Kimi's delta rule takes the time of its own kernels") {
  // FLA's on H100: 48.6 us, 1.04 us a chunk, 40.6 TFLOP/s of the core's FLOPs, next to the
  // convolution and the norm of the values.
  const OneLayer one = of_one_layer(2304, {kimi, NoPart{}}, 32'768);
  const Block forward = one.layer().forward;
  const Operation& scan = operation_named(forward, "mixer.scan");
  const hardware::Gpu gpu = hardware::named_cluster("dgx-h100 x 1").gpu();
  const double core =
      48.58e-6 + 512 * 1.044e-6 + static_cast<double>(scan.flops.count()) / 40.58e12;
  const double convolution = 32'768.0 * 4 * 3 * 4096 / (0.7317 * 3.35e12) + 3.7e-6;
  const double norm = 32'768.0 * 6 * 4096 / 3.35e12;
  const double time = seconds(kernel_time(scan, gpu, plain_software(), 1));
  CHECK(time > core + convolution + norm);
  CHECK(time < core + convolution + 1.4 * norm);
}

TEST_CASE("Triton's scans are no faster on Blackwell, and its convolution is far from its memory") {
  const OneLayer one = of_one_layer(2688, {nano, NoPart{}}, 8192);
  Operation scan = operation_named(one.layer().forward, "mixer.scan");
  const auto time = [&](const char* cluster) {
    return seconds(kernel_time(scan, hardware::named_cluster(cluster).gpu(), plain_software(), 1));
  };
  // 2.93 MFLOP a token at 132.8 TFLOP/s on each of them: 181 us.
  const double work = static_cast<double>(scan.flops.count()) / 132.8e12;
  CHECK(time("dgx-h100 x 1") > work);
  CHECK(time("dgx-b200 x 1") > work);
  // 4 x 6144 bytes a token at 0.437 of 7.7 TB/s.
  const double all = time("dgx-b200 x 1");
  scan.bytes -= scan.scan().convolved;
  scan.mutable_scan().convolved = Bytes{};
  CHECK(all - time("dgx-b200 x 1") == Approx(8192 * 4 * 6144 / (0.4366 * 7.7e12)).epsilon(0.05));
}

TEST_CASE("Tensor parallelism divides a recurrence's work, and not its chunks") {
  for (const Layer& layer : {Layer{nano, NoPart{}}, Layer{next, NoPart{}}}) {
    const Block whole = of_one_layer(2048, layer, 4096).layer().forward;
    const Block half = of_one_layer(2048, layer, 4096, 2).layer().forward;
    const Operation& one = operation_named(whole, "mixer.scan");
    const Operation& other = operation_named(half, "mixer.scan");
    CHECK(one.flops.count() == 2 * other.flops.count());
    CHECK(one.bytes.count() == 2 * other.bytes.count());
    CHECK(one.scan().chunks == other.scan().chunks);
    CHECK(gemms_per_token(whole, 1) == 2 * gemms_per_token(half, 1));
  }
}

TEST_CASE("An eighth of the delta rule's heads takes more than an eighth of the time") {
  const hardware::Gpu gpu = hardware::named_cluster("dgx-h200 x 1").gpu();
  const auto time = [&](std::int64_t tensor, bool backward) {
    const BlockPair layer = of_one_layer(2048, {next, NoPart{}}, 32'768, tensor).layer();
    return kernel_time(backward ? operation_named(layer.backward, "mixer.scan.backward")
                                : operation_named(layer.forward, "mixer.scan"),
                       gpu, plain_software(), 1);
  };
  for (const bool backward : {false, true}) {
    CHECK(time(8, backward).count() * 8 > 2 * time(1, backward).count());
    CHECK(time(8, backward) < time(1, backward));
  }
  // 512 chunks of 1.07 us and 22 us, before any arithmetic.
  CHECK(time(8, false) > 569_us);
}

TEST_CASE("A model of recurrences, attention and experts adds up: parameters, FLOPs, its Program") {
  ExpertsPart experts{.count = 8, .per_token = 2, .shared_width = 64, .shared_gate = true};
  experts.mlp = {.width = 32, .gated = true, .bias = false};
  AttentionPart attention{.heads = 8, .kv_heads = 2, .head_dim = 16};
  attention.qkv_bias = attention.output_bias = false;
  attention.gated = attention.qk_norm = true;
  ExpertsPart narrow = experts;
  narrow.narrow = 32;
  narrow.shared_gate = false;
  const DeltaPart delta{.key_heads = 4, .key_dim = 16, .value_heads = 8, .value_dim = 16};
  const Mamba2Part mamba{.heads = 8, .head_dim = 16, .groups = 2, .state = 16, .chunk = 64};
  Model model = recurrent_model(128, {delta, experts});
  for (const Layer& layer : {Layer{attention, experts}, Layer{mamba, NoPart{}},
                             Layer{attention, NoPart{}}, Layer{NoPart{}, narrow}}) {
    model.layers.push_back(layer);
  }
  model.parameters = count_parameters(model);
  Plan plan;
  plan.batch.seq_len = 512;
  Software software = plain_software();
  software.kernels.attention["default"] = "flash-2";  // half of the square, as the count has it
  const Program program = lower(BlockInputs{model, plan, software});
  CHECK_NOTHROW(check(program));
  CHECK(program.classes.front().parameters == model.parameters);
  CHECK(program.kinds.size() == 5 + 2);
  double flops = 0;
  for (const std::uint32_t kind : program.kind_of_layer) {
    flops += static_cast<double>(program.blocks[program.kinds[kind].forward].flops().count());
  }
  flops +=
      static_cast<double>(program.blocks[program.kind(ModelPart::head).forward].flops().count());
  CHECK(flops == Approx(512 * forward_flops_per_token(model, 512)).epsilon(1e-9));
  software.runs.keeps_expert_outputs = true;
  CHECK(lower(BlockInputs{model, plan, software}).inexact_feature.empty());
  plan.batch.documents = {100, 200};
  CHECK(lower(BlockInputs{model, plan, software}).inexact_feature ==
        "recurrences over packed documents");
  plan.batch.documents = {};
  plan.context = 2;
  CHECK(conflicts(plan, model, 2).front().problem ==
        "context parallelism of Mamba-2 and delta rules is not simulated");
}

}  // namespace
}  // namespace orrery::models

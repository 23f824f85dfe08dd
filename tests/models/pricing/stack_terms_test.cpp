#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hardware/catalogue.hpp"
#include "models/operations/blocks.hpp"
#include "models/pricing/price.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

const hardware::Gpu& a100() {
  static const hardware::Gpu gpu = hardware::named_gpu("a100-sxm-80gb");
  return gpu;
}

Operation softmax_of(std::int64_t sequences, std::int64_t heads, std::int64_t seq) {
  Operation op;
  op.kind = OpKind::softmax;
  op.mutable_attention() = {.batch = sequences, .seq = seq, .heads = heads, .kv_heads = heads};
  op.bytes = 4_MB;
  return op;
}

Operation product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Operation op;
  op.kind = OpKind::batched_gemm;
  op.mutable_gemm() = {.m = m, .n = n, .k = k, .batch = 8};
  op.flops = Flops{2 * m * n * k * 8};
  op.dtype = DType::fp16;
  return op;
}

TEST_CASE("Megatron's softmax fuses attention batches in fours up to 2048 tokens") {
  // One launch of 20 us; in pieces five of them and nine times the traffic.
  Software software = plain_software();
  software.kernels.softmax_in_fours = true;
  software.host.forward_launch = 20_us;
  for (const auto& fused : {softmax_of(1, 4, 2048), softmax_of(2, 2, 1024)}) {
    CHECK(launch_time(fused, software, 1) == 20_us);
  }
  for (const auto& pieces : {softmax_of(1, 2, 1024), softmax_of(1, 4, 4096)}) {
    CHECK(launch_time(pieces, software, 1) == 100_us);
  }
  Operation nine_times = softmax_of(1, 4, 2048);
  nine_times.bytes = 36_MB;
  CHECK(kernel_time(softmax_of(1, 2, 2048), a100(), software) ==
        kernel_time(nine_times, a100(), software));
  software.kernels.softmax_in_fours = false;
  CHECK(launch_time(softmax_of(1, 2, 1024), software, 1) == 20_us);
}

TEST_CASE("The optimizer's update has a factor of its own, or that of the stack's other kernels") {
  Software eager = plain_software();
  eager.kernels.memory_derate = 3;
  const auto time = [](OpKind kind, Bytes bytes, const Software& software) {
    Operation op;
    op.kind = kind;
    op.dtype = DType::bf16;
    op.bytes = bytes;
    return kernel_time(op, a100(), software);
  };
  using enum OpKind;
  CHECK(time(adam, 4_MB, eager) == time(adam, 12_MB, plain_software()));
  eager.kernels.optimizer_derate = 2;
  CHECK(time(adam, 4_MB, eager) == time(adam, 8_MB, plain_software()));
  CHECK(time(add, 4_MB, eager) == time(add, 12_MB, plain_software()));
}

TEST_CASE("Mixed precision leaves norms, softmax and losses in fp32, and only those") {
  // At three times the traffic a kernel takes as long as one that moves three times the bytes.
  Software mixed = plain_software();
  mixed.kernels.mixed_derate = 3;
  const auto of = [](OpKind kind, DType dtype, Bytes bytes) {
    Operation op;
    op.kind = kind;
    op.dtype = dtype;
    op.bytes = bytes;
    return op;
  };
  const auto time = [](const Operation& op, const Software& software) {
    return kernel_time(op, a100(), software);
  };
  using enum OpKind;
  for (const OpKind kind :
       {norm, norm_backward, softmax, softmax_backward, cross_entropy, cross_entropy_backward}) {
    CHECK(time(of(kind, DType::fp16, 4_MB), mixed) ==
          time(of(kind, DType::fp16, 12_MB), plain_software()));
    CHECK(time(of(kind, DType::fp32, 4_MB), mixed) ==
          time(of(kind, DType::fp32, 4_MB), plain_software()));
  }
  for (const OpKind kind : {add, add_backward, activation, activation_backward, adam, cast}) {
    CHECK(time(of(kind, DType::fp16, 4_MB), mixed) ==
          time(of(kind, DType::fp16, 4_MB), plain_software()));
  }
}

TEST_CASE("A head size off eight makes attention's products many times slower") {
  const Software software = plain_software();
  const Time aligned = kernel_time(product(2048, 2048, 112), a100(), software);
  const Time odd = kernel_time(product(2048, 2048, 108), a100(), software);
  CHECK(ratio(odd, aligned) > 8);
  CHECK(ratio(odd, aligned) < 13);
}

TEST_CASE("A weight gradient shows a share of reading and writing its fp32 sums") {
  // 4096 x 4096 sums, 8 bytes each: 134,217,728 bytes; half of it at the memory's share of peak.
  Software software = plain_software();
  software.gradient = DType::fp32;
  Operation op;
  op.kind = OpKind::gemm;
  op.dtype = DType::bf16;
  op.mutable_gemm() = {.m = 4096, .n = 4096, .k = 2048, .accumulate = true};
  op.flops = Flops{2 * std::int64_t{4096} * 4096 * 2048};
  const Time hidden = kernel_time(op, a100(), software);
  software.kernels.accumulate_exposed = 0.5;
  const double rate = a100().memory_bound.memory_share * a100().memory_bandwidth.count();
  const double shown = seconds(kernel_time(op, a100(), software) - hidden);
  CHECK(shown == Approx(0.5 * 134217728 / rate).epsilon(1e-6));
  // 16-bit sums are read and written, too, in half the bytes.
  software.gradient = DType::bf16;
  const double narrow = seconds(kernel_time(op, a100(), software) - hidden);
  CHECK(narrow == Approx(0.25 * 134217728 / rate).epsilon(1e-6));
}

TEST_CASE("A product in 8 bits starts later, experts' on four streams, where the stack says so") {
  const hardware::Gpu h100 = hardware::named_gpu("h100-sxm-80gb");
  Operation op;
  op.kind = OpKind::gemm;
  op.mutable_gemm() = {.m = 4096, .n = 4096, .k = 4096};
  op.flops = Flops{2 * std::int64_t{4096} * 4096 * 4096};
  Software later = plain_software();
  later.kernels.quantised_gemm_overhead["hopper"] = 40_us;
  const auto longer = [&](const hardware::Gpu& gpu) {
    return kernel_time(op, gpu, later) - kernel_time(op, gpu, plain_software());
  };
  op.dtype = DType::fp8;
  CHECK(longer(h100) == 40_us);
  CHECK(longer(hardware::named_gpu("b200-sxm")) == Time{});
  op.kind = OpKind::grouped_gemm;
  op.mutable_group_rows() = {2048, 1024, 1024};
  CHECK(longer(h100) == 40_us);  // three experts on a stream each
  op.mutable_group_rows() = {1024, 1024, 1024, 512, 512};
  CHECK(longer(h100) == 80_us);  // one stream has two
  op.dtype = DType::bf16;
  CHECK(longer(h100) == Time{});
}

TEST_CASE("Products in 8 bits have a factor of their own next to that of all products") {
  const hardware::Gpu h100 = hardware::named_gpu("h100-sxm-80gb");
  Operation op;
  op.kind = OpKind::gemm;
  op.mutable_gemm() = {.m = 16384, .n = 16384, .k = 16384};
  op.flops = Flops{2 * std::int64_t{16384} * 16384 * 16384};
  op.dtype = DType::fp8;
  Software software = plain_software();
  const double plain = seconds(kernel_time(op, h100, software));
  software.kernels.quantised_derate["hopper"] = 0.8;
  // All but the kernel's start, some microseconds of 8 ms.
  CHECK(seconds(kernel_time(op, h100, software)) == Approx(0.8 * plain).epsilon(1e-3));
  CHECK(kernel_time(op, hardware::named_gpu("b200-sxm"), software) ==
        kernel_time(op, hardware::named_gpu("b200-sxm"), plain_software()));
  op.dtype = DType::bf16;
  CHECK(kernel_time(op, h100, software) == kernel_time(op, h100, plain_software()));
}

TEST_CASE("Products in 4 bits have a factor in place of that of 8 bits") {
  const hardware::Gpu b200 = hardware::named_gpu("b200-sxm");
  Operation op;
  op.kind = OpKind::gemm;
  op.mutable_gemm() = {.m = 16384, .n = 16384, .k = 16384};
  op.flops = Flops{2 * std::int64_t{16384} * 16384 * 16384};
  Software software = plain_software();
  software.kernels.quantised_derate["blackwell"] = 0.5;
  software.kernels.fp4_derate["blackwell"] = 0.8;
  op.dtype = DType::fp4;
  CHECK(seconds(kernel_time(op, b200, software)) ==
        Approx(0.8 * seconds(kernel_time(op, b200, plain_software()))).epsilon(3e-3));
  op.dtype = DType::fp8;
  CHECK(seconds(kernel_time(op, b200, software)) ==
        Approx(0.5 * seconds(kernel_time(op, b200, plain_software()))).epsilon(3e-3));
}

TEST_CASE("A host launches a router's and a dispatcher's small operations, half backward") {
  Software software = plain_software();
  const auto more = [&](OpKind kind, std::optional<RowMove> move) {
    Operation op;
    op.kind = kind;
    if (move) op.mutable_moves() = *move;
    software.host.expert_layer = Time{};
    const Time alone = launch_time(op, software, 1);
    software.host.expert_layer = 10_ms;
    return launch_time(op, software, 1) - alone;
  };
  // A fifth of it comes after the host knows how many rows each expert has.
  CHECK(more(OpKind::route, {}) == 4_ms);
  CHECK(more(OpKind::permute, RowMove::dispatch) == 1_ms);
  CHECK(more(OpKind::unpermute, RowMove::dispatch_backward) == 1_ms);
  CHECK(more(OpKind::route_backward, {}) == 4_ms);
  CHECK(more(OpKind::permute, RowMove::by_expert) == Time{});
  CHECK(more(OpKind::unpermute, RowMove::combine) == Time{});
}

TEST_CASE("Copies of a token bring its probabilities to experts, whose gradients return") {
  // 512 experts on eight ranks of one node: 4 x 512 bytes next to latent rows of 2 x 1,024.
  const auto times = [](const std::string& dispatcher) {
    const Question asked = question(
        "nemotron-3-super-120b-a12b", "hgx-b200 x 1",
        "data=8,expert=8,global_batch=8,seq_len=8192,permute_fusion=true,dispatcher=" + dispatcher,
        "megatron-core");
    const Program program = lower(asked);
    std::vector<std::string> assumptions;
    const PricedProgram priced = price_program(program, asked.cluster, asked.software, assumptions);
    std::map<std::string, double> found;
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      for (std::size_t i = 0; i < program.blocks[b].operations.size(); ++i) {
        const Operation& op = program.blocks[b].operations[i];
        if (op.kind != OpKind::collective || op.collective() != Collective::all_to_all) continue;
        found[op.name] = seconds(priced.blocks[b][i].duration);
      }
    }
    return found;
  };
  auto fused = times("hybridep"), library = times("alltoall");
  REQUIRE(fused.contains("dispatched.all_to_all"));
  CHECK(fused["dispatched.all_to_all"] == Approx(2 * fused["returned.all_to_all"]).epsilon(0.1));
  CHECK(fused["dispatched.grad.all_to_all"] ==
        Approx(2 * fused["returned.grad.all_to_all"]).epsilon(0.1));
  CHECK(library["dispatched.all_to_all"] == library["returned.all_to_all"]);
}

TEST_CASE("Experts' rows in blocks that share a scale are quantised expert by expert") {
  // Four experts of eight are here; their rows in and between their two products.
  Question asked = question("mixtral-8x7b", "hgx-b200 x 1",
                            "data=8,expert=2,global_batch=8,precision=mxfp8", "generic");
  const Program program = lower(asked);
  const auto launched = [&](Time each) {
    asked.software.host.expert_launch = each;
    std::vector<std::string> assumptions;
    const PricedProgram priced = price_program(program, asked.cluster, asked.software, assumptions);
    Time sum{};
    for (const PricedOperation& price : priced.blocks[program.kinds.front().forward]) {
      sum += price.launch;
    }
    return sum;
  };
  CHECK(launched(10_us) - launched(Time{}) == 80_us);
}

TEST_CASE("Kernels in a queue show no more than 4 us of their start") {
  Operation op;
  op.kind = OpKind::add;
  op.bytes = 1_MB;
  REQUIRE(a100().memory_bound.overhead > 4_us);
  CHECK(kernel_time(op, a100(), plain_software()) ==
        a100().memory_time(1_MB) - (a100().memory_bound.overhead - 4_us));
}

TEST_CASE("Only the tokens to predict go through an encoder's head where the stack picks them") {
  Software software = plain_software();
  Plan plan;
  plan.batch.micro = 4;
  plan.batch.seq_len = 128;
  const Model model = catalogue_model("bert-large");
  const auto logits_of = [&](double share) {
    software.kernels.predicted_share = share;
    const BlockInputs inputs{model, plan, software, "ampere"};
    const BlockPair head = head_blocks(inputs);
    const auto logits = head.forward.find("logits");
    const auto gradient = head.backward.find("logits.grad");
    REQUIRE(logits);
    REQUIRE(gradient);
    CHECK(head.forward.operands[*logits].shape == head.backward.operands[*gradient].shape);
    return head.forward.operands[*logits].shape[1];
  };
  CHECK(logits_of(1.0) == 512);
  CHECK(logits_of(0.25) == 128);
}

/// Kernels of a layer's forward block.
Time forward_of(const Question& asked) {
  const Program program = lower(
      BlockInputs{asked.model, asked.plan, asked.software, asked.cluster.gpu().generation.name});
  std::vector<std::string> assumptions;
  const PricedProgram priced = price_program(program, asked.cluster, asked.software, assumptions);
  Time sum{};
  for (const PricedOperation& each : priced.blocks[program.kind(ModelPart::layer).forward]) {
    sum += each.duration;
  }
  return sum;
}

TEST_CASE("Kernels next to gathers of ZeRO-3 take longer, by a share of the shorter of the two") {
  const char* plan = "zero=3,global_batch=16,seq_len=2048";
  Question asked = question("llama3.1-8b", "dgx-a100-80gb x 2", plan, "pytorch-fsdp");
  asked.software.overlap.contention = 0;
  const Time alone = forward_of(asked);
  asked.software.overlap.contention = 0.2;
  // A layer's 218 million parameters of 2 bytes take less time on the way than its products.
  const Time contended = forward_of(asked);
  CHECK(contended > alone);
  CHECK(ratio(contended, alone) < 1.2);
  asked.plan.overlap.gradients = false;
  CHECK(forward_of(asked) == alone);
  asked.plan.overlap.gradients = true;
  asked.plan.sharding.zero = Zero::one;
  CHECK(forward_of(asked) == alone);
}

/// Durations of the data-parallel reductions of a step, and of its gathers of parameters.
std::pair<Time, Time> data_parallel_times(const Question& asked) {
  const Program program = lower(
      BlockInputs{asked.model, asked.plan, asked.software, asked.cluster.gpu().generation.name});
  std::vector<std::string> assumptions;
  const PricedProgram priced = price_program(program, asked.cluster, asked.software, assumptions);
  std::pair<Time, Time> sums;
  for (std::size_t j = 0; j < program.collectives.size(); ++j) {
    const JointCollective& joint = program.collectives[j];
    const Time time = priced.collectives[j].duration;
    if (joint.gathers_parameters) sums.second += time;
    if (joint.kind == Collective::reduce_scatter) sums.first += time;
  }
  return sums;
}

TEST_CASE("Reductions overlap with backward and gathers with forward, each by its own choice") {
  Question asked =
      question("llama3.1-8b", "dgx-a100-80gb x 2", "zero=1,global_batch=16,seq_len=2048", "nemo");
  asked.software.overlap.data_exposed = 0.25;
  const auto both = data_parallel_times(asked);
  asked.plan.overlap.gathers = false;
  const auto reductions = data_parallel_times(asked);
  CHECK(reductions.first == both.first);
  CHECK(ratio(reductions.second, both.second) == Approx(4).epsilon(1e-6));
  asked.plan.overlap.gradients = false;
  asked.plan.overlap.gathers = true;
  const auto gathers = data_parallel_times(asked);
  CHECK(gathers.second == both.second);
  CHECK(ratio(gathers.first, both.first) > 3.9);  // in one bucket, with one latency
  asked.plan.overlap.gathers.reset();
  CHECK(data_parallel_times(asked) == std::pair{gathers.first, reductions.second});
}

TEST_CASE("A calibrated processor's own Adam is its host's") {
  hardware::NodeType node;
  node.gpu = a100();
  node.gpu.calibration.kernels["adam"] = {.table = {}, .overhead = 1_ms, .rate = 1_GBps};
  Operation adam;
  adam.kind = OpKind::adam;
  adam.queue = Lane::host;
  adam.bytes = 30_MB;
  CHECK(host_adam_time(adam, node, 1) < 1_ms);  // a GPU's kernel is not its host's
  node.gpu.generation.host_cores = true;
  CHECK(host_adam_time(adam, node, 1) == 31_ms);
}

TEST_CASE("The host's Adam takes as long as published, the ranks of a machine together") {
  // 10 billion parameters on one machine: 2.57 s, with 30 bytes of traffic each.
  Operation adam;
  adam.kind = OpKind::adam;
  adam.queue = Lane::host;
  adam.bytes = Bytes{30'000'000'000};
  hardware::NodeType node = hardware::named_cluster("dgx-2").node;
  const auto time = [&] { return seconds(host_adam_time(adam, node, 10)); };
  CHECK(time() == Approx(2.57).epsilon(1e-6));
  // Faster memory is not known to be faster; slower memory is slower.
  node.host_memory_bandwidth = 1000_GBps;
  CHECK(time() == Approx(2.57).epsilon(1e-6));
  node.host_memory_bandwidth = 128_GBps;
  CHECK(time() == Approx(2 * 2.57).epsilon(1e-6));
  // A measurement of the machine itself comes before.
  node.host_adam = 300_GBps;
  CHECK(time() == Approx(1).epsilon(1e-9));
  Operation copy;
  copy.kind = OpKind::copy;
  copy.queue = Lane::copy;
  copy.bytes = 10_MB;
  CHECK(kernel_time(copy, a100(), plain_software()) == 10_MB / a100().host_link);
}

}  // namespace
}  // namespace orrery::models

// Times of single kernels and of their launches: models/pricing/price.hpp.

#include <algorithm>
#include <cmath>

#include "hardware/gpu/kernel_rates.hpp"
#include "models/pricing/calibrated.hpp"
#include "models/pricing/grouped.hpp"
#include "models/pricing/listed.hpp"
#include "models/pricing/price.hpp"
#include "models/pricing/rank_load.hpp"

namespace orrery::models {

namespace {

Bytes scaled_bytes(Bytes bytes, double factor) {
  return nearest_count<Bytes>(static_cast<double>(bytes.count()) * factor);
}

/// Is a softmax beyond what the stack's fused kernel takes?
/// Source  Megatron-LM, fused_softmax.py: at most 2048 tokens, attention batches in fours
bool is_unfused_softmax(const Operation& op, const Software& software) {
  if (!software.kernels.softmax_in_fours) return false;
  if (op.kind != OpKind::softmax && op.kind != OpKind::softmax_backward) return false;
  const AttentionShape& shape = op.attention();
  return shape.seq > 2048 || shape.batch * shape.heads % 4 != 0;
}

/// An unfused softmax runs several kernels instead of one: to fp32, scale, mask, softmax, back to
/// 16 bits. They move 2 + 4, three times 4 + 4, and 4 + 2 bytes a score instead of 2 + 2, and
/// backward alike.
constexpr int softmax_pieces = 5;
constexpr double softmax_pieces_traffic = 36.0 / 4.0;

double alignment_derate(const Operation& op, const hardware::Generation& generation) {
  const bool aligned = op.gemm().n % 8 == 0 && op.gemm().k % 8 == 0;
  const bool narrow = hardware::bits(op.dtype) == 16;
  const bool unaligned = op.kind == OpKind::batched_gemm && narrow && !aligned;
  return unaligned ? generation.unaligned_attention : 1.0;
}

/// Time that a GEMM takes longer because it accumulates into its output: each element is read and
/// written, and a share of that is exposed.
Time accumulation_time(const Operation& op, const hardware::Gpu& gpu, const Software& software) {
  if (!op.gemm().accumulate) return Time{};
  const DType sums = op.dtype == DType::fp64 ? DType::fp64 : software.gradient_dtype_for(op.dtype);
  const auto traffic = static_cast<double>(2 * hardware::bits(sums) / 8 * op.gemm().m *
                                           op.gemm().n * op.gemm().batch);
  const double rate = gpu.memory_bound.memory_share * gpu.memory_bandwidth.count();
  return from_seconds(software.kernels.accumulate_exposed * traffic / rate);
}

/// A kernel that runs alone exposes its whole start-up time; in a queue, part of that overlaps the
/// kernel before it, so that at most this much is exposed.
/// One row holds for all GPUs.
Time queued_start() {
  static const Time measured = hardware::kernel_rate("queued_gemm", "", {}).start;
  return measured;
}

Time without_hidden_start(Time alone, Time start) {
  return start > queued_start() ? alone - (start - queued_start()) : alone;
}

/// The same of the GEMMs of experts: of one, or of each that has rows where they are multiplied one
/// by one.
Time experts_without_hidden_starts(const Operation& op, const hardware::Gpu& gpu) {
  const Time start = gpu.gemm.at(op.dtype).overhead;
  const Time alone = grouped_time(op, gpu);
  if (op.module.kernels == 1 || start <= queued_start()) {
    return without_hidden_start(alone, start);
  }
  return alone - (start - queued_start()) * experts_with_rows(op);
}

/// Time of a GEMM, or of those of an MLP's tiles one after another, each an equal part of it.
Time queued_gemm_time(const Operation& op, const hardware::Gpu& gpu) {
  const std::int64_t tiles = op.module.kernels;
  const Flops flops{op.flops.count() / tiles};
  const Bytes bytes{op.bytes.count() / tiles};
  return without_hidden_start(gpu.gemm_time(op.dtype, flops, bytes),
                              gpu.gemm.at(op.dtype).overhead) *
         tiles;
}

/// Start-up time, as far as it is exposed in a queue, of the kernels of an operation after its
/// first.
Time further_starts(const Operation& op, Time start) {
  return std::min(start, queued_start()) * (op.module.kernels - 1);
}

/// Operations that automatic mixed precision computes in fp32 between casts; all others follow
/// their operands.
/// Source  "CUDA Ops that can autocast to float32", PyTorch's documentation of torch.amp; the clear
///         and the deny list of TensorFlow's auto_mixed_precision_lists.h say the same of these
bool runs_in_fp32(OpKind kind) {
  switch (kind) {
    case OpKind::norm:
    case OpKind::norm_backward:
    case OpKind::softmax:
    case OpKind::softmax_backward:
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_backward:
      return true;
    default:
      return false;
  }
}

}  // namespace

double memory_derate(const Operation& op, const Software& software) {
  const bool mixed = hardware::bits(op.dtype) == 16 && runs_in_fp32(op.kind);
  const double usual =
      software.kernels.memory_derate * (mixed ? software.kernels.mixed_derate : 1.0);
  if (op.kind == OpKind::adam) return software.kernels.optimizer_derate.value_or(usual);
  // Counted pass by pass, as an unfused stack runs them (models/operations/parts/experts.cpp).
  const bool permutes = op.kind == OpKind::permute || op.kind == OpKind::unpermute;
  if (permutes && !op.fused()) return 1;
  if (op.kind == OpKind::accumulate) return usual * software.kernels.accumulate_derate;
  return is_unfused_softmax(op, software) ? usual * softmax_pieces_traffic : usual;
}

namespace {

/// Factor by which a kernel that was measured alone is slower in a stack's step. GEMMs were timed
/// in bursts near the highest clock; a step runs them at the clock that its own load leaves.
double measured_derate(const Operation& op, const hardware::Gpu& gpu, const Software& software) {
  if (!is_gemm(op.kind)) return memory_derate(op, software);
  return software.gemm_derate(gpu.generation.name) / gpu.sustained_share;
}

/// Length by which a curve prices attention. Of cross-attention, whose queries and keys differ in
/// number, that of the square with as many scores: no kernel with unequal lengths was measured, and
/// both few queries and few keys cost efficiency.
std::int64_t priced_length(const AttentionShape& of) {
  if (!of.crosses) return of.seq;
  return std::llround(std::sqrt(static_cast<double>(of.seq) * static_cast<double>(of.keys)));
}

hardware::AttentionCall call_of(const Operation& op) {
  return {
      .work = op.flops,
      .seq = priced_length(op.attention()),
      .head_dim = static_cast<int>(op.attention().head_dim),
      .causal = op.attention().causal,
      .grouped = op.attention().kv_heads > 0 && op.attention().kv_heads < op.attention().heads,
      .pass = op.kind == OpKind::attention ? hardware::Pass::forward : hardware::Pass::backward};
}

/// Time of attention over a part of the sequence without a fused kernel: its GEMMs, and the passes
/// of its softmax over the scores, one that reads and writes them in forward and two in backward.
Time unfused_time(const Operation& op, const hardware::Gpu& gpu, const Software& software) {
  const AttentionShape& of = op.attention();
  const bool forward = op.kind == OpKind::attention;
  const std::int64_t keys = of.keys > 0 ? of.keys : of.seq;
  const Bytes scores = multiplied<Bytes>(of.batch, of.heads, of.seq, keys) * bits(op.dtype);
  const Bytes once{scores.count() / 8};
  const Bytes passes = once * (forward ? 2 : 4);
  return scaled(gpu.gemm_time(op.dtype, op.flops, op.bytes + passes),
                software.gemm_derate(gpu.generation.name) / gpu.sustained_share) +
         gpu.memory_time(scaled_bytes(passes, memory_derate(op, software)));
}

/// Time of copies and of work of the host; nullopt for kernels of the GPU.
std::optional<Time> host_time(const Operation& op, const hardware::Gpu& gpu) {
  if (op.kind == OpKind::copy) return op.bytes / gpu.host_link;
  if (op.kind == OpKind::host_work) return op.host_time();
  return std::nullopt;
}

bool is_low_precision_gemm(const Operation& op) {
  return op.dtype == hardware::DType::fp8 || op.dtype == hardware::DType::fp4;
}

double gemm_derate(const Operation& op, const Software& software, std::string_view generation) {
  const double usual = software.gemm_derate(generation);
  return is_low_precision_gemm(op)
             ? usual * software.low_precision_gemm_derate(generation, op.dtype)
             : usual;
}

/// Start-up time of a GEMM in 8 or 4 bits; of a grouped GEMM, that of its longest stream: products
/// are dealt out to four.
/// Source  NVIDIA/TransformerEngine, common/util/multi_stream.cpp (num_compute_streams) and
///         common/gemm/cublaslt_gemm.cu (multi_stream_cublas_gemm)
Time quantised_gemm_overhead(const Operation& op, const Software& software,
                             std::string_view generation) {
  if (!is_low_precision_gemm(op)) return Time{};
  constexpr std::int64_t streams = 4;
  const auto products = std::max<std::int64_t>(1, std::ssize(op.group_rows()));
  return software.quantised_gemm_overhead(generation) * ((products + streams - 1) / streams);
}

/// The convolution along the sequence: at the share of the memory's rate that was measured, once
/// for each time that it runs or is run again. Source  hardware/measured/rates.csv,
/// causal_conv1d_fn of H100, B200 and GB300
Time convolution_of_scan(const Operation& op, const hardware::Gpu& gpu) {
  const hardware::KernelRate& rate = hardware::kernel_rate("conv1d", "forward", gpu);
  return op.scan().convolved / Bandwidth{rate.share * gpu.memory_bandwidth.count()} + rate.start;
}

/// Time of a recurrence: its arithmetic at a rate, a time for each chunk of the sequence, which no
/// cut over ranks shortens, its convolution, and the traffic of its norm and of what its kernels
/// pass on. Rates are of forward's FLOPs (hardware/measured/rates.csv); where backward was not
/// measured on a GPU, its rate is as much below forward's as where it was. Kimi's backward was
/// nowhere: it is as much slower than its forward as the other delta rule's.
///   Mamba-2  backward at the same rate of its own FLOPs; convolution, sums of steps, states, their
///            passing, products, scan and norm are 7 kernels
///   delta    start + chunk * chunks + FLOPs / rate
Time scan_time(const Operation& op, const hardware::Gpu& gpu, const Software& software) {
  constexpr int mamba_kernels = 7;
  constexpr double backward_flops = 4;  // over forward's (operations/parts/scan.cpp)
  const bool backward = op.kind == OpKind::scan_backward;
  const auto peak_type = gpu.peak(op.dtype) ? op.dtype : hardware::DType::fp32;
  const double peak = gpu.peak(peak_type)->count();
  const Bytes rest = op.bytes - op.scan().convolved;
  const Time traffic = gpu.memory_time(scaled_bytes(rest, memory_derate(op, software))) +
                       convolution_of_scan(op, gpu);
  const auto flops = static_cast<double>(op.flops.count());
  if (op.scan().rule == ScanRule::mamba2) {
    const double speed = hardware::kernel_rate("mamba2", "", gpu).speed(peak);
    return from_seconds(flops / speed) + traffic + gpu.memory_bound.overhead * (mamba_kernels - 1);
  }
  const char* part = op.scan().rule == ScanRule::kimi ? "kimi" : "delta";
  const hardware::KernelRate& forward = hardware::kernel_rate(part, "forward", gpu);
  if (!backward) {
    return from_seconds(flops / forward.speed(peak)) + traffic + forward.chunk * op.scan().chunks +
           forward.start;
  }
  const hardware::KernelRate& own = hardware::kernel_rate("delta", "backward", gpu);
  hardware::Gpu measured = gpu;  // the one that the backward row is of
  measured.name = own.where;
  const double slower = hardware::kernel_rate("delta", "forward", measured).rate.count() /
                        std::max(1.0, own.rate.count());
  return from_seconds(flops / backward_flops * slower / forward.speed(peak)) + traffic +
         own.chunk * op.scan().chunks + own.start;
}

/// Time of fused attention alone on the GPU.
Time attention_time(const Operation& op, const hardware::Gpu& gpu, const Software& software) {
  if (op.attention().selected > 0) return selected_attention_time(op, gpu);
  const std::string curve = attention_curve(software.attention(gpu.generation.name), op.dtype);
  if (const std::optional<Time> windowed = window_time(op, gpu, curve)) return *windowed;
  return gpu.attention_time(curve, op.dtype, call_of(op));
}

}  // namespace

Time host_adam_time(const Operation& op, const hardware::NodeType& node, int at_once) {
  const hardware::Gpu& gpu = node.gpu;
  if (node.host_adam) return op.bytes * at_once / *node.host_adam;
  const auto measured = calibrated_time(op, gpu);
  if (measured && gpu.generation.host_cores) {
    return scaled(*measured, slowdown_of(op, gpu, at_once));
  }
  const hardware::KernelRate& known = hardware::kernel_rate("host_adam", "", gpu);
  double rate = known.rate.count();
  if (node.host_memory_bandwidth) rate = known.speed(node.host_memory_bandwidth->count());
  return op.bytes * at_once / Bandwidth{rate};
}

Time kernel_time(const Operation& op, const hardware::Gpu& gpu, const Software& software,
                 int at_once) {
  if (const auto there = host_time(op, gpu)) return *there;
  if (const auto measured = calibrated_time(op, gpu)) {
    return scaled(*measured, measured_derate(op, gpu, software) * slowdown_of(op, gpu, at_once));
  }
  const std::string_view generation = gpu.generation.name;
  switch (op.kind) {
    case OpKind::gemm:
    case OpKind::batched_gemm:
      return scaled(queued_gemm_time(op, gpu), gemm_derate(op, software, generation) *
                                                   alignment_derate(op, gpu.generation) /
                                                   gpu.sustained_share) +
             accumulation_time(op, gpu, software) +
             quantised_gemm_overhead(op, software, generation);
    case OpKind::grouped_gemm:
      return scaled(experts_without_hidden_starts(op, gpu),
                    gemm_derate(op, software, generation) / gpu.sustained_share) +
             accumulation_time(op, gpu, software) +
             quantised_gemm_overhead(op, software, generation);
    case OpKind::attention:
    case OpKind::attention_backward:
      if (software.attention(generation) == "unfused") return unfused_time(op, gpu, software);
      return scaled(attention_time(op, gpu, software), software.kernels.attention_derate);
    case OpKind::scan:
    case OpKind::scan_backward:
      return scaled(scan_time(op, gpu, software), software.kernels.scan_derate);
    case OpKind::convolution:
      return convolution_time(op, gpu, software);
    case OpKind::kernel:
      return named_kernel_time(op, gpu, software);
    default:
      return without_hidden_start(
                 gpu.memory_time(scaled_bytes(op.bytes, memory_derate(op, software))),
                 gpu.memory_bound.overhead) +
             further_starts(op, gpu.memory_bound.overhead);
  }
}

std::string attention_curve(std::string_view kernel, hardware::DType type) {
  std::string curve{kernel};
  if (type == hardware::DType::fp8) curve += "-fp8";
  return curve;
}

/// Share of HostCosts::expert_layer that comes after the router's numbers of rows are known, where
/// the host has waited for them (lowering/host_waits.cpp): in dispatch and what it calls.
/// Calibration  0 to 1 tried, with 1 to 2.4 for scan_derate, on 103 steps of Megatron-Bridge and
///              NeMo with experts in scenarios/validation/runs.csv, Nemotron 3 and Qwen3 among
///              them: 0.2 leaves the median of those without recurrent layers where it was (4 %),
///              0.5 and 1 would suit Nemotron 3 better (6 and 4 %) and the others less (8 and 16 %)
constexpr double after_counts = 0.2;

/// Host time of a layer's experts besides launches, as far as it comes with this operation.
Time expert_layer_time(const Operation& op, const HostCosts& host) {
  if (op.kind == OpKind::route || op.kind == OpKind::route_backward) {
    return scaled(host.expert_layer, 0.5 * (1 - after_counts));
  }
  const bool permutes = op.kind == OpKind::permute && op.moves() == RowMove::dispatch;
  const bool adds = op.kind == OpKind::unpermute && op.moves() == RowMove::dispatch_backward;
  return permutes || adds ? scaled(host.expert_layer, 0.5 * after_counts) : Time{};
}

Time launch_time(const Operation& op, const Software& software, int ranks) {
  const HostCosts& host = software.host;
  if (op.kind == OpKind::host_work) return Time{};
  if (op.kind == OpKind::collective) return host.communication_launch + host.jitter * ranks;
  const bool python = op.pass == Pass::forward || op.pass == Pass::recompute;
  const Time one = (python ? host.forward_launch : host.backward_launch) * op.module.kernels;
  if (is_unfused_softmax(op, software)) return one * softmax_pieces;
  return one + expert_layer_time(op, host);
}

/// Repeated launches of a graph without branches take 2.5 us and about 1 ns a node since CUDA 12.6.
/// A node is taken for each operation: an operation of several kernels differs by nanoseconds.
/// Source  Hoffman & Oh 2024, "Constant Time Launch for Straight-Line CUDA Graphs", NVIDIA's
///         technical blog (Xeon Silver 4208, RTX 3060)
Time graph_launch_time(std::size_t operations, const Software& software) {
  if (software.host.graph_launch) return *software.host.graph_launch;
  constexpr Time node{1'000};
  return 2500_ns + node * static_cast<std::int64_t>(operations);
}

}  // namespace orrery::models

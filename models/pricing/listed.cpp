#include "models/pricing/listed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hardware/gpu/kernel_rates.hpp"
#include "models/pricing/notes.hpp"

namespace orrery::models {

namespace {

using Use = AheadWork::Use;

/// The storage's rate for one rank; 0: none is stated.
Bandwidth rate_of(const AheadWork& work, const Program& program, const hardware::Cluster& cluster) {
  const hardware::Storage& storage = cluster.storage;
  const auto ranks = static_cast<double>(program.mesh.ranks());
  if (work.shared.count() > 0) return Bandwidth{work.shared.count() / ranks};
  const auto own = work.use == Use::read ? storage.read : storage.write;
  if (!own) return {};
  return Bandwidth{own->count() / std::min(ranks, static_cast<double>(cluster.node.gpus))};
}

/// The measured rate of a kernel's key; null: none.
const hardware::KernelRate* rate_of(const Operation& op, const hardware::Gpu& gpu) {
  if (op.named().key.empty()) return nullptr;
  const bool back = op.pass == Pass::backward;
  const hardware::KernelRate* const own =
      hardware::find_kernel_rate(op.named().key, back ? "backward" : "forward", gpu);
  return own != nullptr ? own : hardware::find_kernel_rate(op.named().key, "forward", gpu);
}

Time time_of(const AheadWork& work, const Program& program, const hardware::Cluster& cluster) {
  Time once = work.host;
  if (work.use == Use::to_gpu || work.use == Use::to_host) {
    const Bandwidth link = cluster.gpu().host_link;
    if (link.count() > 0) once = work.bytes / link;
  } else if (work.use != Use::host) {
    const Bandwidth rate = rate_of(work, program, cluster);
    if (rate.count() > 0) once = work.bytes / rate;
  }
  return scaled(once, work.per_step);
}

}  // namespace

Time convolution_time(const Operation& op, const hardware::Gpu& gpu, const Software& software) {
  const hardware::KernelRate& rate = hardware::kernel_rate("convolution", "", gpu);
  if (op.convolution().depthwise) {
    const double traffic = static_cast<double>(op.bytes.count()) * memory_derate(op, software);
    return gpu.memory_time(nearest_count<Bytes>(traffic));
  }
  const Time alone = gpu.gemm_time(op.dtype, op.flops, op.bytes);
  return scaled(alone,
                software.gemm_derate(gpu.generation.name) * rate.factor / gpu.sustained_share);
}

Time named_kernel_time(const Operation& op, const hardware::Gpu& gpu, const Software& software) {
  const double traffic = static_cast<double>(op.bytes.count()) * memory_derate(op, software);
  const Time moved = gpu.memory_time(nearest_count<Bytes>(traffic));
  if (op.flops == Flops{}) return moved;
  const DType cores = op.dtype == DType::fp64 ? DType::fp64 : DType::fp32;
  const auto peak = gpu.peak(cores) ? gpu.peak(cores) : gpu.peak(op.dtype);
  if (!peak) return moved;
  const hardware::KernelRate* const rate = rate_of(op, gpu);
  if (rate == nullptr) return std::max(moved, op.flops / *peak + gpu.memory_bound.overhead);
  const DType type = gpu.peak(op.dtype) ? op.dtype : gpu.peak(DType::bf16) ? DType::bf16 : cores;
  const double speed = rate->speed(gpu.peak(type)->count());
  const Time work = from_seconds(static_cast<double>(op.flops.count()) / speed);
  return std::max(moved, work + rate->chunk * op.named().rows + rate->start);
}

Time selected_attention_time(const Operation& op, const hardware::Gpu& gpu) {
  const hardware::KernelRate& rate = hardware::kernel_rate("sparse_core", "forward", gpu);
  const auto type = gpu.peak(op.dtype) ? op.dtype : DType::fp32;
  const AttentionShape& of = op.attention();
  const auto k = static_cast<double>(of.selected), s = static_cast<double>(of.seq);
  const double alike = k / (k - k * (k - 1) / (2 * s));
  return rate.start + from_seconds(static_cast<double>(op.flops.count()) * alike /
                                   rate.speed(gpu.peak(type)->count()));
}

std::optional<Time> window_time(const Operation& op, const hardware::Gpu& gpu,
                                const std::string& curve) {
  constexpr std::int64_t tile = 128;
  const AttentionShape& of = op.attention();
  if (of.window == 0 || of.window + tile >= of.seq || of.keys > 0) return std::nullopt;
  const bool narrow = op.dtype == DType::fp8;
  const bool back = op.kind == OpKind::attention_backward;
  if (!curve.starts_with("cudnn")) return std::nullopt;
  const hardware::KernelRate* const rate = hardware::find_kernel_rate(
      narrow ? "window-fp8" : "window", back ? "backward" : "forward", gpu);
  if (rate == nullptr) return std::nullopt;
  const bool whole = narrow && back;
  const std::int64_t reach = whole ? of.seq : of.window + tile;
  Flops work = multiplied<Flops>(2, of.batch, of.heads, of.head_dim + of.value_width()) *
               (whole ? of.seq * (of.seq / 2) : of.seq * reach);
  if (back) work = Flops{work.count() / 2 * 5};
  const hardware::AttentionCall call{
      .work = work,
      .seq = reach,
      .head_dim = static_cast<int>(of.head_dim),
      .causal = true,
      .grouped = of.kv_heads > 0 && of.kv_heads < of.heads,
      .pass = back ? hardware::Pass::backward : hardware::Pass::forward};
  return scaled(gpu.attention_time(curve, op.dtype, call), rate->factor);
}

StepBound with_ahead(StepBound bound, const Program& program, const hardware::Cluster& cluster) {
  std::map<std::string, Time> queues;
  for (const AheadWork& each : program.ahead) {
    queues[each.queue] += time_of(each, program, cluster);
  }
  for (const auto& [queue, time] : queues) {
    if (time <= bound.time) continue;
    bound = {.time = time, .rank_class = 0, .part = TimeClass::host, .queue = queue};
  }
  return bound;
}

void note_listed(const Program& program, const hardware::Cluster& cluster,
                 std::vector<std::string>& assumptions) {
  std::set<std::string> unmeasured;
  bool convolves = false;
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      convolves |= op.kind == OpKind::convolution;
      const bool measured = op.named().key.empty() || rate_of(op, cluster.gpu()) != nullptr;
      if (!measured) unmeasured.insert(op.named().key);
    }
  }
  for (const std::string& key : unmeasured) {
    note_once(
        fmt::format("kernel '{}': no measured rate; priced at the full rate of ordinary cores "
                    "and of memory, which it will not reach",
                    key),
        assumptions);
  }
  if (convolves) {
    const hardware::KernelRate& rate = hardware::kernel_rate("convolution", "", cluster.gpu());
    note_once(fmt::format("convolutions: no kernel of {} was measured; priced as GEMMs of their "
                          "size times {:.3g} ({})",
                          cluster.gpu().name, rate.factor, rate.source),
              assumptions);
  }
  for (const AheadWork& each : program.ahead) {
    const bool files = each.use == Use::read || each.use == Use::write;
    if (files && rate_of(each, program, cluster).count() <= 0) {
      note_once(fmt::format("'{}' is not priced: neither the list's storage nor /cluster/storage "
                            "states a rate",
                            each.name),
                assumptions);
    }
    const bool copies = each.use == Use::to_gpu || each.use == Use::to_host;
    if (copies && cluster.gpu().host_link.count() <= 0) {
      note_once(
          fmt::format("'{}' is not priced: {} states no host_link", each.name, cluster.gpu().name),
          assumptions);
    }
  }
}

}  // namespace orrery::models

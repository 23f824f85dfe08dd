#include "models/pricing/notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/pricing/beyond_range.hpp"
#include "models/pricing/price.hpp"

namespace orrery::models {

void note_once(const std::string& text, std::vector<std::string>& assumptions) {
  if (std::ranges::find(assumptions, text) == assumptions.end()) {
    assumptions.push_back(text);
  }
}

namespace {

/// How many GEMMs one format has, how many of them lie outside the measured shapes, and the one
/// furthest outside.
struct ShapeCoverage {
  int products = 0, outside = 0;
  hardware::GemmSize furthest{};
  double beyond = 1;
};

/// The format of the Program's first attention; without one, its storage format.
DType attends_in(const Program& program) {
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      if (op.kind == OpKind::attention) return op.dtype;
    }
  }
  return program.formats.storage;
}

void note_sequences(const hardware::Gpu& gpu, const Program& program, const Software& software,
                    std::vector<std::string>& assumptions) {
  const auto curve = gpu.attention.find(
      attention_curve(software.attention(gpu.generation.name), attends_in(program)));
  if (curve == gpu.attention.end() || !curve->second.measured) return;
  const hardware::SequenceRange& range = *curve->second.measured;
  const std::int64_t length = program.step.seq_len;
  if (length == 1 || (range.shortest <= length && length <= range.longest)) return;
  note_once(
      fmt::format("attention {} curve of {}: {} tokens lie outside its measured range ({} to {}), "
                  "{:.3g} times beyond",
                  curve->first, gpu.name, length, range.shortest, range.longest,
                  beyond(range, length)),
      assumptions);
}

}  // namespace

int note_fallbacks(const hardware::Gpu& gpu, const Program& program, const Software& software,
                   std::vector<std::string>& assumptions) {
  int fallbacks = 0;
  const auto note = [&](const std::string& what, const hardware::CurveOrigin& origin) {
    if (origin.fallback_from.empty()) return;
    if (origin.spread == 0) ++fallbacks;
    note_once(hardware::fallback_sentence(gpu, what, origin), assumptions);
  };
  const auto gemm = gpu.gemm.find(program.formats.compute);
  if (gemm != gpu.gemm.end()) {
    note("gemm " + std::string{hardware::name(gemm->first)}, gemm->second.origin);
  }
  const auto attention = gpu.attention.find(
      attention_curve(software.attention(gpu.generation.name), attends_in(program)));
  if (attention != gpu.attention.end()) {
    note("attention " + attention->first, attention->second.origin);
  }
  note("memory-bound", gpu.memory_bound.origin);
  return fallbacks;
}

void note_attention_kernel(const hardware::Gpu& gpu, const Program& program,
                           const Software& software, std::vector<std::string>& assumptions) {
  if (!program.attention.empty()) return;
  bool fused = false, unfused = false;
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      fused |= op.kind == OpKind::attention;
      unfused |= op.attention_gemm() != AttentionGemm::none;
    }
  }
  if (!fused && !unfused) return;
  note_once(fmt::format("/plan/attention: not stated; {} assumed, as {} runs on {}",
                        fused ? software.attention(gpu.generation.name) : "unfused", software.name,
                        gpu.generation.name),
            assumptions);
}

void note_concurrent_slowdown(const hardware::Gpu& gpu, const Program& program,
                              std::vector<std::string>& assumptions) {
  const auto& overlap = gpu.calibration.beside_communication;
  if (!overlap || program.mesh.ranks() < 2) return;
  note_once(
      fmt::format("kernels next to communication take {:.3g} times as long, as measured on {}; "
                  "communication next to kernels, measured to take {:.3g} times as long, is priced "
                  "as if alone",
                  overlap->compute, gpu.name, overlap->communication),
      assumptions);
}

void note_stored_fp8(const hardware::Gpu& gpu, const Program& program,
                     std::vector<std::string>& assumptions) {
  const bool stored = gpu.generation.host_cores;
  const auto curve = gpu.gemm.find(DType::fp8);
  const bool measured = curve != gpu.gemm.end() && curve->second.measured;
  if (!stored || measured || program.formats.compute != DType::fp8) return;
  note_once(fmt::format("fp8 GEMMs of {} are priced as fp32 GEMMs, because it computes in fp32; "
                        "quantising weights in each GEMM may take longer and is not priced",
                        gpu.name),
            assumptions);
}

void note_shapes(const hardware::Gpu& gpu, const Program& program, const Software& software,
                 std::vector<std::string>& assumptions) {
  std::map<DType, ShapeCoverage> formats;
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      const auto curve = gpu.gemm.find(op.dtype);
      if (op.kind != OpKind::gemm || curve == gpu.gemm.end() || !curve->second.measured) continue;
      ShapeCoverage& reach = formats[op.dtype];
      ++reach.products;
      const hardware::GemmSize shape{op.gemm().m, op.gemm().n, op.gemm().k};
      if (curve->second.measured->covers(shape)) continue;
      ++reach.outside;
      const double factor = beyond(*curve->second.measured, shape);
      if (factor > reach.beyond) reach.furthest = shape;
      reach.beyond = std::max(reach.beyond, factor);
    }
  }
  for (const auto& [type, reach] : formats) {
    if (reach.outside == 0) continue;
    const auto& range = *gpu.gemm.at(type).measured;
    note_once(fmt::format("gemm {} curve of {}: {} of {} GEMM shapes lie outside its measured "
                          "range (m {} to {}, n {} to {}, k {} to {}), at m {}, n {}, k {} {:.3g} "
                          "times beyond",
                          hardware::name(type), gpu.name, reach.outside, reach.products,
                          range.lowest.m, range.highest.m, range.lowest.n, range.highest.n,
                          range.lowest.k, range.highest.k, reach.furthest.m, reach.furthest.n,
                          reach.furthest.k, reach.beyond),
              assumptions);
  }
  note_sequences(gpu, program, software, assumptions);
}

}  // namespace orrery::models

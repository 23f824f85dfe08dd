#include "executor/run/refusals.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::executor {

namespace {

using models::Program;

/// Does a gather or its inverse join shards of each row? Their bytes are apart in the joined
/// tensor, and a fabric puts one shard after the other.
bool joins_columns(const models::Block& block, const models::Operation& op) {
  const bool joins = op.collective() == models::Collective::all_gather ||
                     op.collective() == models::Collective::reduce_scatter;
  const auto cut = [&](models::OperandId id) {
    return block.operands[id].sharding.axes(models::Dimension::columns);
  };
  return joins && cut(op.reads.front()) != cut(op.writes.front());
}

/// Why a collective cannot run: ranks cannot join fp8 or fp4 numbers that have a scale per rank,
/// nor shards of rows.
std::string of_collective(const models::Block& block, const models::Operation& op) {
  if (joins_columns(block, op)) {
    return fmt::format("shards of rows that {}/{} joins", block.name, op.name);
  }
  for (const models::OperandId id : op.reads) {
    const models::DType type = block.operands[id].dtype;
    if (type != models::DType::fp8 && type != models::DType::fp4) continue;
    return fmt::format(
        "{} under sequence parallelism: ranks have different scales for the operands that {}/{} "
        "combines",
        hardware::name(type), block.name, op.name);
  }
  return {};
}

/// Does the operation use block scales, or find a tensor's largest magnitude? Every device has
/// these operations.
bool scales_blocks(const models::Block& block, const models::Operation& op) {
  const auto is_scale = [&](models::OperandId id) {
    return block.operands[id].dtype == models::DType::uint8;
  };
  if (op.kind == models::OpKind::quantise) {
    const bool finds = block.operands[op.writes.front()].dtype == models::DType::fp32;
    return finds || std::any_of(op.writes.begin(), op.writes.end(), is_scale);
  }
  return models::is_gemm(op.kind) && std::any_of(op.reads.begin(), op.reads.end(), is_scale);
}

}  // namespace

std::string refusal(const Program& program, const models::Software& software,
                    const Device& device) {
  if (!program.inexact_feature.empty()) return program.inexact_feature;
  if (software.kernels.dropout) return "dropout";
  if (software.accumulation == models::Accumulation::separate) {
    return "gradients accumulated by a separate kernel";
  }
  if (!program.rank_order.empty()) return "rank_order (ranks are numbered tp-cp-ep-dp-pp)";
  if (!program.attention.empty() && program.attention != "unfused") {
    return "attention " + program.attention + " (a device computes it with a kernel of its own)";
  }
  if (program.graphs && device.graphs() == nullptr) {
    return "cuda_graphs (this device has none)";
  }
  if (program.graphs && program.mesh.degree(models::context_axes) > 1) {
    return "context parallelism in CUDA graphs";
  }
  for (const models::Block& block : program.blocks) {
    for (const models::Operation& op : block.operations) {
      if (op.kind == models::OpKind::collective) {
        if (std::string why = of_collective(block, op); !why.empty()) return why;
        continue;
      }
      if (scales_blocks(block, op)) continue;
      if (program.graphs && op.moves() != models::RowMove::none) return "experts in CUDA graphs";
      const std::string why = device.refusal(op);
      if (!why.empty()) return fmt::format("{}/{} ({})", block.name, op.name, why);
    }
  }
  return {};
}

}  // namespace orrery::executor

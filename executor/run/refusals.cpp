#include "executor/run/refusals.hpp"

#include <fmt/format.h>

#include "models/lowering/lower.hpp"

namespace orrery::executor {

namespace {

using models::Model;
using models::Program;

std::string of_model(const Program& program) {
  const Model& model = program.model;
  const std::int64_t tensor = program.plan.tensor;
  if (model.not_simulated) return *model.not_simulated;
  if (tensor > model.kv_heads) {
    return fmt::format("more tensor ranks ({}) than key-value heads ({})", tensor, model.kv_heads);
  }
  if (model.positions == models::Positions::alibi) return "positions 'alibi'";
  if (model.positions == models::Positions::rotary && model.head_dim % 2 != 0) {
    return fmt::format("rotary positions with an odd head_dim {}", model.head_dim);
  }
  if (model.token_types > 0) return "token types";
  if (model.pooler) return "a pooler";
  if (models::projects_embeddings(model)) return "embeddings narrower or wider than the layers";
  if (model.head_transform) return "a head with a transform";
  if (model.head_bias) return "a head with a bias";
  if (model.post_norms) return "norms after attention and MLP";
  return {};
}

std::string of_software(const Program& program, const models::Software& software) {
  if (software.kernels.dropout) return "dropout";
  if (software.kernels.predicted_share < 1 && !program.model.causal)
    return "a share of predictions";
  if (software.accumulation == models::Accumulation::separate) {
    return "gradients that a kernel of its own adds up";
  }
  const bool keeps_rest = program.plan.compression == models::Compression::top_k;
  if (keeps_rest && program.plan.precision == models::Precision::fp16) {
    return "gradients cut to the largest in fp16 (the rest is kept under another loss scale)";
  }
  return {};
}

/// Ranks may sum and gather what they hold, but not scales.
std::string of_collective(const models::Block& block, const models::Operation& op) {
  for (const models::OperandId id : op.reads) {
    if (block.operands[id].dtype != models::DType::fp8) continue;
    return fmt::format(
        "fp8 under sequence parallelism: each rank has a scale of its own for what "
        "{}/{} joins",
        block.name, op.name);
  }
  return {};
}

}  // namespace

std::string refusal(const Program& program, const models::Software& software,
                    const Device& device) {
  if (std::string why = of_model(program); !why.empty()) return why;
  if (std::string why = of_software(program, software); !why.empty()) return why;
  if (program.plan.cuda_graphs && device.graphs() == nullptr) {
    return "cuda_graphs (this device has none)";
  }
  for (const models::Block& block : program.blocks) {
    for (const models::Operation& op : block.operations) {
      if (op.kind == models::OpKind::collective) {
        if (std::string why = of_collective(block, op); !why.empty()) return why;
        continue;
      }
      const std::string why = device.refusal(op);
      if (!why.empty()) return fmt::format("{}/{} ({})", block.name, op.name, why);
    }
  }
  return {};
}

}  // namespace orrery::executor

#include "executor/session/devices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "executor/device/cpu/cpu_device.hpp"
#include "models/plan/plan.hpp"
#include "models/plan/precision_formats.hpp"
#include "sim/input/text.hpp"

namespace orrery::executor {

namespace {

/// The attention of one layer on one rank, as lowering asks for it.
models::Operation attention_of(const models::Question& question) {
  const models::Plan& plan = question.plan;
  const models::Model& model = question.model;
  models::Operation op;
  op.kind = models::OpKind::attention;
  op.name = "attention";
  op.dtype = models::storage_dtype(plan.formats.precision);
  op.mutable_attention() = {
      .batch = plan.batch.micro,
      .seq = plan.batch.seq_len,
      .heads = usual_attention(model).heads / plan.tensor,
      .kv_heads = std::max<std::int64_t>(usual_attention(model).kv_heads / plan.tensor, 1),
      .head_dim = usual_attention(model).head_dim,
      .causal = model.causal,
      .window = usual_attention(model).window};
  return op;
}

}  // namespace

FabricKind fabric_of(const std::string& word) {
  if (word == "tcp") return FabricKind::tcp;
  if (word == "mpi") return FabricKind::mpi;
  if (word == "threads") return FabricKind::threads;
  for (const GpuVendor& each : gpu_vendors()) {
    if (word == each.fabric) return FabricKind::vendor;
  }
  throw InputError{"--fabric", fmt::format("expected {}, found '{}'", fabric_words(), word)};
}

Equipment equipment(Backend backend, const Placement& placed) {
  if (!backend.has_gpus()) return {std::make_unique<CpuDevice>(), {}};
  const std::vector<VisibleGpu> gpus = backend.module().gpus();
  const auto number = static_cast<std::size_t>(placed.local_rank.value_or(placed.rank));
  const std::size_t ordinal = number % gpus.size();
  return {backend.module().make_device(static_cast<int>(ordinal)), gpus[ordinal].unique};
}

models::Question fitted(models::Question question, const Device& device) {
  const auto vendors = gpu_vendors();
  const bool ours = std::any_of(vendors.begin(), vendors.end(), [&](const GpuVendor& each) {
    return each.profile == question.software.name;
  });
  if (!ours) return question;
  models::Operation op = attention_of(question);
  bool refused = !device.refusal(op).empty();
  op.kind = models::OpKind::attention_backward;
  refused = refused || !device.refusal(op).empty();
  if (refused) question.software.kernels.attention = {{"default", "unfused"}};
  return question;
}

}  // namespace orrery::executor

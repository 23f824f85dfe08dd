// Which layers recompute: all, or one in every `recompute_every` of the first `recompute_layers` of
// each chunk. These are kinds of their own, because their backward does more. The other layers may
// recompute the modules of `recompute_elsewhere`.
// Source  recompute_method block and recompute_num_layers of Megatron-Core

#include <map>
#include <set>

#include "models/lowering/lower.hpp"
#include "models/plan/layers_per_chunk.hpp"

namespace orrery::models {

namespace {

std::uint32_t copy_kind(Program& program, std::uint32_t of, const std::string& word) {
  LayerKind kind = program.kinds[of];
  kind.name = word + " " + kind.name;
  for (std::uint32_t* const each : {&kind.forward, &kind.backward}) {
    Block copy = program.blocks[*each];
    copy.name = word + "_" + copy.name;
    *each = appended(program.blocks, std::move(copy));
  }
  return appended(program.kinds, std::move(kind));
}

}  // namespace

std::map<std::uint32_t, std::uint32_t> copy_kinds(Program& program, const BlockInputs& inputs,
                                                  const ChosenLayers& chosen) {
  std::map<std::uint32_t, std::uint32_t> copies;
  std::size_t layer = 0;
  for (const std::int64_t on_chunk : layers_per_chunk(inputs.plan, inputs.model)) {
    for (std::int64_t i = 0; i < on_chunk; ++i, ++layer) {
      if (!chosen.among(i)) continue;
      std::uint32_t& kind = program.kind_of_layer[layer];
      const auto [known, fresh] = copies.try_emplace(kind, 0);
      if (fresh) {
        known->second = copy_kind(program, kind, chosen.word);
        chosen.mark(program.kinds[known->second]);
      }
      kind = known->second;
    }
  }
  return copies;
}

void mark_recomputed(Program& program, const BlockInputs& inputs) {
  const Plan& plan = inputs.plan;
  if (plan.recompute.kind == Recompute::none) return;
  if (plan.recompute.layers == 0 && plan.recompute.every == 1) {
    for (LayerKind& kind : program.kinds) kind.recomputes = kind.part == ModelPart::layer;
    return;
  }
  if (!plan.recompute.elsewhere.empty()) {
    for (LayerKind& kind : program.kinds) kind.recomputes_elsewhere = kind.part == ModelPart::layer;
  }
  const auto among = [&plan](std::int64_t i) {
    const bool early = plan.recompute.layers == 0 || i < plan.recompute.layers;
    return early && i % plan.recompute.every == 0;
  };
  const auto recompute = [](LayerKind& kind) {
    kind.recomputes = true;
    kind.recomputes_elsewhere = false;
  };
  std::map<std::uint32_t, std::uint32_t> copies =
      copy_kinds(program, inputs, {"recomputed", among, recompute});
  if (plan.recompute.partial_micro_batches == 0) return;
  const std::set<std::uint32_t> used(program.kind_of_layer.begin(), program.kind_of_layer.end());
  for (const std::uint32_t kind : used) {
    if (program.kinds[kind].recomputes) continue;
    const auto [known, fresh] = copies.try_emplace(kind, 0);
    if (fresh) {
      known->second = copy_kind(program, kind, "recomputed");
      recompute(program.kinds[known->second]);
    }
    program.kinds[kind].recomputing = known->second;
  }
}

}  // namespace orrery::models

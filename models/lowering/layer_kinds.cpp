#include "models/lowering/layer_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <string>
#include <utility>

#include "models/operations/layouts.hpp"
#include "models/plan/derived.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Bytes of the activation that a layer passes to the next.
Bytes boundary_of(const Block& layer) {
  const auto left = std::ranges::find(layer.operands, Role::output, &Operand::role);
  ensure(left != layer.operands.end(), "a layer writes no output");
  return left->bytes();
}

/// Adds a kind with its blocks. `passes_gradient`: layers below it have trained parameters, so that
/// its backward makes an input gradient; this matters only with adapters.
std::uint32_t add_kind(Program& program, const Plan& plan, std::string name, ModelPart part,
                       BlockPair pair, bool passes_gradient = true) {
  if (trains_adapters(plan)) freeze(pair, passes_gradient);
  LayerKind kind{.name = std::move(name),
                 .part = part,
                 .parameters = parameters_of(pair.forward),
                 .frozen = frozen_bytes_of(pair.forward)};
  if (experts_apart(program.mesh)) {
    kind.expert_parameters = parameters_of(pair.forward, MeshView::experts);
  }
  kind.forward = appended(program.blocks, std::move(pair.forward));
  kind.backward = appended(program.blocks, std::move(pair.backward));
  return appended(program.kinds, std::move(kind));
}

/// What decides the kind of a layer: whether it has experts, and their imbalance; full attention
/// instead of window or chunks (`sees_all`); bf16 instead of the plan's precision (`wide`).
struct LayerTraits {
  bool experts = false, sees_all = false, wide = false;
  double imbalance = 1;
  auto operator<=>(const LayerTraits&) const = default;
};

LayerTraits traits_of(const BlockInputs& inputs, std::int64_t layer, std::size_t& with_experts) {
  const Plan& plan = inputs.plan;
  const bool one_chunk = inputs.model.attention.chunk >= plan.batch.seq_len;
  LayerTraits of{.experts = has_experts(inputs.model, layer),
                 .sees_all = attends_fully(inputs.model, layer) && !one_chunk,
                 .wide = layer < plan.formats.start_layers_bf16 ||
                         layer >= inputs.model.layers - plan.formats.end_layers_bf16,
                 .imbalance = plan.experts.imbalance};
  if (of.experts && !plan.experts.layer_imbalance.empty()) {
    of.imbalance = plan.experts.layer_imbalance[with_experts++];
  }
  return of;
}

/// The plan as if every layer had these traits.
Plan layer_plan(const Plan& plan, const LayerTraits& traits) {
  Plan own = plan;
  own.experts.imbalance = traits.imbalance;
  if (traits.wide) {
    own.formats.precision = Precision::bf16;
    own.formats.low_precision_attention = false;
  }
  return own;
}

std::string name_of_kind(const BlockInputs& inputs, const LayerTraits& traits) {
  std::string name = inputs.model.experts.count > 0 && !traits.experts ? "dense layer" : "layer";
  if (traits.sees_all) {
    name += inputs.model.attention.chunk > 0 ? " without chunks" : " without window";
  }
  if (traits.wide) name += " in bf16";
  const bool apart = traits.experts && !inputs.plan.experts.layer_imbalance.empty();
  return apart ? fmt::format("{} of imbalance {:.4g}", name, traits.imbalance) : name;
}

/// Adds one kind for all layers with the same traits.
std::uint32_t add_layer_kinds(Program& program, const BlockInputs& inputs) {
  std::map<LayerTraits, std::uint32_t> known;
  std::size_t with_experts = 0;
  for (std::int64_t layer = 0; layer < inputs.model.layers; ++layer) {
    const LayerTraits traits = traits_of(inputs, layer, with_experts);
    const auto [kind, fresh] = known.try_emplace(traits, 0);
    if (fresh) {
      const Model alike = layer_model(inputs.model, layer);
      const Plan plan = layer_plan(inputs.plan, traits);
      const BlockInputs own = inputs.of(alike, plan);
      kind->second = add_kind(program, plan, name_of_kind(inputs, traits), ModelPart::layer,
                              layer_blocks(own));
    }
    program.kind_of_layer.push_back(kind->second);
  }
  return program.kind_of_layer.front();
}

/// With adapters, nothing below those of the first layer is trained: its backward ends at the
/// lowest of them, so it is a kind of its own.
void add_lowest_layer(Program& program, const BlockInputs& inputs) {
  const Model lowest = layer_model(inputs.model, 0);
  BlockPair pair = layer_blocks(inputs.of(lowest));
  pair.forward.name = "lowest_layer.forward";
  pair.backward.name = "lowest_layer.backward";
  program.kind_of_layer.front() =
      add_kind(program, inputs.plan, "lowest layer", ModelPart::layer, std::move(pair), false);
}

void add_expert_unit(Program& program, std::string name, std::uint32_t kind, std::int64_t layer) {
  const std::int64_t elements = program.kinds[kind].expert_parameters;
  if (elements == 0) return;
  Unit unit{.name = std::move(name),
            .kinds = {kind},
            .layer = layer,
            .elements = elements,
            .replicated = MeshAxis::expert_data,
            .view = MeshView::experts};
  if (program.sharding.optimizer) unit.sharded = MeshAxis::expert_data;
  program.units.push_back(std::move(unit));
}

/// Adds units of experts that have replicas of their own: for each layer, and for the head, which
/// has experts where layers that predict further tokens do.
void add_expert_units(Program& program, std::uint32_t head) {
  for (std::size_t layer = 0; layer < program.kind_of_layer.size(); ++layer) {
    add_expert_unit(program, "experts of layer " + std::to_string(layer),
                    program.kind_of_layer[layer], static_cast<std::int64_t>(layer));
  }
  add_expert_unit(program, "experts of head", head, -1);
}

}  // namespace

bool experts_apart(const Mesh& mesh) {
  return mesh.degree({MeshAxis::expert, MeshAxis::expert_tensor}) != mesh.degree(MeshAxis::tensor);
}

void add_kinds(Program& program, const BlockInputs& inputs) {
  const Plan& plan = inputs.plan;
  const std::uint32_t layer = add_layer_kinds(program, inputs);
  add_kind(program, plan, "embedding", ModelPart::embedding, embedding_blocks(inputs), false);
  const std::uint32_t head = add_kind(program, plan, "head", ModelPart::head, head_blocks(inputs));
  if (trains_adapters(plan)) add_lowest_layer(program, inputs);
  mark_recomputed(program, inputs);
  mark_offloaded(program, inputs);
  program.activation_bytes = boundary_of(program.blocks[program.kinds[layer].forward]);
  if (program.tied != TiedTable::shared) return;
  for (const Operand& each : program.blocks[program.kinds[head].forward].operands) {
    if (!each.tied()) continue;
    if (each.frozen) {
      program.kinds[head].frozen = program.kinds[head].frozen - each.bytes();
    } else {
      program.kinds[head].parameters -= each.elements();
    }
  }
}

void add_units(Program& program, const Plan& plan) {
  const auto id = [&](ModelPart part) {
    return static_cast<std::uint32_t>(&program.kind(part) - program.kinds.data());
  };
  const auto add = [&](std::string name, std::vector<std::uint32_t> kinds, std::int64_t layer) {
    Unit unit{.name = std::move(name), .kinds = std::move(kinds), .layer = layer};
    for (const std::uint32_t each : unit.kinds) {
      unit.elements += program.kinds[each].parameters - program.kinds[each].expert_parameters;
      if (keeps_most_weights(plan)) unit.frozen += program.kinds[each].frozen;
    }
    unit.replicated = program.sharding.over;
    if (program.mesh.degree(MeshAxis::replica) > 1) unit.replicated = unit.replicated | data_axes;
    if (program.sharding.optimizer) unit.sharded = program.sharding.over;
    program.units.push_back(std::move(unit));
  };
  const bool together = program.tied == TiedTable::shared && program.sharding.parameters;
  const std::uint32_t embedding = id(ModelPart::embedding), head = id(ModelPart::head);
  if (together) add("embedding_and_head", {embedding, head}, -1);
  if (!together) add("embedding", {embedding}, -1);
  for (std::size_t layer = 0; layer < program.kind_of_layer.size(); ++layer) {
    add("layer " + std::to_string(layer), {program.kind_of_layer[layer]},
        static_cast<std::int64_t>(layer));
  }
  if (!together) add("head", {head}, -1);
  add_expert_units(program, head);
}

}  // namespace orrery::models

#include "models/lowering/layer_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/model/operation_list.hpp"
#include "models/operations/layouts.hpp"
#include "models/operations/listed.hpp"
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

/// The most that a block passes to the next: encoder and decoder have sequences of their own.
Bytes widest_boundary(const Program& program) {
  Bytes widest{};
  for (const LayerKind& each : program.kinds) {
    if (each.part == ModelPart::head) continue;
    widest = std::max(widest, program.blocks[each.forward].bytes(Role::output));
  }
  return widest;
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

/// What decides the kind of a layer: its parts, its place between encoder and decoder, the
/// imbalance of its experts, and bf16 instead of the plan's precision (`wide`).
struct LayerTraits {
  Layer layer{};
  LayerPlace place{};
  bool wide = false;
  double imbalance = 1;
  bool operator==(const LayerTraits&) const = default;
};

/// The layer as it runs: a chunk as long as the sequence is none.
Layer run_layer(const Model& model, std::int64_t layer, const Plan& plan) {
  Layer own = model.layers[layer];
  auto* const attention = std::get_if<AttentionPart>(&own.mixer);
  if (attention != nullptr && attention->chunk >= plan.batch.seq_len) attention->chunk = 0;
  return own;
}

LayerPlace place_of(const Model& model, std::int64_t layer) {
  LayerPlace place;
  if (model.encoder && !model.encoder->given()) {
    place.ends_encoder = layer + 1 == model.encoder->layers;
    place.begins_decoder = layer == model.encoder->layers;
  }
  if (!model.layers[layer].cross) return place;
  place.ends_crossing = true;
  for (std::int64_t later = layer + 1; later < model.layers.size(); ++later) {
    if (model.layers[later].cross) place.ends_crossing = false;
  }
  return place;
}

LayerTraits traits_of(const BlockInputs& inputs, std::int64_t layer, std::size_t& with_experts) {
  const Plan& plan = inputs.plan;
  LayerTraits of{.layer = run_layer(inputs.model, layer, plan),
                 .place = place_of(inputs.model, layer),
                 .wide = layer < plan.formats.start_layers_bf16 ||
                         layer >= inputs.model.layers.size() - plan.formats.end_layers_bf16,
                 .imbalance = plan.experts.imbalance};
  if (of.layer.experts() && !plan.experts.layer_imbalance.empty()) {
    of.imbalance = plan.experts.layer_imbalance[with_experts++];
  }
  return of;
}

/// The plan as if every layer had these traits.
Plan layer_plan(const BlockInputs& inputs, const LayerTraits& traits) {
  Plan own = traits.layer.encodes() ? source_plan(inputs) : inputs.plan;
  own.experts.imbalance = traits.imbalance;
  if (traits.wide) {
    own.formats.precision = Precision::bf16;
    own.formats.low_precision_attention = false;
  }
  return own;
}

/// Of a model that has an encoder's layers, too.
std::string name_of_side(const LayerTraits& traits) {
  const LayerPlace& place = traits.place;
  if (traits.layer.encodes()) return place.ends_encoder ? "last encoder layer" : "encoder layer";
  if (place.begins_decoder == place.ends_crossing) return "decoder layer";
  return place.begins_decoder ? "first decoder layer" : "last decoder layer";
}

/// "layer", or in a model of several kinds what is special about it.
std::string name_of_layer(const Model& model, const LayerTraits& traits) {
  const Layer& layer = traits.layer;
  if (model.encoder && !model.encoder->given()) return name_of_side(traits);
  if (layer.cross) {
    return traits.place.ends_crossing ? "last cross-attention layer" : "cross-attention layer";
  }
  if (layer.listed()) return model.list->kind_name(layer.listed()->kind);
  if (layer.parts() == 1) {
    if (std::holds_alternative<Mamba2Part>(layer.mixer)) return "Mamba-2 layer";
    return layer.attention() ? "attention layer" : layer.experts() ? "expert layer" : "MLP layer";
  }
  if (std::holds_alternative<DeltaPart>(layer.mixer)) return "delta layer";
  return usual_experts(model).count > 0 && !layer.experts() ? "dense layer" : "layer";
}

std::string name_of_kind(const BlockInputs& inputs, const LayerTraits& traits) {
  std::string name = name_of_layer(inputs.model, traits);
  const bool chunks = longest_chunk(inputs.model) > 0;
  const bool cut = longest_chunk(inputs.model) < inputs.plan.batch.seq_len &&
                   inputs.model.layers.any([](const Layer& layer) {
                     return layer.attention() && !layer.attention()->full();
                   });
  if (cut && traits.layer.attention() && traits.layer.attention()->full()) {
    name += chunks ? " without chunks" : " without window";
  }
  if (traits.wide) name += " in bf16";
  const bool apart = traits.layer.experts() && !inputs.plan.experts.layer_imbalance.empty();
  return apart ? fmt::format("{} of imbalance {:.4g}", name, traits.imbalance) : name;
}

/// Adds one kind for all layers with the same traits.
std::uint32_t add_layer_kinds(Program& program, const BlockInputs& inputs) {
  std::vector<std::pair<LayerTraits, std::uint32_t>> known;
  std::size_t with_experts = 0;
  for (std::int64_t layer = 0; layer < inputs.model.layers.size(); ++layer) {
    const LayerTraits traits = traits_of(inputs, layer, with_experts);
    auto kind = std::ranges::find(known, traits, &std::pair<LayerTraits, std::uint32_t>::first);
    if (kind == known.end()) {
      const Plan plan = layer_plan(inputs, traits);
      const BlockInputs own = inputs.of(inputs.model, plan);
      const std::uint32_t added =
          add_kind(program, plan, name_of_kind(inputs, traits), ModelPart::layer,
                   layer_blocks(own, traits.layer, traits.place));
      kind = known.insert(known.end(), {traits, added});
    }
    program.kind_of_layer.push_back(kind->second);
  }
  return program.kind_of_layer.front();
}

/// With adapters, nothing below those of the first layer is trained, unless the embedding has one:
/// its backward ends at the lowest of them, so it is a kind of its own.
void add_lowest_layer(Program& program, const BlockInputs& inputs) {
  BlockPair pair = layer_blocks(inputs, run_layer(inputs.model, 0, inputs.plan));
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
  const bool listed = inputs.model.list != nullptr;
  add_kind(program, plan, "embedding", ModelPart::embedding,
           listed ? empty_end("embedding") : embedding_blocks(inputs), false);
  const std::uint32_t head = add_kind(program, plan, "head", ModelPart::head,
                                      listed ? empty_end("head") : head_blocks(inputs));
  const bool below = plan.adapters.targets.has(LoraTarget::embedding);
  if (trains_adapters(plan) && !below) add_lowest_layer(program, inputs);
  mark_recomputed(program, inputs);
  mark_offloaded(program, inputs);
  if (inputs.model.encoder) {
    program.activation_bytes = widest_boundary(program);
  } else {
    program.activation_bytes = boundary_of(program.blocks[program.kinds[layer].forward]);
  }
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

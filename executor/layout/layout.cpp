#include "executor/layout/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/lowering/lower.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Operand;
using models::Program;

enum class TensorCut : std::uint8_t { whole, rows, columns, vocabulary_rows, vocabulary };

/// How a parameter is cut over the tensor group: column layers by outputs, row layers by inputs,
/// tables of the vocabulary by its rows.
TensorCut cut_of(std::string_view operand) {
  if (operand == "embedding.weight" || operand == "head.weight") return TensorCut::vocabulary_rows;
  if (operand == "head.bias") return TensorCut::vocabulary;
  const std::string_view layer = operand.substr(0, operand.find('.'));
  if (layer == "qkv" || layer == "up") return TensorCut::columns;
  if (operand == "projection.weight" || operand == "down.weight") return TensorCut::rows;
  return TensorCut::whole;
}

std::string key_of(std::int64_t layer, const std::string& operand) {
  return layer < 0 ? operand : fmt::format("layer{}.{}", layer, operand);
}

/// A column-cut weight's columns lie in groups, each cut by itself: queries, keys and values; gate
/// and up.
std::vector<std::int64_t> column_groups(const models::Model& model, std::string_view operand) {
  if (operand.substr(0, 3) == "qkv") {
    const std::int64_t d = model.head_dim;
    return {model.heads * d, model.kv_heads * d, model.kv_heads * d};
  }
  if (model.gated_mlp) return {model.ffn_hidden, model.ffn_hidden};
  return {model.ffn_hidden};
}

bool marked_addend(const models::Block& backward, const std::string& operand) {
  const auto gradient = backward.find(operand + ".grad");
  return gradient && backward.operands[*gradient].tensor_addend;
}

}  // namespace

Layout::Layout(const Program& program, std::int64_t rank)
    : program_{program},
      stage_{program.mesh.stage_of(rank)},
      data_{program.mesh.coordinate(rank, models::MeshAxis::data)},
      tensor_{program.mesh.coordinate(rank, models::MeshAxis::tensor)},
      shards_{program.plan.zero == models::Zero::none ? 1 : program.plan.data} {
  name_tensors();
  for (std::int64_t v = 0; v < program.plan.virtual_stages; ++v) {
    place_chunk(static_cast<std::uint32_t>(v * program.plan.pipeline + stage_));
  }
  list_runs();
  list_addends();
}

/// Is it the embedding's table under another name, on the same stage?
bool Layout::alias(std::uint32_t block, const std::string& operand) const {
  return block == models::head_forward && operand == "head.weight" &&
         program_.model.tied_embeddings && program_.plan.pipeline == 1;
}

std::uint32_t Layout::tensor_named(std::uint32_t block, std::int64_t layer,
                                   const Operand& operand) {
  const bool tied = block == models::head_forward && operand.name == "head.weight" &&
                    program_.model.tied_embeddings;
  const std::string name = tied ? "embedding.weight" : key_of(layer, operand.name);
  const auto [known, fresh] =
      numbers_.try_emplace(name, static_cast<std::uint32_t>(tensors_.size()));
  if (!fresh) return known->second;
  const PlacedTensor here = cut(block, operand);
  const std::int64_t t = program_.plan.tensor;
  StateTensor tensor{name, here.rows, here.columns};
  switch (cut_of(operand.name)) {
    case TensorCut::rows:
      tensor.rows *= t;
      break;
    case TensorCut::columns:
      tensor.columns *= t;
      break;
    case TensorCut::vocabulary_rows:
      tensor.rows = program_.model.vocab;
      break;
    case TensorCut::vocabulary:
      tensor.columns = program_.model.vocab;
      break;
    case TensorCut::whole:
      break;
  }
  tensors_.push_back(std::move(tensor));
  return known->second;
}

/// In the order of the model, the same on every rank.
void Layout::name_tensors() {
  const auto name_block = [this](std::uint32_t block, std::int64_t layer) {
    for (const Operand& each : program_.blocks[block].operands) {
      if (each.role == models::Role::parameter) tensor_named(block, layer, each);
    }
  };
  name_block(models::embedding_forward, -1);
  for (std::int64_t layer = 0; layer < program_.model.layers; ++layer) {
    name_block(models::layer_forward, layer);
  }
  name_block(models::head_forward, -1);
}

PlacedTensor Layout::cut(std::uint32_t block, const Operand& operand) const {
  const models::Model& model = program_.model;
  const std::int64_t t = program_.plan.tensor;
  PlacedTensor here;
  here.rows = operand.shape[1];
  here.columns = operand.shape[2];
  // The head's weight lies as the table that it may be tied to.
  if (operand.name == "head.weight") std::swap(here.rows, here.columns);
  here.parts = {{0, 0, here.columns}};
  switch (cut_of(operand.name)) {
    case TensorCut::rows:
      here.first_row = tensor_ * here.rows;
      break;
    case TensorCut::columns: {
      here.parts.clear();
      std::int64_t local = 0, global = 0;
      for (const std::int64_t group : column_groups(model, operand.name)) {
        const std::int64_t share = group / t;
        here.parts.push_back({local, global + tensor_ * share, share});
        local += share;
        global += group;
      }
      ensure(local == here.columns, "a column-cut parameter has columns of no group");
      break;
    }
    case TensorCut::vocabulary_rows:
      here.first_row = tensor_ * here.rows;
      break;
    case TensorCut::vocabulary: {
      const std::int64_t first = tensor_ * here.columns;
      const std::int64_t real = std::clamp<std::int64_t>(model.vocab - first, 0, here.columns);
      here.parts = {{0, first, real}};
      break;
    }
    case TensorCut::whole:
      here.replicated = t > 1;
      break;
  }
  here.addend = marked_addend(program_.blocks[block + 1], operand.name);
  here.copy =
      block == models::head_forward && operand.name == "head.weight" && model.tied_embeddings;
  return here;
}

void Layout::place_block(std::uint32_t block, std::int64_t layer) {
  for (const Operand& each : program_.blocks[block].operands) {
    if (each.role != models::Role::parameter || alias(block, each.name)) continue;
    PlacedTensor here = cut(block, each);
    here.tensor = tensor_named(block, layer, each);
    here.offset = elements_;
    elements_ += here.elements();
    offsets_[key_of(layer, each.name)] = here.offset;
    placed_.push_back(std::move(here));
  }
}

/// Head, layers down, embedding: as backward goes. Where a tied embedding and its head are gathered
/// as one (ZeRO-3), the head stands beside the embedding.
void Layout::place_chunk(std::uint32_t chunk) {
  const std::size_t first = placed_.size();
  std::vector<models::Invocation> runs = program_.phases[models::backward_phase(chunk)].invocations;
  const bool one_unit = program_.plan.zero == models::Zero::three && program_.plan.data > 1 &&
                        program_.model.tied_embeddings && program_.plan.pipeline == 1;
  if (one_unit) {
    std::stable_partition(runs.begin(), runs.end(), [](const models::Invocation& run) {
      return run.block == models::layer_backward;
    });
  }
  for (const models::Invocation& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      place_block(run.block - 1, run.first_layer < 0 ? -1 : run.first_layer - i);
    }
  }
  cut_buckets(chunk, first);
}

std::int64_t Layout::offset(std::uint32_t forward_block, std::int64_t layer,
                            const std::string& operand) const {
  return offsets_.at(alias(forward_block, operand) ? "embedding.weight" : key_of(layer, operand));
}

}  // namespace orrery::executor

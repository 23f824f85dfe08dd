#include "executor/layout/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Dimension;
using models::LayerKind;
using models::MeshAxis;
using models::ModelPart;
using models::Operand;
using models::Program;
using models::Role;

std::string key_of(std::int64_t layer, const std::string& tensor) {
  return layer < 0 ? tensor : fmt::format("layer{}.{}", layer, tensor);
}

/// Is what a rank accumulates of this tensor's gradient a partial sum?
bool sums_partially(const models::Block& backward, const std::string& tensor) {
  return std::any_of(backward.operands.begin(), backward.operands.end(), [&](const Operand& each) {
    return each.role == Role::gradient && each.tensor == tensor &&
           each.sharding.partial.has(MeshAxis::tensor);
  });
}

/// The dimension of an operand that rows and columns of the stored tensor are.
Dimension rows_of(const Operand& operand) {
  return operand.transposed ? Dimension::columns : Dimension::rows;
}
Dimension columns_of(const Operand& operand) {
  return operand.transposed ? Dimension::rows : Dimension::columns;
}
std::int64_t extent(const models::Shape& shape, Dimension dimension) {
  return shape[static_cast<std::size_t>(dimension)];
}

std::int64_t place_among(const std::vector<std::int64_t>& ranks, std::int64_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
}

}  // namespace

Layout::Layout(const Program& program, std::int64_t rank)
    : program_{program},
      rank_{rank},
      stage_{program.mesh.stage_of(rank)},
      replica_{place_among(program.mesh.members(rank, program.sharding.over), rank)},
      shards_{program.sharding.optimizer ? program.shards() : 1} {
  name_tensors();
  std::vector<std::uint32_t> chunks = program.classes[static_cast<std::size_t>(stage_)].chunks;
  // Of two copies of the model in one order, for what both stages that hold a chunk sum.
  std::stable_sort(chunks.begin(), chunks.end(), [&](std::uint32_t a, std::uint32_t b) {
    return program.chunks[a].first_layer < program.chunks[b].first_layer;
  });
  for (const std::uint32_t chunk : chunks) place_chunk(chunk);
  list_runs();
  list_partial_sums();
}

/// Does this rank hold a tied table under both of its names?
bool Layout::tied_here() const {
  return tied_ && program_.tied == models::TiedTable::shared;
}

std::uint32_t Layout::tensor_named(std::int64_t layer, const Operand& operand) {
  const std::string name = key_of(layer, operand.tensor);
  const auto [known, fresh] =
      numbers_.try_emplace(name, static_cast<std::uint32_t>(tensors_.size()));
  if (operand.tied()) tied_ = known->second;
  if (fresh) {
    tensors_.push_back({name, extent(operand.uncut, rows_of(operand)),
                        extent(operand.uncut, columns_of(operand)), operand.initial});
  }
  return known->second;
}

/// In the order of the model, the same on every rank.
void Layout::name_tensors() {
  const auto name_block = [this](const LayerKind& kind, std::int64_t layer) {
    for (const Operand& each : program_.blocks[kind.forward].operands) {
      if (each.role == Role::parameter) tensor_named(layer, each);
    }
  };
  name_block(program_.kind(ModelPart::embedding), -1);
  for (std::size_t layer = 0; layer < program_.kind_of_layer.size(); ++layer) {
    name_block(program_.kinds[program_.kind_of_layer[layer]], static_cast<std::int64_t>(layer));
  }
  name_block(program_.kind(ModelPart::head), -1);
}

/// Columns are cut as a whole or group by group; what the last shards hold beyond them is padding.
void Layout::place_columns(const Operand& operand, Dimension dimension, PlacedTensor& here) const {
  const models::Mesh& mesh = program_.mesh;
  std::vector<std::int64_t> groups{extent(operand.uncut, dimension)};
  if (dimension == Dimension::columns && operand.sharding.grouped()) {
    groups.assign(operand.sharding.column_groups.begin(), operand.sharding.column_groups.end());
  }
  const std::int64_t place = shard_of(rank_, operand.sharding, dimension, mesh);
  std::int64_t local = 0, global = 0;
  for (const std::int64_t group : groups) {
    if (group == 0) continue;
    const std::int64_t share = local_extent(group, operand.sharding, dimension, mesh);
    const std::int64_t first = place * share;
    const std::int64_t real = std::clamp<std::int64_t>(group - first, 0, share);
    here.parts.push_back({local, global + first, real});
    local += share;
    global += group;
  }
  ensure(local == here.columns, "a parameter has columns of no group");
}

PlacedTensor Layout::cut(const Operand& operand) const {
  const models::Mesh& mesh = program_.mesh;
  PlacedTensor here;
  here.rows = extent(operand.shape, rows_of(operand));
  here.columns = extent(operand.shape, columns_of(operand));
  here.first_row = shard_of(rank_, operand.sharding, rows_of(operand), mesh) * here.rows;
  place_columns(operand, columns_of(operand), here);
  for (const MeshAxis axis : {MeshAxis::tensor, MeshAxis::replica}) {
    const bool same = !operand.sharding.cut(axis);
    if (same && mesh.coordinate(rank_, axis) > 0) here.first = false;
  }
  const std::int64_t stages = mesh.degree(MeshAxis::pipeline);
  const bool mirrored = program_.copies > 1 && 2 * stage_ >= stages;
  here.copy = operand.tied() || mirrored;
  return here;
}

void Layout::place_kind(const LayerKind& kind, std::int64_t layer) {
  for (const Operand& each : program_.blocks[kind.forward].operands) {
    if (each.role != Role::parameter || (each.tied() && tied_here())) continue;
    PlacedTensor here = cut(each);
    here.partial = sums_partially(program_.blocks[kind.backward], each.tensor) ||
                   (kind.weight_gradient &&
                    sums_partially(program_.blocks[*kind.weight_gradient], each.tensor));
    here.tensor = tensor_named(layer, each);
    here.offset = elements_;
    elements_ += here.elements();
    by_name_[key_of(layer, each.tensor)] = placed_.size();
    placed_.push_back(std::move(here));
  }
}

/// Head, layers down, embedding: as backward goes. Where a tied embedding and its head are gathered
/// as one, the head stands next to the embedding.
void Layout::place_chunk(std::uint32_t chunk) {
  const std::size_t first = placed_.size();
  std::vector<models::Invocation> runs =
      program_.phases[program_.chunks[chunk].backward].invocations;
  if (program_.sharding.parameters && shards_ > 1 && tied_here()) {
    std::stable_partition(runs.begin(), runs.end(), [this](const models::Invocation& run) {
      return program_.use_of(run.block).of(ModelPart::layer);
    });
  }
  for (const models::Invocation& run : runs) {
    const LayerKind& kind = *program_.use_of(run.block).kind;
    for (std::int64_t i = 0; i < run.count; ++i) {
      place_kind(kind, run.first_layer < 0 ? -1 : run.first_layer - i);
    }
  }
  cut_buckets(chunk, first);
}

std::int64_t Layout::offset(std::int64_t layer, const std::string& tensor) const {
  return placed_[by_name_.at(key_of(layer, tensor))].offset;
}

/// Where the first parameter of such a layer, embedding or head begins.
std::int64_t Layout::begin_of(const LayerKind& kind, std::int64_t layer) const {
  const std::vector<Operand>& operands = program_.blocks[kind.forward].operands;
  const auto first = std::find_if(operands.begin(), operands.end(),
                                  [](const Operand& each) { return each.role == Role::parameter; });
  ensure(first != operands.end(), "a layer without parameters");
  return offset(layer, first->tensor);
}

}  // namespace orrery::executor

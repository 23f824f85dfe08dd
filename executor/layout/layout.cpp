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

/// The dimensions of an operand that are the rows and the columns of the stored tensor.
Dimension rows_of(const Operand& operand) {
  return operand.transposed ? Dimension::columns : Dimension::rows;
}
Dimension columns_of(const Operand& operand) {
  return operand.transposed ? Dimension::rows : Dimension::columns;
}
std::int64_t extent(const models::Shape& shape, Dimension dimension) {
  return shape[static_cast<std::size_t>(dimension)];
}

/// The ranks of this rank's stage whose norms are summed.
std::vector<std::int64_t> ranks_of_norm(const Program& program, std::int64_t rank) {
  const std::int64_t stage = program.mesh.stage_of(rank);
  const std::vector<models::Instruction>& list =
      program.classes[static_cast<std::size_t>(stage)].instructions;
  const auto norm = std::find_if(list.begin(), list.end(),
                                 [](const auto& each) { return each.op == models::Opcode::norm; });
  ensure(norm != list.end(), "a step has no norm");
  const models::Communicator& group =
      program.communicators[program.collectives[norm->target].communicator];
  std::vector<std::int64_t> ranks = program.mesh.members(rank, group.axes, group.stages);
  ranks.erase(
      std::remove_if(ranks.begin(), ranks.end(),
                     [&](std::int64_t each) { return program.mesh.stage_of(each) != stage; }),
      ranks.end());
  return ranks;
}

/// The index of a rank among the ranks along these axes.
std::int64_t index_along(const models::Mesh& mesh, std::int64_t rank, models::AxisSet axes) {
  const std::vector<std::int64_t> members = mesh.members(rank, axes);
  return std::find(members.begin(), members.end(), rank) - members.begin();
}

/// Which replicas hold this operand: those of the dense layers or those of the experts.
models::MeshView view_of(const LayerKind& kind, const Operand& operand) {
  return kind.expert_parameters > 0 ? operand.view : models::MeshView::dense;
}

}  // namespace

Layout::Layout(const Program& program, std::int64_t rank)
    : program_{program},
      rank_{rank},
      stage_{program.mesh.stage_of(rank)},
      dense_{owners_of(program.sharding.over)},
      experts_{owners_of(MeshAxis::expert_data)},
      norm_ranks_{ranks_of_norm(program, rank)},
      stage_ranks_{program.mesh.members(rank, models::dense_axes)} {
  name_tensors();
  std::vector<std::uint32_t> chunks = program.classes[static_cast<std::size_t>(stage_)].chunks;
  // Two copies of the model have one order, because the two stages that hold a chunk sum its
  // gradients element by element.
  std::stable_sort(chunks.begin(), chunks.end(), [&](std::uint32_t a, std::uint32_t b) {
    return program.chunks[a].first_layer < program.chunks[b].first_layer;
  });
  for (const std::uint32_t chunk : chunks) place_chunk(chunk);
  list_runs();
  list_partial_sums();
}

/// Does this rank hold a tied table under both of its names?
bool Layout::tied_here() const {
  return ties_ && program_.tied == models::TiedTable::shared;
}

std::uint32_t Layout::tensor_named(std::int64_t layer, const Operand& operand) {
  const std::string name = key_of(layer, operand.tensor);
  std::vector<StateTensor>& all = operand.frozen ? frozen_tensors_ : tensors_;
  const auto [known, fresh] = numbers_.try_emplace(name, static_cast<std::uint32_t>(all.size()));
  ties_ = ties_ || operand.tied();
  if (operand.tied() && !operand.frozen) tied_ = known->second;
  if (fresh) {
    all.push_back({name, operand.uncut[0] * extent(operand.uncut, rows_of(operand)),
                   extent(operand.uncut, columns_of(operand)), operand.initial});
  }
  return known->second;
}

/// Lists the tensors in the order of the model, the same on every rank.
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

Owners Layout::owners_of(models::AxisSet replicas) const {
  if (!program_.sharding.optimizer) return {};
  return {program_.mesh.degree(replicas), index_along(program_.mesh, rank_, replicas)};
}

/// Is this rank the first of the ranks in `of` that update the same elements of a parameter?
bool Layout::is_first(const std::vector<std::int64_t>& of, const Operand& operand,
                      models::AxisSet replicas) const {
  const models::Mesh& mesh = program_.mesh;
  const auto same = [&](std::int64_t other) {
    for (const Dimension each : {Dimension::matrices, Dimension::rows, Dimension::columns}) {
      const models::Sharding& cut = operand.sharding;
      if (shard_of(other, cut, each, mesh) != shard_of(rank_, cut, each, mesh)) return false;
    }
    return !program_.sharding.optimizer ||
           index_along(mesh, other, replicas) == index_along(mesh, rank_, replicas);
  };
  return *std::find_if(of.begin(), of.end(), same) == rank_;
}

PlacedTensor Layout::cut(const Operand& operand, models::MeshView view) const {
  const models::Mesh& mesh = program_.mesh;
  const Dimension rows = rows_of(operand);
  PlacedTensor here;
  here.matrices = operand.shape[0];
  here.rows = extent(operand.shape, rows);
  here.columns = extent(operand.shape, columns_of(operand));
  here.first_matrix = shard_of(rank_, operand.sharding, Dimension::matrices, mesh) * here.matrices;
  here.first_row = shard_of(rank_, operand.sharding, rows, mesh) * here.rows;
  here.matrix_rows = extent(operand.uncut, rows);
  place_columns(operand, columns_of(operand), here);
  const bool experts = view == models::MeshView::experts;
  const models::AxisSet replicas =
      experts ? models::AxisSet{MeshAxis::expert_data} : program_.sharding.over;
  here.counts = is_first(norm_ranks_, operand, replicas);
  here.writes = is_first(stage_ranks_, operand, replicas);
  const std::int64_t stages = mesh.degree(MeshAxis::pipeline);
  const bool mirrored = program_.copies > 1 && 2 * stage_ >= stages;
  here.copy = operand.tied() || mirrored;
  return here;
}

/// Places those parameters of a layer whose replicas are given by `view`.
void Layout::place_kind(const LayerKind& kind, std::int64_t layer, models::MeshView view) {
  for (const Operand& each : program_.blocks[kind.forward].operands) {
    if (each.role != Role::parameter || (each.tied() && tied_here())) continue;
    if (view_of(kind, each) != view) continue;
    PlacedTensor here = cut(each, view);
    here.partial = sums_partially(program_.blocks[kind.backward], each.tensor) ||
                   (kind.weight_gradient &&
                    sums_partially(program_.blocks[*kind.weight_gradient], each.tensor));
    here.tensor = tensor_named(layer, each);
    std::int64_t& elements = each.frozen ? frozen_elements_ : elements_;
    std::vector<PlacedTensor>& placed = each.frozen ? frozen_ : placed_;
    here.offset = elements;
    elements += here.elements();
    by_name_[key_of(layer, each.tensor)] = {each.frozen, placed.size()};
    placed.push_back(std::move(here));
  }
}

/// Places a chunk's parameters in the order of backward: head, layers from the last, embedding.
/// Where a tied embedding and its head are gathered as one, the head is next to the embedding.
void Layout::place_chunk(std::uint32_t chunk) {
  std::vector<models::Invocation> runs =
      program_.phases[program_.chunks[chunk].backward].invocations;
  if (program_.sharding.parameters && dense_.count > 1 && tied_here()) {
    std::stable_partition(runs.begin(), runs.end(), [this](const models::Invocation& run) {
      return program_.use_of(run.block).of(ModelPart::layer);
    });
  }
  for (const models::MeshView view : {models::MeshView::dense, models::MeshView::experts}) {
    const std::size_t first = placed_.size();
    for (const models::Invocation& run : runs) {
      const LayerKind& kind = *program_.use_of(run.block).kind;
      for (std::int64_t i = 0; i < run.count; ++i) {
        place_kind(kind, run.first_layer < 0 ? -1 : run.first_layer - i, view);
      }
    }
    if (placed_.size() > first) cut_buckets(chunk, first, view);
  }
}

std::int64_t Layout::offset(std::int64_t layer, const std::string& tensor) const {
  const auto& [frozen, index] = by_name_.at(key_of(layer, tensor));
  return (frozen ? frozen_ : placed_)[index].offset;
}

std::vector<StateRun> Layout::frozen_runs() const {
  std::vector<StateRun> runs;
  for (const PlacedTensor& each : frozen_) {
    for (StateRun run : runs_of(each, frozen_tensors_[each.tensor])) {
      run.writer = each.writes && !each.copy;
      runs.push_back(run);
    }
  }
  return runs;
}

/// Where the first parameter of such a layer, embedding or head begins.
std::int64_t Layout::begin_of(const LayerKind& kind, std::int64_t layer,
                              models::MeshView view) const {
  const std::vector<Operand>& operands = program_.blocks[kind.forward].operands;
  const auto first = std::find_if(operands.begin(), operands.end(), [&](const Operand& each) {
    return each.role == Role::parameter && view_of(kind, each) == view;
  });
  ensure(first != operands.end(), "a layer without parameters");
  return offset(layer, first->tensor);
}

}  // namespace orrery::executor

#include "executor/run/blocks/blocks.hpp"

#include <algorithm>

#include "models/program/opcodes.hpp"

namespace orrery::executor {

namespace {

using models::Opcode;
using models::Token;

/// Where a rank's rows and its shard of the vocabulary begin.
Place place_in(const models::Program& program, const TokenMap& tokens, std::int64_t rank,
               std::int64_t& first_source_row) {
  const models::Block& embedding =
      program.blocks[program.kind(models::ModelPart::embedding).forward];
  Place place{.sequence = std::ssize(tokens.places), .tokens = &tokens};
  // The first row of this rank's shard: of its context rank's tokens, or of the vocabulary.
  const auto begin = [&](const models::Operand& of) {
    const bool cut = of.sharding.axes(models::Dimension::rows).has(models::MeshAxis::tensor);
    return cut ? program.mesh.coordinate(rank, models::MeshAxis::tensor) * of.shape[1] : 0;
  };
  for (const models::Operation& op : embedding.operations) {
    if (op.kind == models::OpKind::embedding) {
      place.first_vocabulary = begin(embedding.operands[op.reads[1]]);
    }
  }
  // With an encoder the block's output is of its tokens, and what is carried of the decoder's.
  for (const models::Operand& each : embedding.operands) {
    if (each.role == models::Role::output) place.first_row = begin(each);
  }
  first_source_row = place.first_row;
  for (const models::Operand& each : embedding.operands) {
    if (each.role == models::Role::carried) place.first_row = begin(each);
  }
  return place;
}

}  // namespace

Blocks::Blocks(const RankContext& rank, Weights& weights, Reducer& reducer, Samples& samples,
               HeldMemory& memory)
    : rank_{rank},
      weights_{weights},
      reducer_{reducer},
      samples_{samples},
      graph_cache_{rank.program, rank.device},
      expert_rows_{rank},
      place_{place_in(rank.program, rank.tokens, rank.rank, first_source_row_)} {
  if (rank_.plan.on_host() > 0) on_host_ = memory.hold_on_host(rank_.plan.on_host());
  for (const std::uint32_t chunk : rank_.ranks.chunks) {
    const std::uint32_t forward = rank_.program.chunks[chunk].forward;
    for (const models::Invocation& run : rank_.program.phases[forward].invocations) {
      const models::LayerKind& kind = *rank_.program.use_of(run.block).kind;
      for (std::int64_t n = 0; n < run.count; ++n) {
        const std::int64_t layer = run.first_layer < 0 ? -1 : run.first_layer + n;
        place_parameters(kind.forward, layer);
        place_parameters(kind.backward, layer);
        if (kind.weight_gradient) place_parameters(*kind.weight_gradient, layer);
      }
    }
  }
}

void Blocks::place_parameters(std::uint32_t block, std::int64_t layer) {
  const std::vector<models::Operand>& operands = rank_.program.blocks[block].operands;
  views_.resize(std::max(views_.size(), operands.size()));
  std::vector<std::int64_t>& elements = elements_[{block, layer}];
  for (const models::Operand& each : operands) {
    const bool lies = each.role == models::Role::gradient || each.role == models::Role::parameter;
    elements.push_back(lies ? rank_.layout.offset(layer, each.tensor) : 0);
  }
}

void Blocks::begin_step(double loss_scale) {
  graph_cache_.begin_step();
  expert_rows_.begin_step();
  place_.loss_scale = loss_scale;
}

void Blocks::run(Token i) {
  const models::Instruction& each = rank_.instruction(i);
  if (each.awaits != models::no_token) {
    reducer_.wait_for(each.awaits);
    if (rank_.instruction(each.awaits).op == Opcode::unshard) reducer_.use_gathered(each.awaits);
  }
  const bool backward = each.op == Opcode::backward;
  if (backward && rank_.program.sharding.gradients) empty_buckets(i);
  const std::size_t entry =
      rank_.recording.operations() ? not_recorded : rank_.recording.begin(i, models::Lane::compute);
  const bool down = models::descends(each);
  for (const models::Invocation& run : rank_.invocations(i)) {
    for (std::int64_t n = 0; n < run.count; ++n) {
      run_layer(i, run, run.first_layer < 0 ? -1 : run.first_layer + (down ? -n : n));
    }
  }
  rank_.recording.end(entry, models::Lane::compute);
}

/// Binds the buckets that this part of backward fills: those that the reductions right after it
/// empty (a tied embedding has its own). Waits for earlier reductions that still read them.
void Blocks::empty_buckets(Token i) {
  const std::vector<models::Instruction>& list = rank_.ranks.instructions;
  const auto reduces = [](const auto& each) { return each.op == Opcode::reduce_gradient; };
  auto next = std::find_if(list.begin() + i + 1, list.end(), reduces);
  for (; next != list.end() && reduces(*next); ++next) weights_.bind_filled(next->target);
  for (const models::Invocation& run : rank_.invocations(i)) {
    const std::vector<std::int64_t>& elements = elements_.at({run.block, run.first_layer});
    for (std::size_t id = 0; id < elements.size(); ++id) {
      if (rank_.program.blocks[run.block].operands[id].role != models::Role::gradient) continue;
      const std::size_t bucket = rank_.layout.bucket_at(elements[id]);
      reducer_.wait_until_empty(weights_.gradient(rank_.layout.buckets()[bucket].first));
    }
  }
}

void Blocks::run_layer(Token i, const models::Invocation& run, std::int64_t layer) {
  const models::Instruction& each = rank_.instruction(i);
  const models::LayerKind& kind = *rank_.program.use_of(run.block).kind;
  const ChunkPlan& chunk = rank_.plan.chunk(each.chunk);
  const std::size_t place = chunk.place_of(kind, layer);
  const bool backward = each.op == Opcode::backward;
  if (backward && place + 1 == chunk.layers.size()) {  // where backward begins
    const std::int64_t in = rank_.plan.bound(i).in;
    flowing_ = in < 0 ? nullptr : rank_.arena + in;
    if (std::byte* const at = delayed_arrival(i, chunk, place)) flowing_ = at;
  }
  // Every pass starts with the same edge buffer, so that CUDA graphs see the same addresses.
  if (place == (backward ? chunk.layers.size() - 1 : 0)) next_edge_ = 0;
  const Bound& bound = rank_.plan.bound(i);
  const auto at = [&](std::int64_t buffer, std::int64_t offset) {
    return buffer < 0 ? nullptr : rank_.arena + buffer + offset;
  };
  Use use{.instruction = i, .block = run.block, .layer = layer};
  use.at(Base::saved) = at(bound.saved, chunk.layers[place].saved);
  use.at(Base::kept) = at(bound.kept, chunk.layers[place].kept);
  use.at(Base::delayed) = at(bound.delayed, chunk.layers[place].delayed);
  use.at(Base::carried) = at(bound.saved, chunk.carried);
  if (on_host_ != nullptr && bound.on_host >= 0) {
    use.at(Base::on_host) = on_host_ + bound.on_host + chunk.layers[place].on_host;
  }
  if (each.op == Opcode::weight_gradient) return run_block(use);
  use.at(Base::input) = backward ? flowing_ : rank_.arena + rank_.plan.edge(next_edge_);
  use.at(Base::output) = output_of(i, chunk, place);
  run_block(use);
  if (backward) {
    flowing_ = use.at(Base::output);
  } else if (kind.part == models::ModelPart::head) {
    samples_.keep_statistics(each.micro_batch, views_);
  }
}

std::byte* Blocks::delayed_arrival(Token i, const ChunkPlan& chunk, std::size_t place) const {
  const std::int64_t arrival = rank_.plan.delayed_arrival(chunk, place);
  return arrival < 0 ? nullptr : rank_.arena + rank_.plan.bound(i).delayed + arrival;
}

/// Where a layer of a chunk writes its output for the next one. At the chunk's end: the buffer to
/// be sent. In forward: the next layer's saved input. In backward: where the next layer's weight
/// gradients read it. Where neither is kept: one of two edge buffers of the workspace.
std::byte* Blocks::output_of(Token i, const ChunkPlan& chunk, std::size_t place) {
  const std::int64_t out = rank_.plan.bound(i).out;
  std::byte* const leaving = out < 0 ? nullptr : rank_.arena + out;
  if (rank_.instruction(i).op == Opcode::forward) {
    if (place + 1 == chunk.layers.size()) return leaving;
    const std::int64_t arrival = rank_.plan.blocks()[chunk.layers[place + 1].forward].arrival;
    if (arrival < 0) {  // the next layer's backward does not read its input
      next_edge_ = 1 - next_edge_;
      return rank_.arena + rank_.plan.edge(next_edge_);
    }
    return saved_of(i, chunk, place + 1) + arrival;
  }
  if (place == 0) return leaving;
  if (std::byte* const at = delayed_arrival(i, chunk, place - 1)) return at;
  next_edge_ = 1 - next_edge_;
  return rank_.arena + rank_.plan.edge(next_edge_);
}

}  // namespace orrery::executor

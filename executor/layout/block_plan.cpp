#include "executor/layout/block_plan.hpp"

#include <algorithm>

#include "executor/device/fp8_operand.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Block;
using models::GemmShape;
using models::Operand;
using models::OperandId;
using models::Operation;
using models::OpKind;
using models::Role;

/// The first and the last operation that use an operand.
struct Life {
  std::size_t first, last;
};

/// The next operation on the compute queue that waits for `i` or for a later operation on the queue
/// of `i`. From there on `i` has certainly ended, and its memory may be used again.
std::size_t joined(const Block& block, std::size_t i) {
  for (std::size_t j = i + 1; j < block.operations.size(); ++j) {
    const Operation& op = block.operations[j];
    if (op.queue != models::Lane::compute) continue;
    for (const models::OpId awaited : op.after) {
      const bool after = awaited != models::block_input && awaited >= i &&
                         block.operations[awaited].queue == block.operations[i].queue;
      if (after) return j;
    }
  }
  return block.operations.size();
}

/// The first and the last operation of the piece region of `i`, whose operands live until the last
/// piece; `i` alone where it is in no region.
Life with_its_pieces(const Block& block, std::size_t i) {
  const PieceRegion region = piece_region(block.operations, i);
  return region.end == 0 ? Life{i, i} : Life{region.first, region.end - 1};
}

std::vector<Life> lives_of(const Block& block) {
  const std::size_t n = block.operations.size();
  std::vector<Life> lives(block.operands.size(), {n, 0});
  for (std::size_t i = 0; i < n; ++i) {
    const Operation& op = block.operations[i];
    const std::size_t end = op.queue == models::Lane::compute ? i : joined(block, i);
    const Life together = with_its_pieces(block, i);
    for (const auto* ids : {&op.reads, &op.writes}) {
      for (const OperandId id : *ids) {
        lives[id].first = std::min(lives[id].first, together.first);
        lives[id].last = std::max({lives[id].last, end, together.last});
      }
    }
  }
  return lives;
}

/// Places temporaries, the largest first, each at the lowest offset that is free during its life.
void place_temporaries(const Block& block, BlockPlan& plan) {
  const std::vector<Life> lives = lives_of(block);
  std::vector<OperandId> order;
  for (std::size_t id = 0; id < block.operands.size(); ++id) {
    const bool used = lives[id].first < block.operations.size();
    if (plan.sources[id].base == Base::workspace && used) {
      order.push_back(static_cast<OperandId>(id));
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](OperandId a, OperandId b) {
    return room_of(block.operands[a]) > room_of(block.operands[b]);
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Life life = lives[order[i]];
    const std::int64_t size = aligned(room_of(block.operands[order[i]]));
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (std::size_t j = 0; j < i; ++j) {
      const Life other = lives[order[j]];
      if (other.last < life.first || life.last < other.first) continue;
      const std::int64_t at = plan.sources[order[j]].offset;
      taken.emplace_back(at, at + aligned(room_of(block.operands[order[j]])));
    }
    std::sort(taken.begin(), taken.end());
    std::int64_t at = 0;
    for (const auto& [first, last] : taken) {
      if (at + size <= first) break;
      at = std::max(at, last);
    }
    plan.sources[order[i]].offset = at;
    plan.workspace = std::max(plan.workspace, at + size);
  }
}

/// Adds scratch memory for the largest collective of context parallelism that packs
/// (run/sequence_moves.hpp), or for the largest gather of one piece.
void add_scratch(const Block& block, BlockPlan& plan) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < block.operations.size(); ++i) {
    const Operation& op = block.operations[i];
    if (PieceRegion::gathers(block.operations, i)) {
      most = std::max(most, aligned(block.operands[op.writes.front()].bytes().count()));
    }
    if (op.kind != OpKind::collective || op.queue != models::Lane::context) continue;
    const Operand& from = block.operands[op.reads.front()];
    const Operand& to = block.operands[op.writes.front()];
    const bool packs =
        op.collective() == models::Collective::all_to_all || from.shape[2] != to.shape[2];
    const std::int64_t rows = std::min(from.shape[1], to.shape[1]);
    const std::int64_t columns = op.collective() == models::Collective::all_to_all
                                     ? std::max(from.shape[2], to.shape[2])
                                     : std::min(from.shape[2], to.shape[2]);
    if (packs) most = std::max(most, aligned(rows * columns * width_of(from.dtype)));
  }
  plan.scratch = plan.workspace;
  plan.workspace += most;
}

Base base_of(const Operand& operand) {
  switch (operand.role) {
    case Role::input:
      return Base::input;
    case Role::output:
      return Base::output;
    case Role::on_host:
      return Base::on_host;
    case Role::parameter:
      return operand.frozen ? Base::frozen : Base::parameter;
    case Role::gradient:
      return Base::gradient;
    case Role::tokens:
      return Base::tokens;
    case Role::labels:
      return Base::labels;
    case Role::source:
      return Base::source;
    case Role::carried:
      return Base::carried;
    default:
      return Base::workspace;
  }
}

/// Adapts a GEMM to operands that are stored transposed.
void transpose(const Block& block, Operation& op) {
  if (op.kind != OpKind::gemm) return;
  GemmShape& shape = op.mutable_gemm();
  if (block.operands[op.reads[1]].transposed) shape.transpose_b = !shape.transpose_b;
  if (block.operands[op.writes[0]].transposed) {
    std::swap(op.reads[0], op.reads[1]);
    std::swap(shape.m, shape.n);
  }
}

BlockPlan formal(const Block& block) {
  Block run = executed(block);
  BlockPlan plan;
  for (const Operand& each : run.operands) {
    plan.views.push_back({nullptr, each.dtype, each.shape});
    plan.sources.push_back({base_of(each), 0});
  }
  plan.operations = std::move(run.operations);
  for (const Operation& op : block.operations) {
    const bool leaves = op.kind == OpKind::copy && plan.sources[op.writes[0]].base == Base::on_host;
    for (const OperandId id : leaves ? op.reads : std::vector<OperandId>{}) {
      plan.on_host += aligned(room_of(block.operands[id]));
    }
  }
  return plan;
}

/// Split backward: gives each operand that weight gradients read one place, which the forward or
/// backward block that writes it uses, too.
void plan_delayed(const Block& forward, const Block& backward, const Block& weights,
                  BlockPlans& plans) {
  plans.weight_gradient = formal(weights);
  BlockPlan &first = plans.forward, &second = plans.backward;
  for (std::size_t id = 0; id < weights.operands.size(); ++id) {
    const Operand& each = weights.operands[id];
    BlockPlan::Source& source = plans.weight_gradient.sources[id];
    const auto before = forward.find(each.name), between = backward.find(each.name);
    if (each.role == Role::saved) {
      source = {Base::kept, first.kept};
      if (before) first.sources[*before] = source;
      if (between) second.sources[*between] = source;
      first.kept += aligned(room_of(each));
    } else if (each.role == Role::delayed) {
      source = {Base::delayed, second.delayed};
      ensure(between.has_value(), "a weight gradient reads what backward does not make");
      const bool arrives = backward.operands[*between].role == Role::input;
      if (arrives) second.delayed_arrival = second.delayed;
      if (!arrives) second.sources[*between] = source;
      second.delayed += aligned(room_of(each));
    }
  }
  first.delayed = second.delayed;
  place_temporaries(weights, plans.weight_gradient);
}

}  // namespace

PieceRegion piece_region(const std::vector<Operation>& operations, std::size_t i) {
  const auto pieces = [&](std::size_t o) { return operations[o].pieces() > 1; };
  const auto belongs = [&](std::size_t o) {
    return pieces(o) || operations[o].kind == OpKind::collective;
  };
  if (!belongs(i)) return {};
  PieceRegion region{i, i + 1};
  while (region.first > 0 && belongs(region.first - 1)) --region.first;
  while (region.end < operations.size() && belongs(region.end)) ++region.end;
  while (region.first < region.end && !pieces(region.first)) ++region.first;
  while (region.end > region.first && !pieces(region.end - 1)) --region.end;
  return region.first <= i && i < region.end ? region : PieceRegion{};
}

bool PieceRegion::gathers(const std::vector<Operation>& operations, std::size_t i) {
  const Operation& op = operations[i];
  const std::size_t end = piece_region(operations, i).end;
  if (op.collective() != models::Collective::all_gather || op.kind != OpKind::collective)
    return false;
  const auto reads = [&](const Operation& later) {
    return std::find(later.reads.begin(), later.reads.end(), op.writes.front()) !=
           later.reads.end();
  };
  const auto from = operations.begin() + static_cast<std::ptrdiff_t>(i);
  return end > 0 && std::any_of(from, operations.begin() + static_cast<std::ptrdiff_t>(end), reads);
}

Block executed(const Block& block) {
  Block run = block;
  for (Operand& each : run.operands) {
    if (each.transposed) std::swap(each.shape[1], each.shape[2]);
  }
  for (Operation& op : run.operations) transpose(block, op);
  return run;
}

namespace {

/// Gives each carried operand its place, the same in all blocks.
void place_carried(const Block& block, const std::vector<const Operand*>& carried,
                   BlockPlan& plan) {
  std::int64_t offset = 0;
  for (const Operand* const each : carried) {
    if (const auto own = block.find(each->name)) plan.sources[*own].offset = offset;
    offset += aligned(room_of(*each));
  }
}

}  // namespace

std::int64_t carried_bytes(const std::vector<const Operand*>& carried) {
  std::int64_t bytes = 0;
  for (const Operand* const each : carried) bytes += aligned(room_of(*each));
  return bytes;
}

BlockPlans plan_blocks(const Block& forward, const Block& backward, const Block* weight_gradient,
                       const std::vector<const Operand*>& carried) {
  BlockPlans plans{formal(forward), formal(backward), {}};
  place_carried(forward, carried, plans.forward);
  place_carried(backward, carried, plans.backward);
  if (weight_gradient != nullptr) plan_delayed(forward, backward, *weight_gradient, plans);
  std::int64_t& saved = plans.forward.saved;
  for (std::size_t id = 0; id < backward.operands.size(); ++id) {
    const Operand& each = backward.operands[id];
    BlockPlan::Source& source = plans.backward.sources[id];
    if (each.role != Role::saved || source.base == Base::kept) continue;
    source = {Base::saved, saved};
    if (const auto twin = forward.find(each.name)) {
      ensure(forward.operands[*twin].bytes() == each.bytes(), "a saved operand changes its size");
      plans.forward.sources[*twin] = source;
      if (forward.operands[*twin].role == Role::input) plans.forward.arrival = saved;
    }
    saved += aligned(room_of(each));
  }
  plans.backward.saved = saved;
  place_temporaries(forward, plans.forward);
  place_temporaries(backward, plans.backward);
  add_scratch(forward, plans.forward);
  add_scratch(backward, plans.backward);
  return plans;
}

}  // namespace orrery::executor

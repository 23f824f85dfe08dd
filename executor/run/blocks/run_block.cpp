// One block: its operands, its kernels, and the collectives between them.

#include <algorithm>

#include "executor/device/fp8_operand.hpp"
#include "executor/run/blocks/blocks.hpp"

namespace orrery::executor {

namespace {

using models::Lane;
using models::Operation;

/// CollectiveCall::count: elements of one member's part in an all-to-all or reduce-scatter, of what
/// this rank sends otherwise.
std::int64_t count_of(models::Collective kind, const View& from, const View& to,
                      std::int64_t members) {
  if (kind == models::Collective::all_to_all) return from.elements() / members;
  return kind == models::Collective::reduce_scatter ? to.elements() : from.elements();
}

}  // namespace

void Blocks::run_block(const Use& use) {
  bind_operands(use);
  expert_rows_.begin_block();
  const std::vector<Operation>& operations = rank_.plan.blocks()[use.block].operations;
  std::size_t op = 0;
  while (op < operations.size()) {
    if (operations[op].pieces() > 1) {
      op = run_pieces(use, op);
      continue;
    }
    const GraphCache::Known* const segment = graph_cache_.beginning(use.block, op);
    if (segment == nullptr) {
      run_operation(use, op++);
      continue;
    }
    wait_for(operations[op]);
    reducer_.poll();
    if (rank_.settings.alive) rank_.settings.alive();  // a capture takes long
    graph_cache_.run(use.block, *segment, views_, place_.loss_scale, [&operations, segment, this] {
      for (std::size_t o = segment->first; o < segment->end; ++o) {
        run_kernel(operations[o]);
      }
    });
    op = segment->end;
  }
  end_collectives();
}

/// Sets the addresses of the block's formal operands for this layer and micro-batch.
void Blocks::bind_operands(Use use) {
  const BlockPlan& plan = rank_.plan.blocks()[use.block];
  const std::int64_t micro_batch = rank_.instruction(use.instruction).micro_batch;
  const std::vector<std::int64_t>& elements = elements_.at({use.block, use.layer});
  use.at(Base::workspace) = rank_.arena + rank_.plan.temporaries();
  use.at(Base::tokens) = samples_.tokens(micro_batch);
  use.at(Base::labels) = samples_.labels(micro_batch);
  use.at(Base::source) = samples_.source(micro_batch);
  for (std::size_t id = 0; id < plan.views.size(); ++id) {
    const BlockPlan::Source source = plan.sources[id];
    views_[id] = plan.views[id];
    if (source.base == Base::parameter) {
      views_[id].data = weights_.parameter(elements[id]);
    } else if (source.base == Base::frozen) {
      views_[id].data = weights_.frozen(elements[id]);
    } else if (source.base == Base::gradient) {
      views_[id].data = weights_.gradient(elements[id]);
    } else if (std::byte* const of = use.at(source.base)) {
      views_[id].data = of + source.offset;
    }
  }
}

namespace {

/// The part of an operand that one piece uses: rows from `first` on where the operand has a row, or
/// a label, for each of `rows` tokens; rows from the start where it holds only one piece.
View rows_of(const View& view, Base base, std::int64_t rows, std::int64_t piece,
             std::int64_t first) {
  View part = view;
  const bool whole = base == Base::parameter || base == Base::frozen || base == Base::gradient;
  if (whole) return part;
  const std::size_t dimension = base == Base::labels ? 2 : 1;
  const std::int64_t step = (base == Base::labels ? 1 : view.shape[2]) * width_of(view.dtype);
  if (view.shape[dimension] == rows) part.data += first * step;
  part.shape[dimension] = std::min(piece, rows - first);
  return part;
}

}  // namespace

/// Runs the GEMMs and the loss of a head that computes its logits piece by piece, and returns the
/// end of their operations. All pieces of one operation are recorded as one entry.
std::size_t Blocks::run_pieces(const Use& use, std::size_t first) {
  const BlockPlan& plan = rank_.plan.blocks()[use.block];
  const std::vector<Operation>& operations = plan.operations;
  const std::size_t end = piece_region(operations, first).end;
  end_collectives();
  const std::int64_t rows = views_[operations[first].reads[0]].shape[1];
  const std::int64_t piece = views_[operations[first].writes[0]].shape[1];
  std::vector<std::size_t> entries(end, not_recorded), later;
  for (std::size_t o = first; o < end; ++o) {
    const bool once = operations[o].pieces() == 1 && !PieceRegion::gathers(operations, o);
    if (once) {
      later.push_back(o);
    } else {
      rank_.calls.before(operations[o].queue);
      entries[o] =
          rank_.recording.begin(use.instruction, operations[o].queue, use.block, use.layer, o);
    }
  }
  std::vector<View> parts = views_;
  for (std::int64_t row = 0; row < rows; row += piece) {
    for (std::size_t id = 0; id < plan.sources.size(); ++id) {
      parts[id] = rows_of(views_[id], plan.sources[id].base, rows, piece, row);
    }
    for (std::size_t o = first; o < end; ++o) {
      if (operations[o].pieces() > 1) {
        Operation op = operations[o];
        if (op.is<models::ProductWork>()) {
          models::GemmShape& shape = op.mutable_gemm();
          (shape.transpose_a ? shape.k : shape.m) = std::min(piece, rows - row);
        }
        run_on(rank_.device, op, parts, place_);
      } else if (PieceRegion::gathers(operations, o)) {
        gather_piece(use, operations[o], parts, row);
      }
    }
  }
  for (std::size_t o = first; o < end; ++o) rank_.recording.end(entries[o], operations[o].queue);
  for (const std::size_t o : later) start_collective(use, o);
  return end;
}

/// Gathers one piece from all ranks, in rank order, into scratch memory where the rest of the piece
/// reads it, and copies it to its place among all rows.
void Blocks::gather_piece(const Use& use, const Operation& op, std::vector<View>& parts,
                          std::int64_t row) {
  const BlockPlan& plan = rank_.plan.blocks()[use.block];
  const View& own = parts[op.reads.front()];
  const View& all = views_[op.writes.front()];
  PendingCall pending;
  pending.communicator = op.communicator();
  pending.lane = op.queue;
  const CollectiveCall call{.kind = op.collective(),
                            .send = own.data,
                            .receive = rank_.arena + rank_.plan.temporaries() + plan.scratch,
                            .count = own.elements(),
                            .element = rank_.calls.element(own.dtype)};
  rank_.calls.before(op.queue);
  rank_.calls.start(call, pending);
  rank_.calls.wait(pending);
  View& gathered = parts[op.writes.front()];
  gathered = all;
  gathered.shape[1] = own.shape[1];
  gathered.data = call.receive;
  const std::int64_t line = all.shape[2] * width_of(all.dtype);
  for (std::int64_t shard = 0; shard < all.shape[0]; ++shard) {
    rank_.device.copy(call.receive + shard * own.shape[1] * line,
                      all.data + (shard * all.shape[1] + row) * line, Bytes{own.shape[1] * line},
                      Lane::compute);
  }
}

void Blocks::run_operation(const Use& use, std::size_t index) {
  const Operation& op = rank_.plan.blocks()[use.block].operations[index];
  wait_for(op);
  reducer_.poll();
  if (op.queue == Lane::context) return start_on_context(use, index);
  if (op.kind == models::OpKind::collective) return start_collective(use, index);
  if (op.kind == models::OpKind::copy) return copy_offloaded(use, index);
  const std::size_t entry =
      rank_.recording.begin(use.instruction, op.queue, use.block, use.layer, index);
  if (op.moves() == models::RowMove::dispatch) expert_rows_.require_room(op, views_);
  run_kernel(op);
  rank_.recording.end(entry, op.queue);
  if (op.sequence().leaves_keys) leave_keys(op);
}

/// Copies what forward saved to the host's memory, or back, operand by operand. The compute queue
/// waits for the copies, because the next block's temporaries use the same memory.
void Blocks::copy_offloaded(const Use& use, std::size_t index) {
  const BlockPlan& plan = rank_.plan.blocks()[use.block];
  const Operation& op = plan.operations[index];
  const bool leaves = plan.sources[op.writes.front()].base == Base::on_host;
  std::byte* kept = views_[(leaves ? op.writes : op.reads).front()].data;
  rank_.calls.before(op.queue);
  const std::size_t entry =
      rank_.recording.begin(use.instruction, op.queue, use.block, use.layer, index);
  for (const models::OperandId id : leaves ? op.reads : op.writes) {
    const std::int64_t bytes = room_of(rank_.program.blocks[use.block].operands[id]);
    std::byte* const here = views_[id].data;
    rank_.device.copy(leaves ? here : kept, leaves ? kept : here, Bytes{bytes}, op.queue);
    kept += aligned(bytes);
  }
  rank_.recording.end(entry, op.queue);
  if (rank_.device.synchronous()) return;
  rank_.device.wait(Lane::compute, rank_.device.mark(op.queue));
}

/// Ends the block's collectives before an operation that depends on one of them, or that runs on a
/// communication lane itself.
void Blocks::wait_for(const Operation& op) {
  const bool awaited = std::any_of(pending_.begin(), pending_.end(), [&](const PendingCall& each) {
    return op.queue == Lane::tensor || op.queue == Lane::context ||
           std::find(op.after.begin(), op.after.end(), each.operation) != op.after.end();
  });
  if (awaited) end_collectives();
}

/// Describes a collective that begins now, and begins its entry in the recording.
PendingCall Blocks::pending_of(const Use& use, std::size_t index) {
  const Operation& op = rank_.plan.blocks()[use.block].operations[index];
  PendingCall pending;
  pending.communicator = op.communicator();
  pending.lane = op.queue;
  pending.operation = index;
  pending.instruction = use.instruction;
  pending.entry = rank_.recording.begin(use.instruction, op.queue, use.block, use.layer, index);
  return pending;
}

/// Starts a collective inside a block.
void Blocks::start_collective(const Use& use, std::size_t index) {
  const Operation& op = rank_.plan.blocks()[use.block].operations[index];
  const View& from = views_[op.reads.front()];
  const View& to = views_[op.writes.front()];
  rank_.calls.before(op.queue);
  PendingCall pending = pending_of(use, index);
  CollectiveCall call;
  call.kind = op.collective();
  call.send = from.data;
  call.receive = to.data;
  if (op.collective() == models::Collective::all_to_all && expert_rows_.routes(use.block)) {
    expert_rows_.fill(use.block, op, views_, call);
  }
  const auto members =
      static_cast<std::int64_t>(rank_.calls.group(op.communicator()).members.size());
  call.count = count_of(op.collective(), from, to, members);
  call.element = rank_.calls.element(from.dtype);
  rank_.calls.start(call, pending);
  pending_.push_back(pending);
}

}  // namespace orrery::executor

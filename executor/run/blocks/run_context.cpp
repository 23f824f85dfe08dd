// Collectives of context parallelism, inside a block.

#include "executor/run/blocks/blocks.hpp"

namespace orrery::executor {

using models::Lane;
using models::Operation;

void Blocks::move(const std::vector<RowsMove>& moves) {
  for (const RowsMove& each : moves) {
    for (std::int64_t row = 0; row < each.rows; ++row) {
      rank_.device.copy(each.from + row * each.from_step, each.to + row * each.to_step,
                        Bytes{each.bytes}, Lane::compute);
    }
  }
}

void Blocks::end_collectives() {
  rank_.calls.wait_for_all(pending_);
  move(arriving_);
  arriving_.clear();
}

/// Ends the block's other collectives first, because they share its scratch memory.
void Blocks::start_on_context(const Use& use, std::size_t index) {
  end_collectives();
  const BlockPlan& plan = rank_.plan.blocks()[use.block];
  const Operation& op = plan.operations[index];
  const View& from = views_[op.reads.front()];
  std::byte* const scratch = rank_.arena + rank_.plan.temporaries() + plan.scratch;
  PendingCall pending = pending_of(use, index);
  SequenceMoves moves = sequence_moves(rank_.program, rank_.program.blocks[use.block], op, from,
                                       views_[op.writes.front()], scratch);
  move(moves.before);
  arriving_ = std::move(moves.after);
  if (op.collective() == models::Collective::send_receive) return ring_step(op, moves, pending);
  rank_.calls.before(op.queue);
  CollectiveCall call;
  call.kind = op.collective();
  call.send = moves.send;
  call.receive = moves.receive;
  call.count = moves.count;
  call.element = rank_.calls.element(from.dtype);
  rank_.calls.start(call, pending);
  pending_.push_back(pending);
}

/// Ring attention: sends to the rank `ahead` places further on in the ring, and receives the same
/// amount from the rank as far back.
void Blocks::ring_step(const Operation& op, const SequenceMoves& moves, PendingCall pending) {
  const Group& ring = rank_.calls.group(op.communicator());
  const auto members = static_cast<int>(ring.members.size());
  const auto ahead = static_cast<int>(op.sequence().ahead);
  const Bytes size{moves.count * width_of(views_[op.writes.front()].dtype)};
  PendingCall sent = pending;
  sent.entry = not_recorded;
  rank_.calls.transfer(TransferEnd::receives, moves.receive, size,
                       (ring.index - ahead + members) % members, pending);
  rank_.calls.transfer(TransferEnd::sends, const_cast<std::byte*>(moves.send), size,  // only read
                       (ring.index + ahead + members) % members, sent);
  pending_.push_back(pending);
  pending_.push_back(sent);
}

/// Overwrites the rank's own keys and values, where forward keeps them, with those that were read
/// last: backward begins with them.
void Blocks::leave_keys(const Operation& op) {
  const View &all = views_[op.reads[0]], &keys = views_[op.reads[1]];
  const std::int64_t width = width_of(keys.dtype);
  const std::int64_t wide = all.shape[2] * width, narrow = keys.shape[2] * width;
  move({{keys.data, all.data + wide - narrow, keys.shape[1], narrow, narrow, wide}});
}

}  // namespace orrery::executor

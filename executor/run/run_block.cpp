// One block on its operands: kernels one by one or as CUDA graphs, and the collectives between
// them.

#include <algorithm>
#include <array>

#include "executor/run/interpreter.hpp"

namespace orrery::executor {

namespace {

using models::Lane;
using models::Operation;

}  // namespace

void Runner::Interpreter::run_block(std::uint32_t i, std::uint32_t block, std::int64_t layer,
                                    std::byte* input, std::byte* output) {
  bind_operands(i, block, layer, input, output);
  const std::vector<Operation>& operations = blocks_[block].operations;
  std::size_t op = 0;
  while (op < operations.size()) {
    const models::Stretch* const stretch = captured_.beginning(block, op);
    if (stretch == nullptr) {
      run_operation(i, block, layer, op++);
      continue;
    }
    wait_for_block(operations[op]);
    poll();
    alive();  // a capture takes long
    captured_.run(block, *stretch, views_, place_.loss_scale, [&operations, stretch, this] {
      for (std::size_t o = stretch->first; o < stretch->end; ++o) run_kernel(operations[o]);
    });
    op = stretch->end;
  }
  for (PendingCall& each : tensor_pending_) calls_.wait(each);
  tensor_pending_.clear();
}

/// Where the block's formal operands lie for this layer and micro-batch.
void Runner::Interpreter::bind_operands(std::uint32_t i, std::uint32_t block, std::int64_t layer,
                                        std::byte* input, std::byte* output) {
  const BlockPlan& plan = blocks_[block];
  const Instruction& each = ranks_.instructions[i];
  const std::int64_t base = layer < 0 ? 0 : layer_base_[static_cast<std::size_t>(layer)];
  const std::int64_t tokens = program_.step.tokens() * 8;
  const std::int64_t labels = program_.step.micro_batches * tokens;
  const auto set = [this](Base of, std::byte* to, std::int64_t offset = 0) {
    bases_[static_cast<std::size_t>(of)] = to == nullptr ? nullptr : to + offset;
  };
  set(Base::saved, saved_of(i, block, layer));
  set(Base::input, input);
  set(Base::output, output);
  set(Base::workspace, arena_.data(), plan_.temporaries());
  set(Base::tokens, batch_.data(), each.micro_batch * tokens);
  set(Base::labels, batch_.data(), labels + each.micro_batch * tokens);
  for (std::size_t id = 0; id < plan.views.size(); ++id) {
    views_[id] = plan.views[id];
    const BlockPlan::Source source = plan.sources[id];
    if (source.base == Base::parameter) {
      views_[id].data = weight_at(base + source.offset);
    } else if (source.base == Base::gradient) {
      views_[id].data = gradient_at(base + source.offset);
    } else {
      std::byte* const of = bases_[static_cast<std::size_t>(source.base)];
      views_[id].data = of == nullptr ? nullptr : of + source.offset;
    }
  }
}

void Runner::Interpreter::run_operation(std::uint32_t i, std::uint32_t block, std::int64_t layer,
                                        std::size_t index) {
  const Operation& op = blocks_[block].operations[index];
  wait_for_block(op);
  poll();
  if (op.kind == models::OpKind::collective) return start_collective(i, block, layer, index);
  if (!recording_.operations()) return run_kernel(op);
  const std::size_t entry = recording_.add(i, device_.mark(op.queue), block, layer, index);
  run_kernel(op);
  recording_.end(entry, device_.mark(op.queue));
}

/// The block's collectives end before an operation that needs one of them, or their queue.
void Runner::Interpreter::wait_for_block(const Operation& op) {
  const bool awaited =
      std::any_of(tensor_pending_.begin(), tensor_pending_.end(), [&](const PendingCall& each) {
        return op.queue == Lane::tensor ||
               std::find(op.after.begin(), op.after.end(), each.operation) != op.after.end();
      });
  if (!awaited) return;
  for (PendingCall& each : tensor_pending_) calls_.wait(each);
  tensor_pending_.clear();
}

/// On the operands where the running block has them.
void Runner::Interpreter::run_kernel(const Operation& op) {
  std::array<View, 8> reads, writes;
  for (std::size_t r = 0; r < op.reads.size(); ++r) reads[r] = views_[op.reads[r]];
  for (std::size_t w = 0; w < op.writes.size(); ++w) writes[w] = views_[op.writes[w]];
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = std::span<const View>{reads.data(), op.reads.size()};
  kernel.writes = std::span<const View>{writes.data(), op.writes.size()};
  kernel.place = place_;
  device_.run(kernel);
}

/// A collective of the tensor group inside a block.
void Runner::Interpreter::start_collective(std::uint32_t i, std::uint32_t block, std::int64_t layer,
                                           std::size_t index) {
  const Operation& op = blocks_[block].operations[index];
  const View& from = views_[op.reads.front()];
  const View& to = views_[op.writes.front()];
  const Group& group = groups_[op.communicator];
  calls_.before(op.queue);
  PendingCall pending;
  pending.communicator = op.communicator;
  pending.lane = op.queue;
  pending.operation = index;
  pending.instruction = i;
  if (recording_.operations()) {
    pending.entry = recording_.add(i, device_.mark(op.queue), block, layer, index);
  }
  const bool shrinks = op.collective == models::Collective::reduce_scatter;
  pending.request = fabric_.start({.kind = op.collective,
                                   .group = group.id,
                                   .send = from.data,
                                   .receive = to.data,
                                   .count = shrinks ? to.elements() : from.elements(),
                                   .element = element(from.dtype),
                                   .queue = op.queue});
  calls_.begun(pending);
  tensor_pending_.push_back(pending);
}

}  // namespace orrery::executor

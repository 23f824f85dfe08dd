#include <array>
#include <string>
#include <utility>

#include "models/lowering/lower.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Hands out the lowest index that was freed last: few buffers, and the same ones again.
class Pool {
 public:
  std::uint32_t take() {
    if (free_.empty()) return next_++;
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void give(std::uint32_t index) { free_.push_back(index); }

 private:
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 0;
};

/// What a chunk keeps of a micro-batch: each block's operands by when they end.
struct KeptBytes {
  Bytes saved{};    // with backward, of what forward wrote
  Bytes kept{};     // with the weight gradients, of what forward wrote
  Bytes delayed{};  // with the weight gradients, of what backward made or was given
};

KeptBytes kept_bytes(const Program& program, const Phase& backward) {
  KeptBytes sum;
  for (const Invocation& run : backward.invocations) {
    const Block& block = program.blocks[run.block];
    const LayerKind& kind = *program.use_of(run.block).kind;
    sum.saved += block.bytes(Role::saved) * run.count;
    if (!kind.weight_gradient) continue;
    for (const Operand& each : program.blocks[*kind.weight_gradient].operands) {
      if (each.role == Role::delayed) sum.delayed += each.bytes() * run.count;
      if (each.role != Role::saved) continue;
      sum.kept += each.bytes() * run.count;
      const auto both = block.find(each.name);
      if (both && block.operands[*both].role == Role::saved) {
        sum.saved += each.bytes() * -run.count;
      }
    }
  }
  return sum;
}

/// Visits one class's list.
class Binder {
 public:
  Binder(const Program& program, RankClass& ranks)
      : program_{program},
        list_{ranks.instructions},
        splits_{splits_backward(program)},
        micro_batches_{static_cast<std::size_t>(program.step.micro_batches)},
        pools_(4 * ranks.chunks.size()),
        saved_(ranks.chunks.size() * micro_batches_, no_binding) {}

  /// Activations arrive in the place where backward will look for them, gradients where weight
  /// gradients will.
  void receive(Token, Instruction& each) {
    const Slot slot = arrival_of(program_, each);
    each.binds = bit(slot);
    std::uint32_t& index = each.bindings[index_of(slot)];
    if (slot == slot_saved) index = saved_of(each) = pool(each, saved).take();
    if (slot == slot_in) index = arrived_ = pool(each, gradient_in).take();
    if (slot == slot_delayed) index = saved_of(each);
  }

  /// A forward cut into parts leaves its output in the buffer that the first part takes.
  void forward(Token, Instruction& each) {
    std::uint32_t& kept = saved_of(each);
    if (kept == no_binding) {
      kept = pool(each, saved).take();
      each.binds |= bit(slot_saved);
    }
    each.bindings[slot_saved] = kept;
    if (splits_ && forward_of_ != key(each)) each.binds |= bit(slot_kept);
    if (!program_.chunks[each.chunk].predicts) {
      if (forward_of_ != key(each)) {
        leaving_ = pool(each, out).take();
        each.binds |= bit(slot_out);
      }
      each.bindings[slot_out] = leaving_;
    }
    forward_of_ = key(each);
  }

  /// A backward cut at full buckets keeps its buffers until the last part.
  void backward(Token i, Instruction& each) {
    const Chunk& chunk = program_.chunks[each.chunk];
    const bool resumes = parts_of_ == key(each);
    const bool last_part = !continues(i);
    const bool arrived = !chunk.predicts && program_.delays_arrival(chunk);
    each.bindings[slot_saved] = saved_of(each);
    if (!chunk.predicts && !arrived) each.bindings[slot_in] = arrived_;
    if (splits_ && !resumes && !arrived) each.binds |= bit(slot_delayed);
    if (!chunk.embeds) {
      if (!resumes) {
        leaving_ = pool(each, gradient_out).take();
        each.binds |= bit(slot_out);
      }
      each.bindings[slot_out] = leaving_;
    }
    parts_of_ = last_part ? ~std::uint64_t{0} : key(each);
    if (!last_part) return;
    each.frees |= bit(slot_saved);
    if (!splits_) pool(each, saved).give(each.bindings[slot_saved]);
    if (each.bindings[slot_in] != no_binding) {
      each.frees |= bit(slot_in);
      pool(each, gradient_in).give(each.bindings[slot_in]);
    }
  }

  /// The last part frees what was left for them.
  void weight_gradient(Token i, Instruction& each) {
    each.bindings[slot_saved] = saved_of(each);
    if (continues(i)) return;
    each.frees = bit(slot_kept) | bit(slot_delayed);
    pool(each, saved).give(each.bindings[slot_saved]);
  }

  void send(Token, Instruction& each) {
    const bool activations = program_.channels[each.target].forward;
    each.bindings[slot_out] = leaving_;
    each.frees = bit(slot_out);
    pool(each, activations ? out : gradient_out).give(leaving_);
  }

  void phase(Token, Instruction&) {}
  void joint(Token, Instruction&) {}

 private:
  enum Kind { saved, out, gradient_in, gradient_out };

  std::size_t place(const Instruction& each) const { return program_.chunks[each.chunk].place; }
  Pool& pool(const Instruction& each, Kind kind) { return pools_[4 * place(each) + kind]; }
  std::uint32_t& saved_of(const Instruction& each) {
    return saved_[place(each) * micro_batches_ + each.micro_batch];
  }
  static std::uint64_t key(const Instruction& each) {
    return (std::uint64_t{each.chunk} << 32) | each.micro_batch;
  }

  /// Is the next compute another part of this run?
  bool continues(Token i) const {
    for (std::size_t next = i + std::size_t{1}; next < list_.size(); ++next) {
      const Instruction& later = list_[next];
      if (later.op == Opcode::forward) return false;
      if (descends(later)) return later.op == list_[i].op && key(later) == key(list_[i]);
    }
    return false;
  }

  const Program& program_;
  const std::vector<Instruction>& list_;
  bool splits_;
  std::size_t micro_batches_;
  std::vector<Pool> pools_;
  std::vector<std::uint32_t> saved_;  // by chunk of the class and micro-batch
  std::uint32_t arrived_ = no_binding, leaving_ = no_binding;
  std::uint64_t parts_of_ = ~std::uint64_t{0}, forward_of_ = ~std::uint64_t{0};
};

void add_types(const Program& program, RankClass& ranks, const Software& software) {
  const Bytes edge = program.boundary;
  for (const std::uint32_t id : ranks.chunks) {
    const Chunk& chunk = program.chunks[id];
    const std::string suffix = ".c" + std::to_string(id);
    const auto first = static_cast<std::uint16_t>(ranks.types.size());
    const auto [saved, kept, delayed] = kept_bytes(program, program.phases[chunk.backward]);
    const Bytes sent = software.memory.sent_kept && !chunk.predicts ? edge : Bytes{};
    ranks.types.push_back({"saved" + suffix, BufferKind::activation, saved + sent});
    ranks.types.push_back({"out" + suffix, BufferKind::staging, edge});
    ranks.types.push_back({"gradient_in" + suffix, BufferKind::staging, edge});
    ranks.types.push_back({"gradient_out" + suffix, BufferKind::staging, edge});
    ranks.chunk_buffers.push_back({first, static_cast<std::uint16_t>(first + 1),
                                   static_cast<std::uint16_t>(first + 2),
                                   static_cast<std::uint16_t>(first + 3)});
    if (!splits_backward(program)) continue;
    ranks.chunk_buffers.back().kept = static_cast<std::uint16_t>(first + 4);
    ranks.chunk_buffers.back().delayed = static_cast<std::uint16_t>(first + 5);
    ranks.types.push_back({"kept" + suffix, BufferKind::activation, kept});
    ranks.types.push_back({"delayed" + suffix, BufferKind::activation, delayed});
  }
}

void add_persistent(const Program& program, RankClass& ranks, const BlockInputs& inputs) {
  const Software& software = inputs.software;
  const auto [compute, storage, gradient, state] = program.formats;
  const StateSharding& sharding = program.sharding;
  const std::int64_t kept = sharding.parameters_on_host ? 0 : ranks.owned;
  const std::int64_t weights = sharding.parameters ? kept : ranks.parameters;
  const std::int64_t sums = sharding.gradients ? ranks.owned : ranks.parameters;
  // What the host keeps of state is not the device's; its sums of gradients stay.
  // Master weights are the parameters themselves where those are as wide.
  const bool here = !sharding.optimizer_on_host;
  const std::int64_t master = storage == state || !here ? 0 : ranks.owned * bits(state) / 8;
  const std::vector<PersistentBuffer> held{
      {"parameters", BufferKind::parameter, Bytes{weights * bits(storage) / 8}},
      {"gradients", BufferKind::gradient, Bytes{sums * bits(gradient) / 8}},
      {"optimizer", BufferKind::optimizer,
       Bytes{master} + moments_bytes(inputs.plan, here ? ranks.owned : 0)}};
  ranks.persistent.insert(ranks.persistent.begin(), held.begin(), held.end());
  if (ranks.frozen > Bytes{}) {
    const std::int64_t ways = sharding.parameters ? program.shards() : 1;
    ranks.persistent.push_back({"frozen_parameters", BufferKind::parameter,
                                Bytes{(ranks.frozen.count() + ways - 1) / ways}});
  }
  // Gradients that are added to wider sums stay next to them until they are overwritten, unless
  // they are scattered. Those that are as wide as their sums are added one by one, as backward
  // makes them.
  const bool wider = bits(gradient) > bits(storage);
  if (software.accumulation == Accumulation::separate && wider && !sharding.gradients) {
    ranks.persistent.push_back(
        {"fresh_gradients", BufferKind::gradient, Bytes{ranks.parameters * bits(storage) / 8}});
  }
}

}  // namespace

Program bind_buffers(Program program, const BlockInputs& inputs) {
  for (RankClass& ranks : program.classes) {
    add_types(program, ranks, inputs.software);
    add_persistent(program, ranks, inputs);
    Binder binder{program, ranks};
    for (Token i = 0; i < ranks.instructions.size(); ++i) visit(i, ranks.instructions[i], binder);
  }
  return program;
}

}  // namespace orrery::models

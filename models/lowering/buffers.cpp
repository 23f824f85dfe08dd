#include <array>
#include <string>
#include <utility>

#include "models/lowering/lower.hpp"
#include "models/operations/listed.hpp"
#include "models/plan/derived.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Hands out indices of buffers, first the one that was freed last, so that few buffers are used.
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

/// What a list of operations keeps between steps; of a loop, whose steps no update follows, the
/// parameters of all its operations, too, whichever of them are due.
void add_listed_state(const Program& program, RankClass& ranks, const BlockInputs& inputs) {
  if (!inputs.model.list) return;
  const OperationList& list = *inputs.model.list;
  const ListedSizes sizes = listed_sizes(inputs);
  for (const ListedState& each : list.state(sizes)) {
    ranks.persistent.push_back({"state." + each.name, BufferKind::activation, Bytes{each.bytes}});
  }
  if (list.trains()) return;
  std::int64_t parameters = 0;
  for (std::int64_t layer = 0; layer < list.layers(); ++layer) {
    for (const ListedOperation& each : list.operations(list.kind_of(layer), sizes)) {
      parameters += each.parameters;
    }
  }
  ranks.persistent.push_back(
      {"loop_parameters", BufferKind::parameter, bytes_in(program.formats.storage, parameters)});
}

/// Bytes that a chunk keeps of a micro-batch, by when they are freed.
struct KeptBytes {
  Bytes saved{};    // written by forward, freed after backward
  Bytes kept{};     // written by forward, freed after the weight gradients
  Bytes delayed{};  // written or received by backward, freed after the weight gradients
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

/// Facts of a chunk that each of its instructions needs, looked up once.
struct ChunkFacts {
  std::size_t place = 0;    // among its stage's chunks
  std::uint32_t whole = 0;  // the phase of a backward that is not cut into parts
  bool has_embedding = false, has_head = false;
  bool delays = false;  // the gradient that arrives outlives backward
  bool splits = false;  // some weight gradients come after backward
};

std::vector<ChunkFacts> facts_of(const Program& program) {
  std::vector<ChunkFacts> facts;
  for (const Chunk& each : program.chunks) {
    facts.push_back({each.place, each.backward, each.has_embedding, each.has_head,
                     program.keeps_output_gradient(each), splits_backward(each)});
  }
  return facts;
}

/// Binds and frees the buffers of one class's list. The bit fields of an instruction are written
/// once, after everything else has been read from it.
class Binder {
 public:
  Binder(const Program& program, const std::vector<ChunkFacts>& chunks, RankClass& ranks)
      : program_{program},
        chunks_{chunks},
        list_{ranks.instructions},
        micro_batches_{static_cast<std::size_t>(program.step.micro_batches)},
        pools_(ranks.chunks.size()),
        saved_(ranks.chunks.size() * micro_batches_, no_binding) {}

  /// Activations arrive in the micro-batch's saved buffer; gradients in its delayed buffer if
  /// weight gradients read them, otherwise in a buffer of their own.
  void receive(Token, Instruction& each) {
    const ChunkFacts& chunk = chunks_[each.chunk];
    Pools& pools = pools_[chunk.place];
    std::uint32_t& kept = saved_of(each);
    if (program_.channels[each.target].forward) {
      each.bindings[slot_saved] = kept = pools.saved.take();
      each.binds = bit(slot_saved);
    } else if (chunk.delays) {
      each.bindings[index_of(slot_delayed)] = kept;
      each.binds = bit(slot_delayed);
    } else {
      each.bindings[slot_in] = arrived_ = pools.gradient_in.take();
      each.binds = bit(slot_in);
    }
  }

  /// All parts of a forward use the output buffer that the first part binds.
  void forward(Token, Instruction& each) {
    const ChunkFacts& chunk = chunks_[each.chunk];
    const bool begins = forward_of_ != key(each);
    forward_of_ = key(each);
    unsigned binds = each.binds;
    std::uint32_t& kept = saved_of(each);
    if (kept == no_binding) {
      kept = pools_[chunk.place].saved.take();
      binds |= bit(slot_saved);
    }
    each.bindings[slot_saved] = kept;
    if (chunk.splits && begins) binds |= bit(slot_kept);
    if (!chunk.has_head) {
      if (begins) {
        leaving_ = pools_[chunk.place].out.take();
        binds |= bit(slot_out);
      }
      each.bindings[slot_out] = leaving_;
    }
    each.binds = binds;
  }

  /// A backward that is cut into parts, one for each gradient bucket, keeps its buffers until the
  /// last part has ended.
  void backward(Token i, Instruction& each) {
    const ChunkFacts& chunk = chunks_[each.chunk];
    Pools& pools = pools_[chunk.place];
    const bool resumes = parts_of_ == key(each);
    const bool last_part = each.target == chunk.whole || !continues(i);
    const bool arrived = !chunk.has_head && chunk.delays;
    parts_of_ = last_part ? ~std::uint64_t{0} : key(each);
    unsigned binds = each.binds, frees = each.frees;
    each.bindings[slot_saved] = saved_of(each);
    if (!chunk.has_head && !arrived) each.bindings[slot_in] = arrived_;
    if (chunk.splits && !resumes && !arrived) binds |= bit(slot_delayed);
    if (!chunk.has_embedding) {
      if (!resumes) {
        leaving_ = pools.gradient_out.take();
        binds |= bit(slot_out);
      }
      each.bindings[slot_out] = leaving_;
    }
    if (last_part) {
      frees |= bit(slot_saved);
      if (!chunk.splits) pools.saved.give(each.bindings[slot_saved]);
    }
    if (last_part && each.bindings[slot_in] != no_binding) {
      frees |= bit(slot_in);
      pools.gradient_in.give(each.bindings[slot_in]);
    }
    each.binds = binds;
    each.frees = frees;
  }

  /// The last part frees the kept and delayed buffers.
  void weight_gradient(Token i, Instruction& each) {
    each.bindings[slot_saved] = saved_of(each);
    if (continues(i)) return;
    each.frees = bit(slot_kept) | bit(slot_delayed);
    pools_[chunks_[each.chunk].place].saved.give(each.bindings[slot_saved]);
  }

  void send(Token, Instruction& each) {
    Pools& pools = pools_[chunks_[each.chunk].place];
    each.bindings[slot_out] = leaving_;
    each.frees = bit(slot_out);
    (program_.channels[each.target].forward ? pools.out : pools.gradient_out).give(leaving_);
  }

  void phase(Token, Instruction&) {}
  void joint(Token, Instruction&) {}

 private:
  struct Pools {
    Pool saved, out, gradient_in, gradient_out;
  };

  std::uint32_t& saved_of(const Instruction& each) {
    return saved_[chunks_[each.chunk].place * micro_batches_ + each.micro_batch];
  }
  static std::uint64_t key(const Instruction& each) {
    return (std::uint64_t{each.chunk} << 32) | each.micro_batch;
  }

  /// Is the next backward or weight gradient, before any forward, another part of this run?
  bool continues(Token i) const {
    for (std::size_t next = i + std::size_t{1}; next < list_.size(); ++next) {
      const Instruction& later = list_[next];
      if (later.op == Opcode::forward) return false;
      if (descends(later)) return later.op == list_[i].op && key(later) == key(list_[i]);
    }
    return false;
  }

  const Program& program_;
  const std::vector<ChunkFacts>& chunks_;
  const std::vector<Instruction>& list_;
  std::size_t micro_batches_;
  std::vector<Pools> pools_;
  std::vector<std::uint32_t> saved_;  // by chunk of the class and micro-batch
  std::uint32_t arrived_ = no_binding, leaving_ = no_binding;
  std::uint64_t parts_of_ = ~std::uint64_t{0}, forward_of_ = ~std::uint64_t{0};
};

/// Bytes that blocks of a micro-batch pass on by name, with the gradients of these.
Bytes carried_bytes(const Program& program) {
  Bytes sum{};
  for (const Operand* const each : program.carried()) sum += each->bytes();
  return sum;
}

/// Types of the buffers of each chunk; `again`: of micro-batches that recompute all layers.
std::vector<ChunkBuffers> add_types(const Program& program, RankClass& ranks,
                                    const Software& software, Bytes carried, bool again) {
  const Bytes edge = program.activation_bytes, reference = program.reference_bytes;
  std::vector<ChunkBuffers> made;
  for (const std::uint32_t id : ranks.chunks) {
    const Chunk& chunk = program.chunks[id];
    const std::string suffix = (again ? ".recomputing.c" : ".c") + std::to_string(id);
    const auto first = static_cast<std::uint16_t>(ranks.types.size());
    const Phase& backward = program.phases[chunk.backward];
    const auto [saved, kept, delayed] =
        kept_bytes(program, again ? recomputing(program, backward) : backward);
    const Bytes sent = software.memory.sent_kept && !chunk.has_head ? edge : Bytes{};
    // A reference model's activation arrives in the same buffer; it is not kept for backward.
    const Bytes arrives = chunk.has_embedding ? Bytes{} : reference;
    ranks.types.push_back(
        {"saved" + suffix, BufferKind::activation, saved + sent + arrives + carried});
    ranks.types.push_back({"out" + suffix, BufferKind::staging, edge + reference});
    ranks.types.push_back({"gradient_in" + suffix, BufferKind::staging, edge});
    ranks.types.push_back({"gradient_out" + suffix, BufferKind::staging, edge});
    made.push_back({first, static_cast<std::uint16_t>(first + 1),
                    static_cast<std::uint16_t>(first + 2), static_cast<std::uint16_t>(first + 3)});
    if (!splits_backward(chunk)) continue;
    made.back().kept = static_cast<std::uint16_t>(first + 4);
    made.back().delayed = static_cast<std::uint16_t>(first + 5);
    ranks.types.push_back({"kept" + suffix, BufferKind::activation, kept});
    ranks.types.push_back({"delayed" + suffix, BufferKind::activation, delayed});
  }
  return made;
}

void add_persistent(const Program& program, RankClass& ranks, const BlockInputs& inputs) {
  const Software& software = inputs.software;
  const DType storage = program.formats.storage, gradient = program.formats.gradient;
  const DType state = master_dtype(inputs.plan);
  const StateSharding& sharding = program.sharding;
  const std::int64_t kept = sharding.parameters_on_host ? 0 : ranks.owned;
  const std::int64_t weights = sharding.parameters ? kept : ranks.parameters;
  const std::int64_t sums = sharding.gradients ? ranks.owned : ranks.parameters;
  // State that is offloaded to the host takes no device memory; gradient accumulators stay.
  // Master weights are the parameters themselves where both have the same format.
  const bool here = !sharding.optimizer_on_host;
  const std::int64_t updated = ranks.owned - sharding.on_host(ranks.owned);  // on the GPU
  const bool cast_when_gathered = software.memory.masters_alone && sharding.parameters && here;
  const bool is_master = storage == state || cast_when_gathered;
  const std::int64_t master = is_master ? 0 : updated * bits(state) / 8;
  const DType stored = cast_when_gathered ? state : storage;
  const std::vector<PersistentBuffer> held{
      {"parameters", BufferKind::parameter, bytes_in(stored, weights)},
      {"gradients", BufferKind::gradient, bytes_in(gradient, sums)},
      {"optimizer", BufferKind::optimizer,
       Bytes{master} + moments_bytes(inputs.plan, updated - ranks.matrices) +
           momentum_bytes(inputs.plan, ranks.matrices)}};
  ranks.persistent.insert(ranks.persistent.begin(), held.begin(), held.end());
  const bool shared_out = sharding.parameters && keeps_most_weights(inputs.plan);
  if (ranks.frozen > Bytes{} && !(shared_out && sharding.parameters_on_host)) {
    const Bytes frozen = shared_out ? program.shard_of(ranks.frozen) : ranks.frozen;
    ranks.persistent.push_back({"frozen_parameters", BufferKind::parameter, frozen});
  }
  // New gradients that are added to wider accumulators stay next to them until they are
  // overwritten, unless gradients are sharded. New gradients as wide as their accumulators are
  // added one by one, as backward makes them.
  const bool wider = bits(gradient) > bits(storage);
  if (software.accumulation == Accumulation::separate && wider && !sharding.gradients) {
    ranks.persistent.push_back(
        {"fresh_gradients", BufferKind::gradient, bytes_in(storage, ranks.parameters)});
  }
}

}  // namespace

Program bind_buffers(Program program, const BlockInputs& inputs) {
  const std::vector<ChunkFacts> chunks = facts_of(program);
  const Bytes carried = carried_bytes(program);
  for (RankClass& ranks : program.classes) {
    ranks.chunk_buffers = add_types(program, ranks, inputs.software, carried, false);
    if (!ranks.recomputes.empty()) {
      ranks.recomputing_buffers = add_types(program, ranks, inputs.software, carried, true);
    }
    add_persistent(program, ranks, inputs);
    add_listed_state(program, ranks, inputs);
    Binder binder{program, chunks, ranks};
    for (Token i = 0; i < ranks.instructions.size(); ++i) visit(i, ranks.instructions[i], binder);
  }
  return program;
}

}  // namespace orrery::models

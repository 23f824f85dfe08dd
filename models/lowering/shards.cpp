// ZeRO-2 and 3: gradients are reduced after every micro-batch's backward; with ZeRO-3 parameters
// are gathered before the part that uses them. A bucket is cut into `data` equal pieces, the last
// one padded, of which the rank with data coordinate d owns the d-th.
//
//   ZeRO-2   BWD.0 REDUCE.0 BWD.1 REDUCE.1 ...     a part awaits the reduction that emptied the
//                                                  bucket that it fills; there are two buckets if
//                                                  reductions overlap with compute, otherwise one
//   ZeRO-3   UNSHARD.0 | UNSHARD.1 FWD.0 | UNSHARD.2 FWD.1 | ... | UNSHARD.3 BWD.4 REDUCE.4 | ...
//            with overlap one unit (or `prefetch` units) ahead, otherwise right before its part. A
//            gather starts after all computation and reductions before it: the weights that it
//            overwrites are no longer needed, and a part that awaits it finds its bucket empty.
//            Without resharding, backward uses the weights that forward gathered.
//
// With several copies of the sharded state (HSDP), a reduction inside a copy is followed by one
// between the copies, shard by shard. Stages of a pipeline gather in the same way, in the order of
// their micro-batches and chunks, and reduce each unit once, after its last backward.
//
// Experts with replicas of their own are units of their own: gathered right before the rest of
// their layer and reduced right after it. The weights and gradients of an expert that only one rank
// holds are neither gathered nor reduced.
//
// A tied embedding and head on one stage are one unit: gathered once, and reduced after both have
// added to its gradient.

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "models/lowering/gradient_buckets.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"

namespace orrery::models {

namespace {

class Sharder {
 public:
  Sharder(Program& program, const BlockInputs& inputs, std::uint32_t rank_class)
      : program_{program},
        class_{rank_class},
        ranks_{program.classes[rank_class]},
        ahead_{overlaps_gathers(inputs) ? static_cast<std::size_t>(inputs.plan.sharding.prefetch)
                                        : 0},
        keeps_{!inputs.plan.sharding.reshard},
        gathers_{program.sharding.parameters},
        buckets_{program, rank_class, overlaps_data(inputs)} {
    const std::int64_t full = gathers_ ? 0 : bucket_elements(inputs);
    for (const std::uint32_t chunk : ranks_.chunks) {
      backward_.push_back(parts_of(program.chunks[chunk].backward, full));
      forward_.emplace_back();
      if (gathers_) forward_.back() = parts_of(program.chunks[chunk].forward, full);
    }
  }

  void run() {
    std::vector<const ShardPart*> filling;
    for (const std::vector<ShardPart>& chunk : backward_) {
      for (const ShardPart& each : chunk) filling.push_back(&each);
    }
    for (const ShardPart* each : filling) {
      const ReducedElements elements = buckets_.elements_after(*each);
      ranks_.owned += piece_of(program_, elements.dense) +
                      piece_of(program_, elements.experts, MeshView::experts);
    }
    buckets_.add(filling);
    if (gathers_) add_weights();
    const std::vector<Instruction> slots = std::move(ranks_.instructions);
    ranks_.instructions.clear();
    for (const Instruction& slot : slots) expand(slot);
    for (at_ = 0; at_ < runs_.size(); ++at_) emit();
    free_weights();
  }

 private:
  std::vector<ShardPart> parts_of(std::uint32_t phase, std::int64_t full) {
    const Phase whole = program_.phases[phase];
    std::vector<ShardPart> parts;
    for (Segment& segment : segments_of(program_, whole, full)) {
      const std::uint32_t id = appended(program_.phases, segment.phase);
      parts.push_back({id, std::move(segment)});
    }
    return parts;
  }

  Bytes weights_of(const Unit& unit) const {
    return bytes_in(program_.formats.storage, unit.elements) + unit.frozen;
  }
  const Unit& unit_of(const ShardPart& part) const {
    return program_.units[part.segment.first_unit];
  }
  const Unit* experts_of(const ShardPart& part) const {
    return sharded_experts(program_, part.segment);
  }

  // --- weights ------------------------------------------------------------------------------

  /// Adds the types of buffers for gathered weights. Units of one kind have the same size and share
  /// a type.
  void add_weights() {
    for (const std::vector<ShardPart>& chunk : forward_) {
      for (const ShardPart& each : chunk) {
        add_type(unit_of(each));
        if (const Unit* experts = experts_of(each)) add_type(*experts);
      }
    }
  }

  void add_type(const Unit& unit) {
    const auto type = static_cast<std::uint16_t>(ranks_.types.size());
    if (!types_.try_emplace({unit.view, unit.kinds}, type).second) return;
    const std::string kind = program_.kinds[unit.kinds.front()].name;
    const std::string layer = unit.view == MeshView::experts ? "experts of " + kind : kind;
    ranks_.types.push_back({"weights." + (unit.layer < 0 ? unit.name : layer),
                            BufferKind::parameter, weights_of(unit)});
  }

  /// Index of the next or previous run of a part; runs_.size() if there is none.
  std::size_t neighbour(std::size_t at, std::ptrdiff_t step) const {
    do {
      at += static_cast<std::size_t>(step);
    } while (at < runs_.size() && runs_[at].part == nullptr);
    return std::min(at, runs_.size());
  }

  /// The gather whose weights a run can still use: the previous run's of the same unit, forward's
  /// where weights are kept, or the first one of a shared table; otherwise no_binding.
  std::uint32_t found(std::size_t at) const {
    const Unit& unit = unit_of(*runs_[at].part);
    if (unit.kinds.size() > 1) return root_gather_;
    const std::size_t before = neighbour(at, -1);
    const bool same = before < runs_.size() && &unit_of(*runs_[before].part) == &unit;
    if (same || !keeps_) return same ? runs_[before].instruction.awaits : no_binding;
    const auto kept = kept_.find(runs_[at].part->segment.first_unit);
    return kept == kept_.end() ? no_binding : kept->second.gather;
  }

  /// Gathers the weights that a run needs, unless they are there.
  void gather_for(std::size_t at) {
    if (at >= runs_.size() || runs_[at].instruction.awaits != no_binding) return;
    const ShardPart& part = *runs_[at].part;
    std::uint32_t& gather = runs_[at].instruction.awaits;
    gather = found(at);
    if (gather == no_binding) gather = unshard(part, runs_[at]);
    const bool leaves = keeps_ && runs_[at].instruction.op == Opcode::forward;
    const auto kept = kept_.find(part.segment.first_unit);
    if (leaves && kept != kept_.end()) ++kept->second.awaited;
    if (unit_of(part).kinds.size() > 1) root_gather_ = gather;
  }

  /// Index of the buffer that a unit's weights are gathered into. Units of a kind rotate through
  /// one buffer more than are gathered ahead; embedding and head have a single one, unless several
  /// units are gathered ahead. Where weights are kept until backward, a layer takes the first free
  /// buffer.
  std::uint32_t place_for(const ShardPart& part) {
    const Unit& unit = unit_of(part);
    if (unit.layer < 0 && (ahead_ < 2 || unit.kinds.size() > 1)) return 0;
    if (!keeps_ || unit.layer < 0) {
      return static_cast<std::uint32_t>(turns_of_[unit.kinds]++ % (ahead_ + 1));
    }
    std::vector<bool> taken(kept_.size() + 1, false);
    for (const auto& [id, each] : kept_) taken[each.binding] = true;
    const auto free = std::ranges::find(taken, false) - taken.begin();
    kept_[part.segment.first_unit].binding = static_cast<std::uint32_t>(free);
    return static_cast<std::uint32_t>(free);
  }

  /// A layer's experts first, where they have replicas of their own.
  std::uint32_t unshard(const ShardPart& part, const ShardRun& run) {
    const std::uint32_t place = place_for(part);
    const Unit* experts = experts_of(part);
    if (experts != nullptr) gather(*experts, run, place);
    const Unit& unit = unit_of(part);
    const std::uint32_t last = gather(unit, run, place);
    program_.collectives[last].completes = experts != nullptr;
    if (keeps_ && unit.layer >= 0) kept_[part.segment.first_unit].gather = last;
    return last;
  }

  std::uint32_t gather(const Unit& unit, const ShardRun& run, std::uint32_t place) {
    const DType storage = program_.formats.storage;
    const auto role =
        unit.view == MeshView::experts ? CommunicatorRole::expert_data : CommunicatorRole::data;
    JointCollective joint{.name = unit.name,
                          .kind = Collective::all_gather,
                          .communicator = program_.communicator(role),
                          .dtype = storage,
                          .bytes = weights_of(unit),
                          .classes = {class_},
                          .first_unit = static_cast<std::uint32_t>(&unit - program_.units.data()),
                          .units = 1,
                          .elements = unit.elements,
                          .buffer = types_.at({unit.view, unit.kinds}),
                          .gathers_parameters = true};
    if (program_.sharding.parameters_on_host) {
      joint.from_host = bytes_in(storage, piece_of(program_, unit.elements, unit.view)) +
                        program_.shard_of(unit.frozen);
    }
    Instruction each{.op = Opcode::unshard,
                     .target = appended(program_.collectives, std::move(joint)),
                     .micro_batch = run.instruction.micro_batch,
                     .binds = bit(slot_weights)};
    each.bindings[slot_filled] = place;
    ranks_.instructions.push_back(each);
    return each.target;
  }

  /// Frees gathered weights after the last run that awaits their gather.
  void free_weights() {
    std::vector<bool> freed(program_.collectives.size(), false);
    std::vector<Instruction>& list = ranks_.instructions;
    for (auto each = list.rbegin(); each != list.rend(); ++each) {
      if (!gathers_ || !runs_phase(*each) || each->awaits == no_binding) continue;
      if (freed[each->awaits]) continue;
      freed[each->awaits] = true;
      each->frees |= bit(slot_weights);
    }
  }

  // --- the list -----------------------------------------------------------------------------

  void expand(const Instruction& slot) {
    const std::uint32_t place = program_.chunks[slot.chunk].place;
    const std::vector<ShardPart> none;
    const std::vector<ShardPart>& parts = slot.op == Opcode::backward  ? backward_[place]
                                          : slot.op == Opcode::forward ? forward_[place]
                                                                       : none;
    if (parts.empty()) runs_.push_back({slot, nullptr});
    for (const ShardPart& part : parts) {
      Instruction each = slot;
      each.target = part.phase;
      runs_.push_back({each, &part});
    }
  }

  /// Forgets weights kept from forward once every backward that uses them has run.
  void release(const ShardPart& part) {
    const auto kept = kept_.find(part.segment.first_unit);
    if (kept != kept_.end() && --kept->second.awaited == 0) kept_.erase(kept);
  }

  void emit() {
    const bool runs_part = runs_[at_].part != nullptr;
    if (gathers_ && runs_part) gather_for(at_);
    std::size_t next = at_;
    for (std::size_t i = 0; gathers_ && runs_part && i < ahead_; ++i) {
      gather_for(next = neighbour(next, 1));
    }
    ShardRun& run = runs_[at_];
    if (runs_part && run.instruction.op == Opcode::backward) release(*run.part);
    if (run.instruction.op != Opcode::backward) {
      ranks_.instructions.push_back(run.instruction);
      return;
    }
    if (!gathers_) run.instruction.awaits = buckets_.emptied(*run.part);
    ranks_.instructions.push_back(run.instruction);
    buckets_.reduce(run, !program_.sharding.gradients && is_last_backward(run));
  }

  /// Is this the last backward of its part?
  bool is_last_backward(const ShardRun& run) const {
    const auto next = runs_.begin() + static_cast<std::ptrdiff_t>(at_) + 1;
    return std::none_of(next, runs_.end(), [&](const ShardRun& each) {
      return each.part == run.part && each.instruction.op == Opcode::backward &&
             each.instruction.chunk == run.instruction.chunk;
    });
  }

  Program& program_;
  std::uint32_t class_;
  RankClass& ranks_;
  /// Gathered weights that forward keeps for backward.
  struct Kept {
    std::uint32_t gather = no_binding, binding = 0;
    std::int64_t awaited = 0;  // number of backwards that will use them
  };

  std::size_t ahead_;  // units gathered ahead
  bool keeps_, gathers_;
  GradientBuckets buckets_;
  std::map<std::uint32_t, Kept> kept_;                      // by unit
  std::vector<std::vector<ShardPart>> forward_, backward_;  // by chunk of the stage
  /// Types of gathered weights, by view and kinds.
  std::map<std::pair<MeshView, std::vector<std::uint32_t>>, std::uint16_t> types_;
  std::vector<ShardRun> runs_;
  std::size_t at_ = 0;
  std::map<std::vector<std::uint32_t>, std::size_t> turns_of_;  // gathers so far, by kinds
  std::uint32_t root_gather_ = no_binding;
};

}  // namespace

Program insert_shards(Program program, const BlockInputs& inputs) {
  if (!program.sharding.gradients && !program.sharding.parameters) return program;
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) Sharder{program, inputs, c}.run();
  return program;
}

}  // namespace orrery::models

// ZeRO-2 and 3: what is reduced after every micro-batch's backward, and what is gathered before it
// runs. The owned piece of a bucket is its d-th part of `data` equal ones, the last one padded.
//
//   ZeRO-2   BWD.0 REDUCE.0 BWD.1 REDUCE.1 ...     a part awaits the reduction that emptied the
//                                                  bucket which it fills: beside compute there are
//                                                  two buckets, otherwise one
//   ZeRO-3   UNSHARD.0 | UNSHARD.1 FWD.0 | UNSHARD.2 FWD.1 | ... | UNSHARD.3 BWD.4 REDUCE.4 | ...
//            beside compute one unit ahead, otherwise right before its part. A gather begins when
//            all before it is computed, and stands behind the reductions before it: so the weights
//            that it overwrites are read, and a part that awaits it finds its bucket empty.
//
// A tied embedding and head on one stage are one unit: gathered once, its gradient whole until both
// have added to it.

#include <algorithm>
#include <string>
#include <utility>

#include "models/lowering/segments.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// A part of a run: its phase, and what of the model it runs.
struct Part {
  std::uint32_t phase = 0;
  Segment segment;  // its phase moved out
};

class Sharder {
 public:
  Sharder(Program& program, const Software& software, std::uint32_t rank_class)
      : program_{program},
        software_{software},
        class_{rank_class},
        ranks_{program.classes[rank_class]},
        ahead_{overlaps_data(program.plan, software)},
        gathers_{program.plan.zero == Zero::three},
        tied_{program.model.tied_embeddings && program.plan.pipeline == 1} {}

  void run() {
    cut();
    count_owned();
    add_buckets();
    if (gathers_) add_weights();
    const std::vector<Instruction> slots = std::move(ranks_.instructions);
    ranks_.instructions.clear();
    for (const Instruction& slot : slots) expand(slot);
    for (at_ = 0; at_ < runs_.size(); ++at_) emit();
    free_weights();
  }

 private:
  /// One part of one slot.
  struct Run {
    Instruction instruction;
    const Part* part = nullptr;
  };

  void cut() {
    ensure(program_.plan.chunks() == 1, "sharded gradients and a pipeline");
    const std::int64_t full = gathers_ ? 0 : bucket_elements(program_, software_);
    backward_ = parts_of(backward_phase(0), full);
    if (gathers_) forward_ = parts_of(forward_phase(0), full);
  }

  std::vector<Part> parts_of(std::uint32_t phase, std::int64_t full) {
    const Phase whole = program_.phases[phase];
    std::vector<Part> parts;
    for (Segment& segment : segments_of(program_, whole, full)) {
      const auto id = static_cast<std::uint32_t>(program_.phases.size());
      program_.phases.push_back(segment.phase);
      parts.push_back({id, std::move(segment)});
    }
    return parts;
  }

  /// Does the part belong to the unit of a tied embedding and its head?
  bool of_root(const Part& part) const { return tied_ && part.segment.ends != 0; }
  std::int64_t piece(std::int64_t elements) const {
    return (elements + program_.plan.data - 1) / program_.plan.data;
  }
  Bytes in(DType type, std::int64_t elements) const { return Bytes{elements * bits(type) / 8}; }

  /// Elements of what is reduced together behind a part: nothing behind a tied head of its own.
  std::int64_t bucket_of(const Part& part) const {
    if (!gathers_ || !of_root(part)) return part.segment.parameters;
    return (part.segment.ends & end_embedding) != 0 ? root() : 0;
  }
  std::int64_t root() const {
    std::int64_t sum = 0;
    for (const Part& each : backward_) sum += of_root(each) ? each.segment.parameters : 0;
    return sum;
  }

  void count_owned() {
    for (const Part& each : backward_) ranks_.owned += piece(bucket_of(each));
  }

  /// Does backward fill the bucket that a tied embedding has to itself?
  bool fills_own(const Part& part) const {
    return tied_ && (part.segment.ends & end_embedding) != 0;
  }

  /// Buckets that backward fills: one or two in turn, and that of a tied embedding.
  void add_buckets() {
    const DType gradient = gradient_dtype(program_.plan, software_);
    std::int64_t largest = 0, own = 0, several = 0;
    for (const Part& each : backward_) {
      const std::int64_t elements = bucket_of(each);
      if (fills_own(each)) own = elements;
      if (fills_own(each) || elements == 0) continue;
      largest = std::max(largest, elements);
      ++several;
    }
    turns_ = std::min<std::size_t>(several, ahead_ ? 2 : 1);
    for (std::size_t i = 0; i < turns_; ++i) {
      ranks_.persistent.push_back(
          {"bucket" + std::to_string(i), BufferKind::gradient, in(gradient, largest), true});
    }
    if (own > 0) {
      ranks_.persistent.push_back(
          {"bucket.embedding", BufferKind::gradient, in(gradient, own), true});
    }
    reduced_.assign(turns_ + 1, no_binding);
  }

  // --- weights ------------------------------------------------------------------------------

  /// Kinds of units, which differ in size: layers, embedding, head, or both ends at once.
  static constexpr std::size_t kinds = 4;
  std::size_t kind_of(const Part& part) const {
    return tied_ && part.segment.ends != 0 ? end_embedding | end_head : part.segment.ends;
  }
  std::int64_t elements_of(const Part& part) const {
    return of_root(part) ? root() : part.segment.parameters;
  }

  void add_weights() {
    constexpr std::string_view names[kinds] = {"layer", "embedding", "head", "ends"};
    const DType storage = storage_dtype(program_.plan.precision);
    for (const Part& each : forward_) {
      const std::size_t kind = kind_of(each);
      if (types_[kind] != no_binding) continue;
      types_[kind] = static_cast<std::uint32_t>(ranks_.types.size());
      ranks_.types.push_back({"weights." + std::string{names[kind]}, BufferKind::parameter,
                              in(storage, elements_of(each))});
    }
  }

  bool same_unit(const Run& a, const Run& b) const {
    return kind_of(*a.part) == kind_of(*b.part) &&
           a.part->segment.first_layer == b.part->segment.first_layer;
  }

  /// Does this run find its weights gathered for the run before, or its tied ones at the beginning?
  bool finds(std::size_t at) const {
    if (of_root(*runs_[at].part)) return root_gather_ != no_binding;
    return at > 0 && same_unit(runs_[at - 1], runs_[at]);
  }

  /// Gathers what a run needs, unless it is there.
  void gather_for(std::size_t at) {
    if (at >= runs_.size() || runs_[at].instruction.awaits != no_binding) return;
    const Part& part = *runs_[at].part;
    std::uint32_t& gather = runs_[at].instruction.awaits;
    gather = finds(at) ? (of_root(part) ? root_gather_ : runs_[at - 1].instruction.awaits)
                       : unshard(part, runs_[at].instruction.micro_batch);
    if (of_root(part)) root_gather_ = gather;
  }

  std::uint32_t unshard(const Part& part, std::uint32_t micro_batch) {
    const DType storage = storage_dtype(program_.plan.precision);
    const std::size_t kind = kind_of(part);
    const bool layer = part.segment.layers > 0;
    program_.collectives.push_back(
        {.name = layer ? "layer " + std::to_string(part.segment.first_layer)
                       : ranks_.types[types_[kind]].name.substr(std::string{"weights."}.size()),
         .kind = Collective::all_gather,
         .communicator = data_group,
         .dtype = storage,
         .bytes = in(storage, elements_of(part)),
         .classes = {class_},
         .first_layer = part.segment.first_layer,
         .layers = part.segment.layers,
         .ends = static_cast<std::uint8_t>(kind),
         .elements = elements_of(part),
         .buffer = static_cast<std::uint16_t>(types_[kind])});
    Instruction each;
    each.op = Opcode::unshard;
    each.micro_batch = micro_batch;
    each.target = static_cast<std::uint32_t>(program_.collectives.size() - 1);
    // One ahead: what fills now and what runs now take turns.
    each.bindings[slot_filled] = layer && ahead_ ? turn_ : 0;
    each.binds = bit(slot_weights);
    if (layer && ahead_) turn_ = 1 - turn_;
    ranks_.instructions.push_back(each);
    return each.target;
  }

  /// Behind the last run that awaits a gather its weights are freed.
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
    const std::vector<Part>& parts = slot.op == Opcode::backward ? backward_ : forward_;
    if (parts.empty()) runs_.push_back({slot, nullptr});
    for (const Part& part : parts) {
      Instruction each = slot;
      each.target = part.phase;
      runs_.push_back({each, &part});
    }
  }

  void emit() {
    if (gathers_) gather_for(at_);
    if (gathers_ && ahead_) gather_for(at_ + 1);
    Run& run = runs_[at_];
    if (run.instruction.op != Opcode::backward) {
      ranks_.instructions.push_back(run.instruction);
      return;
    }
    if (!gathers_) run.instruction.awaits = emptied(*run.part);
    ranks_.instructions.push_back(run.instruction);
    if (bucket_of(*run.part) > 0) reduce(run);
  }

  /// The bucket that a part fills, in the order in which they are held.
  std::size_t bucket_index(const Part& part) const {
    return fills_own(part) ? turns_ : filled_ % std::max<std::size_t>(turns_, 1);
  }

  /// The reduction that emptied the bucket which a part fills; a tied head adds to the embedding's.
  std::uint32_t emptied(const Part& part) const {
    std::uint32_t last = reduced_[bucket_index(part)];
    const bool both = tied_ && (part.segment.ends & end_head) != 0;
    const std::uint32_t own = reduced_[turns_];
    if (both && own != no_binding && (last == no_binding || own > last)) last = own;
    return last;
  }

  void reduce(const Run& run) {
    const DType gradient = gradient_dtype(program_.plan, software_);
    JointCollective joint = reduction_of(program_, software_, class_, run.part->segment);
    const std::size_t bucket = bucket_index(*run.part);
    joint.buffer = static_cast<std::uint16_t>(bucket);
    joint.elements = bucket_of(*run.part);
    joint.bytes = in(gradient, joint.elements);
    if (gathers_ && of_root(*run.part)) joint.ends = end_embedding | end_head;
    // The piece is read, the sum read and written; the bucket is cleared.
    joint.sums = in(gradient, 3 * piece(joint.elements) + joint.elements);
    program_.collectives.push_back(std::move(joint));
    Instruction each;
    each.op = Opcode::reduce_gradient;
    each.micro_batch = run.instruction.micro_batch;
    each.target = static_cast<std::uint32_t>(program_.collectives.size() - 1);
    reduced_[bucket] = each.target;
    filled_ += bucket == turns_ ? 0 : 1;
    ranks_.instructions.push_back(each);
  }

  Program& program_;
  const Software& software_;
  std::uint32_t class_;
  RankClass& ranks_;
  bool ahead_, gathers_, tied_;
  std::vector<Part> forward_, backward_;
  std::uint32_t types_[kinds] = {no_binding, no_binding, no_binding, no_binding};
  std::vector<Run> runs_;
  std::size_t at_ = 0;
  std::uint32_t turn_ = 0;
  std::uint32_t root_gather_ = no_binding;
  std::size_t turns_ = 0, filled_ = 0;  // buckets in turn, and how many were filled so far
  std::vector<std::uint32_t> reduced_;  // by bucket: the reduction that emptied it last
};

}  // namespace

Program insert_shards(Program program, const Software& software) {
  const bool in_shards = program.plan.zero == Zero::two || program.plan.zero == Zero::three;
  if (program.plan.data == 1 || !in_shards) return program;
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) Sharder{program, software, c}.run();
  return program;
}

}  // namespace orrery::models

#include "models/lowering/gradient_buckets.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace orrery::models {

const Unit* sharded_experts(const Program& program, const Segment& part) {
  if (!program.reduces_experts()) return nullptr;
  if (part.experts.units > 0) return &program.units[part.experts.first_unit];
  const Unit& dense = program.units[part.first_unit];
  if (dense.kinds.size() == 1) return nullptr;
  const auto found = std::ranges::find_if(program.units, [&](const Unit& each) {
    return each.view == MeshView::experts && each.kinds.front() == dense.kinds.back();
  });
  return found == program.units.end() ? nullptr : &*found;
}

GradientBuckets::GradientBuckets(Program& program, std::uint32_t rank_class, bool overlaps)
    : program_{program},
      class_{rank_class},
      ranks_{program.classes[rank_class]},
      overlaps_{overlaps},
      shares_table_{program.tied == TiedTable::shared} {}

ReducedElements GradientBuckets::elements_after(const ShardPart& part) const {
  const std::int64_t experts = part.segment.experts.parameters;
  if (!program_.sharding.parameters) return {part.segment.parameters, experts};
  const Unit& unit = program_.units[part.segment.first_unit];
  const bool completes = unit.kinds.size() == 1 || part.segment.has_embedding;
  return {completes ? unit.elements : 0, experts};
}

/// Does the part fill the bucket that is reserved for a shared table?
bool GradientBuckets::fills_shared(const ShardPart& part) const {
  return shares_table_ && part.segment.has_embedding;
}

/// Adds buckets that are filled in turn, after those added so far.
void GradientBuckets::hold(Turns& turns, const std::string& name, std::int64_t largest,
                           std::size_t fillings) {
  turns.first = reduced_.size();
  turns.count = std::min<std::size_t>(fillings, overlaps_ ? 2 : 1);
  for (std::size_t i = 0; i < turns.count; ++i) {
    ranks_.persistent.push_back({name + std::to_string(i), BufferKind::gradient,
                                 bytes_in(program_.formats.gradient, largest), true});
    reduced_.push_back(no_binding);
  }
}

void GradientBuckets::add(const std::vector<const ShardPart*>& parts) {
  ReducedElements largest;
  std::int64_t own = 0;
  std::size_t dense = 0, experts = 0;  // how many parts fill one
  if (!program_.sharding.gradients) return;
  for (const ShardPart* each : parts) {
    const ReducedElements elements = elements_after(*each);
    if (program_.reduces_experts() && elements.experts > 0) {
      largest.experts = std::max(largest.experts, elements.experts);
      ++experts;
    }
    if (fills_shared(*each)) own = elements.dense;
    if (fills_shared(*each) || elements.dense == 0) continue;
    largest.dense = std::max(largest.dense, elements.dense);
    ++dense;
  }
  hold(dense_, "bucket", largest.dense, dense);
  shared_ = reduced_.size();
  if (own > 0) {
    ranks_.persistent.push_back(
        {"bucket.embedding", BufferKind::gradient, bytes_in(program_.formats.gradient, own), true});
    reduced_.push_back(no_binding);
  }
  hold(experts_, "bucket.experts", largest.experts, experts);
}

/// Index of the bucket that a part fills, in the order in which `add` added them.
std::size_t GradientBuckets::index_of(const ShardPart& part) const {
  return fills_shared(part) ? shared_ : dense_.next();
}

std::uint32_t GradientBuckets::emptied(const ShardPart& part) const {
  std::uint32_t last = no_binding;
  const auto await = [&](std::size_t bucket) {
    if (bucket >= reduced_.size() || reduced_[bucket] == no_binding) return;
    last = last == no_binding ? reduced_[bucket] : std::max(last, reduced_[bucket]);
  };
  await(index_of(part));
  if (shares_table_ && part.segment.has_head) await(shared_);
  if (experts_.count > 0 && part.segment.experts.parameters > 0) await(experts_.next());
  return last;
}

void GradientBuckets::reduce(const ShardRun& run, bool last) {
  const Segment& segment = run.part->segment;
  const ReducedElements elements = elements_after(*run.part);
  const auto reduced = [&](JointCollective joint, std::int64_t count) {
    joint.elements = count;
    joint.bytes = bytes_in(program_.formats.gradient, count);
    return joint;
  };
  std::vector<std::pair<JointCollective, std::size_t>> due;
  if (elements.dense > 0) {
    due.emplace_back(reduced(reduction_of(program_, class_, segment), elements.dense),
                     index_of(*run.part));
  }
  if (elements.experts > 0 && program_.reduces_experts()) {
    due.emplace_back(reduced(expert_reduction_of(program_, class_, segment), elements.experts),
                     experts_.next());
  }
  for (auto& [joint, bucket] : due) {
    if (program_.sharding.gradients) {
      reduce_bucket(std::move(joint), bucket, run);
    } else if (last) {
      push(std::move(joint), run);
    }
  }
}

void GradientBuckets::reduce_bucket(JointCollective joint, std::size_t bucket,
                                    const ShardRun& run) {
  const MeshView view = program_.units[joint.first_unit].view;
  joint.buffer = static_cast<std::uint16_t>(bucket);
  // The piece is read, the accumulators are read and written, and the bucket is cleared.
  joint.accumulate_traffic = bytes_in(
      program_.formats.gradient, 3 * piece_of(program_, joint.elements, view) + joint.elements);
  reduced_[bucket] = push(std::move(joint), run);
  if (bucket == shared_ && shares_table_) return;
  ++(view == MeshView::experts ? experts_ : dense_).filled;
}

std::uint32_t GradientBuckets::push(JointCollective joint, const ShardRun& run) {
  const auto copies = reduction_of_copies(program_, joint);
  Instruction each{.op = Opcode::reduce_gradient,
                   .chunk = run.instruction.chunk,
                   .target = appended(program_.collectives, std::move(joint)),
                   .micro_batch = run.instruction.micro_batch};
  ranks_.instructions.push_back(each);
  if (!copies) return each.target;
  const std::uint32_t inside = each.target++;
  program_.collectives.push_back(*copies);
  ranks_.instructions.push_back(each);
  return inside;
}

}  // namespace orrery::models

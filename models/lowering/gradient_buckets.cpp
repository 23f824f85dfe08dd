#include "models/lowering/gradient_buckets.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace orrery::models {

GradientBuckets::GradientBuckets(Program& program, std::uint32_t rank_class, bool overlaps)
    : program_{program},
      class_{rank_class},
      ranks_{program.classes[rank_class]},
      overlaps_{overlaps},
      shares_table_{program.tied == TiedTable::shared} {}

std::int64_t GradientBuckets::elements_after(const ShardPart& part) const {
  if (!program_.sharding.parameters) return part.segment.all_parameters();
  const Unit& unit = program_.units[part.segment.first_unit];
  const bool completes = unit.kinds.size() == 1 || part.segment.embeds;
  return completes ? unit.elements : 0;
}

/// Does the part fill the bucket that is reserved for a shared table?
bool GradientBuckets::fills_own(const ShardPart& part) const {
  return shares_table_ && part.segment.embeds;
}

void GradientBuckets::add(const std::vector<const ShardPart*>& parts) {
  const DType gradient = program_.formats.gradient;
  std::int64_t largest = 0, own = 0, several = 0;
  if (!program_.sharding.gradients) return;
  for (const ShardPart* each : parts) {
    const std::int64_t elements = elements_after(*each);
    if (fills_own(*each)) own = elements;
    if (fills_own(*each) || elements == 0) continue;
    largest = std::max(largest, elements);
    ++several;
  }
  turns_ = std::min<std::size_t>(several, overlaps_ ? 2 : 1);
  for (std::size_t i = 0; i < turns_; ++i) {
    ranks_.persistent.push_back(
        {"bucket" + std::to_string(i), BufferKind::gradient, bytes_in(gradient, largest), true});
  }
  if (own > 0) {
    ranks_.persistent.push_back(
        {"bucket.embedding", BufferKind::gradient, bytes_in(gradient, own), true});
  }
  reduced_.assign(turns_ + 1, no_binding);
}

/// Index of the bucket that a part fills, in the order in which `add` added them.
std::size_t GradientBuckets::index_of(const ShardPart& part) const {
  return fills_own(part) ? turns_ : filled_ % std::max<std::size_t>(turns_, 1);
}

std::uint32_t GradientBuckets::emptied(const ShardPart& part) const {
  std::uint32_t last = reduced_[index_of(part)];
  const bool both = shares_table_ && part.segment.predicts;
  const std::uint32_t own = reduced_[turns_];
  if (both && own != no_binding && (last == no_binding || own > last)) last = own;
  return last;
}

void GradientBuckets::reduce(const ShardRun& run, bool last) {
  if (elements_after(*run.part) == 0) return;
  if (program_.sharding.gradients) {
    reduce_bucket(run);
  } else if (last) {
    reduce_whole(run);
  }
}

void GradientBuckets::reduce_whole(const ShardRun& run) {
  JointCollective joint = reduction_of(program_, class_, run.part->segment);
  joint.elements = elements_after(*run.part);
  joint.bytes = bytes_in(program_.formats.gradient, joint.elements);
  push(std::move(joint), run);
}

void GradientBuckets::reduce_bucket(const ShardRun& run) {
  const DType gradient = program_.formats.gradient;
  JointCollective joint = reduction_of(program_, class_, run.part->segment);
  const std::size_t bucket = index_of(*run.part);
  joint.buffer = static_cast<std::uint16_t>(bucket);
  joint.elements = elements_after(*run.part);
  joint.bytes = bytes_in(gradient, joint.elements);
  // The piece is read, the accumulators are read and written, and the bucket is cleared.
  joint.sums = bytes_in(gradient, 3 * piece_of(program_, joint.elements) + joint.elements);
  reduced_[bucket] = push(std::move(joint), run);
  filled_ += bucket == turns_ ? 0 : 1;
}

std::uint32_t GradientBuckets::push(JointCollective joint, const ShardRun& run) {
  const auto copies = reduction_of_copies(program_, joint);
  Instruction each;
  each.op = Opcode::reduce_gradient;
  each.chunk = run.instruction.chunk;
  each.micro_batch = run.instruction.micro_batch;
  each.target = static_cast<std::uint32_t>(program_.collectives.size());
  program_.collectives.push_back(std::move(joint));
  ranks_.instructions.push_back(each);
  if (!copies) return each.target;
  const std::uint32_t inside = each.target++;
  program_.collectives.push_back(*copies);
  ranks_.instructions.push_back(each);
  return inside;
}

}  // namespace orrery::models

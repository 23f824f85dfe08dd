#pragma once
// One run of a chunk cut into parts, each with the parameters that it uses or completes: a bucket
// of gradients, a unit whose weights are gathered.

#include <cstdint>
#include <optional>
#include <vector>

#include "models/lowering/lower.hpp"

namespace orrery::models {

/// Experts of a segment's layers, where they have replicas of their own.
struct SegmentExperts {
  std::int64_t parameters = 0;
  std::uint32_t first_unit = 0, units = 0;
};

struct Segment {
  Phase phase;
  std::int64_t parameters = 0;              // without those experts
  std::uint32_t first_unit = 0, units = 0;  // consecutive ones of the Program
  bool embeds = false, predicts = false;    // runs the embedding, the head
  SegmentExperts experts{};

  std::int64_t all_parameters() const { return parameters + experts.parameters; }
};

/// Cuts a forward or backward phase into segments that each reach `full` elements; at 0 every layer
/// and end is one of its own. They are named after the phase, and numbered where there are several.
std::vector<Segment> segments_of(const Program& program, const Phase& phase, std::int64_t full);

/// Elements of a gradient bucket: the plan's, else the software's; all of them where neither says.
std::int64_t bucket_elements(const BlockInputs& inputs);

/// Are the gradients of data-parallel ranks reduced, and their weights gathered, concurrently with
/// compute?
bool overlaps_data(const BlockInputs& inputs);

/// The reduction of a segment's gradients over the axes on which they are replicated, as a bucket;
/// where what is sharded has copies, inside each of them.
JointCollective reduction_of(const Program& program, std::uint32_t rank_class,
                             const Segment& segment);
/// ... and then of the pieces between the copies.
/// Source  Zhao et al. 2023, "PyTorch FSDP", arXiv 2304.11277, section 3.2.2
std::optional<JointCollective> reduction_of_copies(const Program& program,
                                                   const JointCollective& reduction);
/// ... and that of its experts over their replicas.
JointCollective expert_reduction_of(const Program& program, std::uint32_t rank_class,
                                    const Segment& segment);

}  // namespace orrery::models

#pragma once
// Cuts a chunk's forward or backward into segments, each with the parameters that it uses or whose
// gradients it completes: those of a gradient bucket, or of a unit whose weights are gathered; and
// makes the reductions of their gradients.

#include <cstdint>
#include <optional>
#include <vector>

#include "models/lowering/lower.hpp"

namespace orrery::models {

/// The experts of a segment's layers, where they have replicas of their own.
struct SegmentExperts {
  std::int64_t parameters = 0;
  std::uint32_t first_unit = 0, units = 0;
};

/// Consecutive layers of a phase, and their parameters.
struct Segment {
  Phase phase;
  std::int64_t parameters = 0;                   // without those of `experts`
  std::uint32_t first_unit = 0, units = 0;       // a range of Program::units
  bool has_embedding = false, has_head = false;  // runs the embedding, the head
  SegmentExperts experts{};

  std::int64_t all_parameters() const { return parameters + experts.parameters; }
};

/// Cuts a forward or backward phase into segments that each reach `full` elements; at 0 each layer,
/// the embedding and the head are a segment of their own. Segments are named after the phase, and
/// numbered where there are several.
std::vector<Segment> segments_of(const Program& program, const Phase& phase, std::int64_t full);

/// Elements of a gradient bucket: from the plan, else from the software; if neither states a size,
/// one bucket holds all, or where gradients are sharded one unit, as FSDP reduces them: one bucket
/// of all gradients next to their shards would take more memory than no sharding.
std::int64_t bucket_elements(const BlockInputs& inputs);

/// Are the gradients of data-parallel ranks reduced concurrently with compute?
bool overlaps_data(const BlockInputs& inputs);
/// Are their weights gathered concurrently with compute?
bool overlaps_gathers(const BlockInputs& inputs);

/// The reduction of a segment's gradients, as one bucket, over the axes along which its parameters
/// are replicated: a reduce-scatter where state is sharded, over the sharding axes only, otherwise
/// an all-reduce.
JointCollective reduction_of(const Program& program, std::uint32_t rank_class,
                             const Segment& segment);
/// HSDP: the all-reduce of the shards of that reduction between the copies; none without copies.
/// Source  Zhao et al. 2023, "PyTorch FSDP", arXiv 2304.11277, section 3.2.2
std::optional<JointCollective> reduction_of_copies(const Program& program,
                                                   const JointCollective& reduction);
/// The reduction of the gradients of a segment's experts, over their replicas.
JointCollective expert_reduction_of(const Program& program, std::uint32_t rank_class,
                                    const Segment& segment);

}  // namespace orrery::models

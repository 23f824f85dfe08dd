#pragma once
// One run of a chunk cut into parts, each with the parameters that it uses or completes: a bucket
// of gradients, a unit whose weights are gathered.

#include <cstdint>
#include <vector>

#include "models/lowering/lower.hpp"

namespace orrery::models {

struct Segment {
  Phase phase;
  std::int64_t parameters = 0;
  std::int64_t first_layer = -1, layers = 0;
  std::uint8_t ends = 0;  // bit per End
};

/// Cuts a forward or backward phase into segments that each reach `full` elements; at 0 every layer
/// and end is one of its own. They are named after the phase, and numbered where there are several.
std::vector<Segment> segments_of(const Program& program, const Phase& phase, std::int64_t full);

/// Elements of a gradient bucket: the plan's, else the software's; all of them where neither says.
std::int64_t bucket_elements(const Program& program, const Software& software);

/// Are the gradients of data-parallel ranks reduced, and their weights gathered, beside compute?
bool overlaps_data(const Plan& plan, const Software& software);

/// The reduction of a segment's gradients over the data axis, as a bucket.
JointCollective reduction_of(const Program& program, const Software& software,
                             std::uint32_t rank_class, const Segment& segment);

}  // namespace orrery::models

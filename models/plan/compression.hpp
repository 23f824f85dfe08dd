#pragma once
// Sizes of compressed gradient buckets. Which collectives carry them is in
// models/lowering/compression.hpp.

#include <cstdint>

#include "models/plan/plan.hpp"

namespace orrery::models {

/// Number of gradients that top-k sends of a bucket: max(1, floor(share x elements)).
std::int64_t kept_by_top_k(const Plan& plan, std::int64_t elements);

/// A bucket as the matrix that PowerSGD factors: [rows, columns] ~ [rows, rank] x [rank, columns].
///   columns = ceil(sqrt(elements)), rows = ceil(elements / columns); zeros pad the last row
struct LowRankShape {
  std::int64_t rows = 0, columns = 0, rank = 0;  // rank: the plan's, at most the shorter side
};
LowRankShape low_rank_shape(const Plan& plan, std::int64_t elements);

/// The share of a bucket in 8 bits that one replica sums: an equal part of its elements, the last
/// one padded. It is sent as `bytes`: its least and largest number in fp32, then one byte for each
/// element.
struct ByteShare {
  std::int64_t elements = 0;
  std::int64_t bytes() const { return elements + 8; }
};
ByteShare byte_share(const Plan& plan, std::int64_t elements);

}  // namespace orrery::models

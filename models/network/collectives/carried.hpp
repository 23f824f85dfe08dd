#pragma once
// A measured all-reduce says how fast the wires are that its siblings (all-gather, reduce-scatter,
// broadcast, all-to-all, messages) use as well. Where those were not measured, their cost models
// are corrected by what the all-reduces show. Leaves out gather and scatter, whose root is the
// limit.

#include <optional>
#include <string>
#include <vector>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

/// Is there a measured all-reduce that corrects this collective's cost model? Only where it has no
/// table of its own, and the all-reduces have two sizes or more; null otherwise.
const hardware::CollectiveTable* carrying_table(const CostCall& call);

/// Corrects the cost model's candidates:
///   t' = t + (a - 1) t(1 B) + (b - 1) fluid
/// a       time of a small measured all-reduce over that of its cost model: of the three smallest
///         sizes the one with the middle time
/// b       by k, the same ratio of what a large one takes beyond the small one, if it takes twice
/// as
///         long or more (else 1): of the three largest sizes the one with the middle rate. A
///         sibling is no faster than its cost model unless the all-reduces are faster than theirs,
///         and no faster than the bus bandwidth that they show:
///   b = max(min(k, 1), k (R / f) / (F / c))
/// R, F    time per byte of large all-reduces, and of this collective, by the cost models
/// f       bus factor of an all-reduce; c: of this collective, across nodes of all-to-alls
///         p (n-p)/n, the bytes that leave a node
void carry_over(const CostCall& call, std::vector<CollectiveTime>& candidates);

/// What the assumptions say of it: the two constants, and how they compare.
std::string carried_note(const CostCall& call);

}  // namespace orrery::models::collectives

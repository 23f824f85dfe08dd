#pragma once
// What no measurement can beat: the bytes that must cross a collective's busiest wire, at that
// wire's line rate. Leaves out latencies, protocols, and switches above the NICs.

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

/// The least time of a collective by any algorithm, rounded down:
///   t = bytes / rate
/// N nodes, p ranks on the node with the fewest of n; bytes of `size` that cross one of the group's
/// nodes' NICs in one direction (across), or one GPU's links (inside):
///                              across                         inside
///   all_reduce                 2 (N-1)/N                      2 (n-1)/n
///     where switches reduce    1                              1
///     nodes with other ranks   1
///   all_gather, reduce_scatter (n-p)/n                        (n-1)/n
///   all_to_all                 p (n-p)/n                      (n-1)/n
///   gather, scatter            (n-P)/n, P = n/N rounded up    (n-1)/n
///   broadcast, reduce, message 1                              1
/// rate    across: of the NICs near the group's ranks on a node, at most the part that siblings
///         leave; inside: of a GPU's links to the others, of all its links where group rates are
///         stated (doubled links of a cube mesh), and without limit over shared memory, which is no
///         wire
/// Source  Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms" (2 (n-1)/n, each node
///         taken as one rank); Klenk et al. 2020, "An in-network architecture for accelerating
///         shared-memory multiprocessor collectives" (1); the others: what a node lacks must enter
///         it, and what others lack must leave it
Time wire_bound(const CostCall& call);

/// Raises a time, its part on links first, to what the wire allows.
void keep_to_wire(const CostCall& call, CollectiveTime& priced);

}  // namespace orrery::models::collectives

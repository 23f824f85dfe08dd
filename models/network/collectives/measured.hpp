#pragma once
// A collective's time from the cluster's own measured table, where it has one. It is preferred to
// the cost models, which are for clusters that were not measured.

#include <optional>
#include <string>

#include "models/network/collectives/collective.hpp"

namespace orrery::models::collectives {

struct CostCall;

/// From a table for n ranks, at size s:
///   t(s)
/// or, where there is none for n, from one for m ranks:
///   t = t_m(0) * steps(n) / steps(m) + (t_m(s) - t_m(0)) * factor(n) / factor(m)
/// t_m(0)  latency: the time of the table's smallest size
/// steps   2(n-1) all-reduce, n-1 others, 1 for a message; factor: bus_factor of the operation
/// A table measured inside a node is used only for groups inside a node, likewise across nodes. The
/// time beyond the latency is the time on the links; across nodes it is divided by the share of the
/// NICs that siblings leave (network_share). Leaves out siblings inside a node.
std::optional<CollectiveTime> measured_time(const CostCall& call);

}  // namespace orrery::models::collectives

namespace orrery::models {

/// The cluster's table that prices this collective for such a group; null if there is none.
const hardware::CollectiveTable* table_of(Collective collective, const GroupShape& group,
                                          const hardware::Cluster& cluster);

/// A note for the user where the table does not cover the question: it is for another number of
/// ranks, or the size is outside it. Nothing where it does, or where there is no table.
std::optional<std::string> table_note(Collective collective, Bytes size, const GroupShape& group,
                                      const hardware::Cluster& cluster);

}  // namespace orrery::models

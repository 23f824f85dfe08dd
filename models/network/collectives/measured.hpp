#pragma once
// A collective's time from the cluster's own table, where it has one: preferred to the cost models,
// which are made for GPUs that were not measured.

#include <optional>
#include <string>

#include "models/network/collectives/collective.hpp"

namespace orrery::models::collectives {

struct CostCall;

/// Of a table for n ranks, at size s:
///   t(s)
/// and of one for m ranks, where there is none for n:
///   t = t_m(0) * steps(n) / steps(m) + (t_m(s) - t_m(0)) * factor(n) / factor(m)
/// t_m(0)  time of its smallest size
/// steps   2(n-1) all-reduce, n-1 others, 1 for a message; factor: bus_factor of the operation
/// Tables of groups inside a node serve those only, and likewise across nodes. What exceeds the
/// latency across nodes grows with the share that siblings leave of the NICs (network_share).
/// Leaves out siblings inside a node.
/// What exceeds the latency is the time on the links.
std::optional<CollectiveTime> measured_time(const CostCall& call);

}  // namespace orrery::models::collectives

namespace orrery::models {

/// The cluster's table that prices this collective of such a group; null: none does.
const hardware::CollectiveTable* table_of(Collective collective, const GroupShape& group,
                                          const hardware::Cluster& cluster);

/// What a user must know about the table that would price this: of other ranks, or left by the
/// size. Nothing where a table has just that, or where none is used.
std::optional<std::string> table_note(Collective collective, Bytes size, const GroupShape& group,
                                      const hardware::Cluster& cluster);

}  // namespace orrery::models

#pragma once
// A collective's time from the cluster's own measured tables, where it has one. They are preferred
// to the cost models, which are for clusters that were not measured, but never beat the wire.

#include <optional>
#include <string>

#include "models/network/collectives/terms.hpp"

namespace orrery::models {
namespace collectives {

/// From a table of the group's shape, at size s:
///   t(s)
/// or, where there is none, from one of another shape:
///   t = t_m(0) * L(n) / L(m) + (t_m(s) - t_m(0)) * F(n) / F(m)
/// t_m(0)  latency: the time of the table's smallest size
/// inside a node
///   L     steps: 2(n-1) all-reduce, n-1 others, 1 for a message
///   F     bus_factor over the bus bandwidth of a ring or, where it reduces, of the switch
/// across nodes, by the cost model, which knows the NICs that ranks of a node use
///   L     time of one byte
///   F     time on links of a large message, which siblings and leaf switches may slow
/// Never less than wire_bound. A table measured inside a node is used only for groups inside a
/// node, likewise across nodes; of several the nearest one by ranks per node, then by ranks.
/// Leaves out siblings inside a node.
std::optional<CollectiveTime> measured_time(const CostCall& call);

/// The nearest table of this operation, as above; null if there is none. A table with more ranks a
/// node than the cluster's nodes have GPUs is not used.
const hardware::CollectiveTable* nearest_table(const CostCall& call, Collective operation);

/// The call on the groups that a table of `operation` was measured on, alone on their nodes: the
/// call's own shape if that has as many ranks and nodes, the two ends of a message otherwise.
CostCall measured_call(const CostCall& call, const hardware::CollectiveTable& table,
                       Collective operation);

/// "64 ranks, 8 a node", or "8 ranks" inside a node.
std::string ranks_text(const GroupShape& group);

/// The fastest candidate of the cost models at another size.
CollectiveTime modelled(const CostCall& call, Bytes size);

/// Large enough that only the rates of links count.
inline constexpr Bytes large_message{std::int64_t{1} << 36};

}  // namespace collectives

/// The cluster's table that prices this collective for such a group, or corrects its cost model
/// (carried.hpp); null if there is none.
const hardware::CollectiveTable* table_of(Collective collective, const GroupShape& group,
                                          const hardware::Cluster& cluster);

/// A note for the user where the tables do not cover the question: the nearest is of another shape
/// or operation, is faster than the wire, or lacks the size. Nothing where they do, or where there
/// is no table.
std::optional<std::string> table_note(Collective collective, Bytes size, const GroupShape& group,
                                      const hardware::Cluster& cluster);

}  // namespace orrery::models

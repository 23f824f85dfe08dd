#pragma once
// Where the groups of a communicator sit on the nodes of a cluster: ranks fill nodes in order.

#include "models/network/collectives/group.hpp"
#include "models/program/mesh.hpp"

namespace orrery::models {

/// Where the members of a communicator sit, and with whom they share NICs: the worst group of
/// those that run at once. Along the pipeline axis alone it is a pair of neighbours, or of the two
/// stages that it names.
GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, int gpus_per_node);
/// Of those that take part in one operation: a message round a group of several is between
/// neighbours, all of which send at once.
GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, Collective operation,
                    int gpus_per_node);

}  // namespace orrery::models

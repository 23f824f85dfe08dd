#pragma once
// The shape of a communicator's group: how many nodes it spans and with how many sibling groups it
// shares their NICs. Ranks fill nodes in order, and the plan's axes are laid out fastest first
// (Megatron: tensor, context, data, pipeline). Leaves out scattered placements by a scheduler.

namespace orrery::models {

/// The worst placed group of one axis, whose groups all run at once.
struct GroupShape {
  int ranks = 1;
  int nodes = 1;
  int ranks_per_node = 1;   // on the node with the fewest, which limits the NICs that it can use
  int groups_per_node = 1;  // groups (itself included) that use one node's NICs at once
  int node_stride = 1;      // nodes from one of its nodes to the next: 1 when contiguous

  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

/// One axis of a mesh, or several adjacent ones taken together: a group holds the `extent` ranks
/// first, first + stride, ... of a world of ranks that fill nodes of `gpus_per_node`.
///   stride  product of the faster axes' degrees
///   extent  the axis' degree, or the product of adjacent degrees
struct Axis {
  int stride = 1;
  int extent = 1;
  int world = 1;
  int gpus_per_node = 1;
};

/// The shape of an axis' groups. Where they differ (degrees that do not divide a node) the worst
/// of each field is taken: most nodes, then fewest ranks on a node, most siblings, longest stride.
/// Groups inside one node also have `groups_per_node` set, but share no NIC.
/// Errors  a count below 1, or world not a multiple of stride * extent: ContractError
GroupShape shape_of(const Axis& axis);

/// The shape of a pair of neighbours along an axis (pipeline stages), for `send_receive`: the worst
/// pair; its siblings are the ranks of one node that send to another node at the same time.
/// Errors  as shape_of
GroupShape neighbours_of(const Axis& axis);

}  // namespace orrery::models

#pragma once
// Names in a cluster's JSON become what they stand for, so that a JSON pointer is the address of
// every number. In the result each number has one home: the rate of a NIC is /fabric/bandwidth,
// the price is /price_per_gpu_hour, whatever node or offer they came from.

#include "hardware/entries.hpp"

namespace orrery::hardware {

/// The entry that a name or path stands for; of an object with `"like": NAME`, that entry with the
/// object's members laid over it (what it changes and gives no source for is "given"); of any
/// other object, itself. A GPU that is like another but has its own name leaves the other's curves
/// to be fallback curves, so that they are reported.
/// Errors  an unknown name: `place: unknown GPU 'x'; known: ...`
Json resolved(const Node& value, EntryKind kind);

/// A whole node: its GPU, NIC and scale-up network resolved.
/// assumptions  gains one sentence for each default filled in
Json expand_node(const Node& node, Json& assumptions);

}  // namespace orrery::hardware

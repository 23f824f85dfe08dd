#pragma once
// Replaces the names in a cluster's JSON by their entries, so that every number has a JSON pointer.
// In the result each number has one place: the rate of a NIC is /fabric/bandwidth, the price is
// /price_per_gpu_hour, whatever node or offer they came from.

#include "hardware/entries.hpp"

namespace orrery::hardware {

/// Resolves a name or path to its entry; an object with `"like": NAME` to that entry with the
/// object's members in place of its own (a number changed without a source gets the source
/// "given"); any other object to itself. A GPU that is `like` another but has its own name gets the
/// other's curves only as fallback curves, so that they are reported.
/// Errors  an unknown name: `place: unknown GPU 'x'; known: ...`
Json resolved(const Node& value, EntryKind kind);

/// Where the member of an expanded cluster at `pointer` ("/node/nic_bandwidth") has its place:
/// "/fabric/bandwidth"; members that do not move have their own. Replacing a member there has the
/// effect that stating it in the file would have had.
std::string_view place_in_expanded(std::string_view pointer);
/// Before another latency class is set in an expanded fabric: removes the constants of its class.
/// What the fabric states differently stays.
void drop_latency_class(Json& fabric);

/// Resolves a node with its GPU, NIC and scale-up network.
/// assumptions  gains one sentence for each default filled in
Json expand_node(const Node& node, Json& assumptions);

}  // namespace orrery::hardware

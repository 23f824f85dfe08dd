#pragma once
// An entry of one's own: wherever a cluster's JSON takes a name of the catalogue, it takes the path
// of a file of the same form, from the folder of the file that names it. A node may be NCCL's
// topology XML or the table of `nvidia-smi topo -m`.

#include <optional>

#include "sim/input/document.hpp"

namespace orrery::hardware {

/// The document at the path that a text names, its own paths made to hold from anywhere; nothing if
/// it names no path (one ends in `.json` or `.xml`, or has a slash).
/// Errors  unreadable, no object: InputError
std::optional<Document> own_file(const Node& name);

}  // namespace orrery::hardware

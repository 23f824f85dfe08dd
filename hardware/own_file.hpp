#pragma once
// The user's own entries: wherever a cluster's JSON accepts a name of the catalogue, it accepts the
// path of a file of the same form, relative to the folder of the file that names it. A node may be
// NCCL's topology XML or the table of `nvidia-smi topo -m`.

#include <optional>

#include "sim/input/document.hpp"

namespace orrery::hardware {

/// The document at the path `name`, with the paths inside it resolved; nothing if `name` is not a
/// path (a path ends in `.json` or `.xml`, or has a slash).
/// Errors  unreadable, not an object: InputError
std::optional<Document> own_file(const Node& name);

}  // namespace orrery::hardware

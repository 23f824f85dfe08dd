#pragma once
// Raw entries of the catalogue, by kind and by name or alias; names inside them are not expanded.
// Each is a file of its kind's folder, or a member of its kind's table. Read once from the embedded
// files and never changed.

#include <string>
#include <string_view>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::hardware {

enum class EntryKind : std::uint8_t {
  gpu,
  generation,
  node,
  scale_up,
  nic,
  network_switch,
  fabric,
  latency_class,
  cluster,
  site,
  offer
};

/// The entry of that name or alias; null if there is none.
const Json* find_entry(EntryKind kind, std::string_view name);

/// The same as a place that errors name.
/// Errors  `unknown GPU 'x'; known: ...`
Node entry_node(EntryKind kind, std::string_view name);

/// Names (not aliases) of a kind, sorted.
std::vector<std::string> entry_names(EntryKind kind);

/// `unknown GPU 'x'; known: a100-sxm-40gb a100-sxm-80gb ...`
std::string unknown_entry(EntryKind kind, std::string_view name);

}  // namespace orrery::hardware

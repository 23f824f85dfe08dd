#pragma once
// The catalogue as it was written: one shelf per kind of thing, entries by name or alias, names
// inside them not yet expanded. Read once from the embedded files and never changed.

#include <string>
#include <string_view>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::hardware {

enum class Shelf : std::uint8_t {
  gpu,
  node,
  scale_up,
  nic,
  network_switch,
  fabric,
  latency_class,
  cluster,
  offer
};

/// The entry of that name or alias; null if there is none.
const Json* find_entry(Shelf shelf, std::string_view name);

/// Names (not aliases) on a shelf, sorted.
std::vector<std::string> entry_names(Shelf shelf);

/// `unknown GPU 'x'; known: a100-sxm-40gb a100-sxm-80gb ...`
std::string unknown_entry(Shelf shelf, std::string_view name);

}  // namespace orrery::hardware

#pragma once
// The part of a report page that lays a measured step next to a predicted one.

#include <string>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Of what `orrery compare SCENARIO TRACE... --json` prints: both steps by class, the changes that
/// would explain the difference, collectives, GEMMs and kernels.
/// Errors  a document that lacks a member: InputError
std::string run_section(const Node& root);

/// Of what `orrery compare PREDICTED.json MEASURED.json --json` prints.
/// Errors  as above
std::string traces_section(const Node& root);

}  // namespace orrery::scenarios

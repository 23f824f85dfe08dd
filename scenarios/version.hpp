#pragma once
// What an answer was made with. The version is also CMakeLists.txt's
// (tests/python/test_package.py).

#include <string>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

inline constexpr const char* version_number = "0.1.0";

/// A hash of all data that are built in: GPUs, nodes, models, profiles, tables.
const std::string& catalogue_hash();

/// `{version, commit, catalogue}`: the commit is that of the sources when the build was configured,
/// null where git did not tell.
Json made_with();

}  // namespace orrery::scenarios

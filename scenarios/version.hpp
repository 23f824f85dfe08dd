#pragma once
// What an answer was made with. The version is also CMakeLists.txt's
// (tests/python/test_package.py).

#include <string>
#include <string_view>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

inline constexpr const char* version_number = "0.1.0";

/// A hash of all data that are built in: GPUs, nodes, models, profiles, tables.
const std::string& catalogue_hash();

/// That of the sources when the build was configured; empty where git did not tell.
std::string_view commit();

/// `{version, commit, catalogue}`, the commit null where there is none.
Json made_with();

}  // namespace orrery::scenarios

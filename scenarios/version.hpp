#pragma once
// The version of this program; CMakeLists.txt says the same (tests/python/test_package.py).

namespace orrery::scenarios {

inline constexpr const char* version_number = "0.1.0";

}  // namespace orrery::scenarios

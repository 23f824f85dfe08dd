#pragma once
// Under sanitizers everything takes some twenty times as long: random programs are a tenth as many
// there, and cases tagged [heavy] are left to the quick build.

#include <cstdint>

namespace orrery {

#ifdef ORRERY_SLOW_BUILD
inline constexpr bool slow_build = true;
#else
inline constexpr bool slow_build = false;
#endif

constexpr std::uint64_t thinned(std::uint64_t programs) {
  return slow_build ? programs / 10 : programs;
}

}  // namespace orrery

#pragma once
// Quantities as people write them: "450 GB/s", "800 Gb/s", "3.5 us", "80 GiB", "$2.50/h".
// A number without its unit is refused; Gb/s is bits, GB is 10^9 bytes, GiB is 2^30.

#include <optional>
#include <string>
#include <string_view>

#include "sim/quantity.hpp"

namespace orrery {

inline constexpr double seconds_per_day = 86'400;

/// What a text of this quantity looks like, for error messages: `a rate such as "450 GB/s"`.
template <class Q>
std::string_view expected_form();

/// The quantity that `text` spells, nothing if it spells none (no unit, wrong unit, not finite,
/// negative, a rate below one per second, or beyond what the type can hold). Blank space around
/// number and unit is allowed; whole counts are rounded to the nearest. "µs", "Gbps" and "TFLOPS"
/// are understood too.
template <class Q>
std::optional<Q> parse_quantity(std::string_view text);

// Specialised for Time, Bytes, Flops, Bandwidth, FlopRate, Power, Energy, Money, Price, Frequency.

/// For people: three or four significant digits and the fitting unit ("2.34 s", "450 GB/s").
std::string format(Time);
std::string format(Bytes);  // GiB, as tools print memory
std::string format(Flops);
std::string format(Bandwidth);
std::string format(FlopRate);
std::string format(Power);
std::string format(Energy);
std::string format(Money);
std::string format(Price);
std::string format(Frequency);

}  // namespace orrery

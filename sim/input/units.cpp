#include "sim/input/units.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "sim/input/text.hpp"

namespace orrery {
namespace {

struct UnitWord {
  std::string_view symbol;
  double factor;  // in the base unit of the quantity
};

/// How one quantity is written: the example of error messages and all accepted units.
struct Form {
  std::string_view expected;
  std::span<const UnitWord> units;
  double least = 0;  // below it the text is refused
};

constexpr UnitWord time_units[] = {
    {"ps", 1},          {"ns", 1e3},     {"us", 1e6},       {"\u00B5s", 1e6},  {"\u03BCs", 1e6},
    {"ms", 1e9},        {"s", 1e12},     {"min", 60e12},    {"h", 3600e12},    {"hour", 3600e12},
    {"hours", 3600e12}, {"d", 86400e12}, {"day", 86400e12}, {"days", 86400e12}};
constexpr UnitWord byte_units[] = {{"B", 1},        {"kB", 1e3},     {"KB", 1e3},
                                   {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
                                   {"PB", 1e15},    {"KiB", 0x1p10}, {"MiB", 0x1p20},
                                   {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}};
constexpr UnitWord flop_units[] = {{"FLOP", 1},     {"kFLOP", 1e3},  {"MFLOP", 1e6}, {"GFLOP", 1e9},
                                   {"TFLOP", 1e12}, {"PFLOP", 1e15}, {"EFLOP", 1e18}};
constexpr UnitWord bandwidth_units[] = {
    {"B/s", 1},          {"kB/s", 1e3},       {"KB/s", 1e3},       {"MB/s", 1e6},
    {"GB/s", 1e9},       {"TB/s", 1e12},      {"PB/s", 1e15},      {"KiB/s", 0x1p10},
    {"MiB/s", 0x1p20},   {"GiB/s", 0x1p30},   {"TiB/s", 0x1p40},   {"b/s", 1 / 8.0},
    {"kb/s", 1e3 / 8},   {"Mb/s", 1e6 / 8},   {"Gb/s", 1e9 / 8},   {"Tb/s", 1e12 / 8},
    {"kbit/s", 1e3 / 8}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8},
    {"Mbps", 1e6 / 8},   {"Gbps", 1e9 / 8},   {"Tbps", 1e12 / 8},  {"MBps", 1e6},
    {"GBps", 1e9},       {"TBps", 1e12}};
constexpr UnitWord flop_rate_units[] = {
    {"FLOP/s", 1},     {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15},
    {"EFLOP/s", 1e18}, {"GFLOPS", 1e9},  {"TFLOPS", 1e12}, {"PFLOPS", 1e15},  {"EFLOPS", 1e18}};
constexpr UnitWord power_units[] = {{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}, {"MW", 1e6}, {"GW", 1e9}};
constexpr UnitWord energy_units[] = {{"J", 1},        {"kJ", 1e3},    {"MJ", 1e6},
                                     {"GJ", 1e9},     {"Wh", 3600},   {"kWh", 3600e3},
                                     {"MWh", 3600e6}, {"GWh", 3600e9}};
constexpr UnitWord money_units[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"B", 1e9}};
constexpr UnitWord price_units[] = {{"/h", 1}, {"/hour", 1}};
constexpr UnitWord frequency_units[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};

template <class Q>
constexpr bool in_dollars = std::is_same_v<Q, Money> || std::is_same_v<Q, Price>;

/// How Q is written. A rate below one per second is refused: no link or processor is that slow, and
/// dividing by it overflows Time.
template <class Q>
Form form() {
  if constexpr (std::is_same_v<Q, Time>) return {R"(a time such as "3.5 us")", time_units};
  if constexpr (std::is_same_v<Q, Bytes>) return {R"(a size such as "80 GiB")", byte_units};
  if constexpr (std::is_same_v<Q, Flops>) return {R"(work such as "312 TFLOP")", flop_units};
  if constexpr (std::is_same_v<Q, Bandwidth>) {
    return {R"(a rate such as "450 GB/s")", bandwidth_units, 1};
  }
  if constexpr (std::is_same_v<Q, FlopRate>) {
    return {R"(a rate such as "312 TFLOP/s")", flop_rate_units, 1};
  }
  if constexpr (std::is_same_v<Q, Power>) return {R"(a power such as "700 W")", power_units};
  if constexpr (std::is_same_v<Q, Energy>) return {R"(an energy such as "3 kWh")", energy_units};
  if constexpr (std::is_same_v<Q, Money>) return {R"(an amount such as "$3")", money_units};
  if constexpr (std::is_same_v<Q, Price>) return {R"(a price such as "$2.50/h")", price_units};
  if constexpr (std::is_same_v<Q, Frequency>) {
    return {R"(a frequency such as "1.4 GHz")", frequency_units};
  }
}

/// `value` as Rep, nothing where it does not fit. Whole counts are rounded to the nearest.
template <class Rep>
std::optional<Rep> fitting(long double value) {
  if constexpr (std::is_integral_v<Rep>) {
    const long double nearest_count = std::round(value);
    if (!(nearest_count < 0x1p63L)) return std::nullopt;
    return static_cast<Rep>(nearest_count);
  } else {
    if (!(value <= static_cast<long double>(std::numeric_limits<Rep>::max()))) return std::nullopt;
    return static_cast<Rep>(value);
  }
}

/// A number formatted for people: at least three significant digits, without trailing zeros.
std::string digits(double value) {
  const double size = std::abs(value);
  if (size > 0 && size < 0.9995) return fmt::format("{:.3g}", value);
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

/// Formats in the largest unit in which the value is at least 1; `units` go from small to large.
std::string in_fitting_unit(double value, std::span<const UnitWord> units) {
  if (!std::isfinite(value)) return fmt::format("{} {}", value, units.front().symbol);
  constexpr double rounds_to_one = 0.9995;
  const UnitWord* best = &units.front();
  for (const UnitWord& unit : units) {
    if (std::abs(value) >= rounds_to_one * unit.factor) best = &unit;
  }
  return digits(value / best->factor) + " " + std::string{best->symbol};
}

/// $0.00123, $12.34, $1,234,567.
std::string dollars(double value) {
  if (!std::isfinite(value)) return fmt::format("${}", value);
  const std::string sign = value < 0 ? "-$" : "$";
  const double size = std::abs(value);
  if (size > 0 && size < 0.01) return sign + fmt::format("{:.3g}", size);
  if (size < 999.995) return sign + fmt::format("{:.2f}", size);
  std::string text = fmt::format("{:.0f}", size);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return sign + text;
}

}  // namespace

template <class Q>
std::string_view expected_form() {
  return form<Q>().expected;
}

template <class Q>
std::optional<Q> parse_quantity(std::string_view text) {
  text = trimmed(text);
  if constexpr (in_dollars<Q>) {
    if (text.empty() || text.front() != '$') return std::nullopt;
    text = trimmed(text.substr(1));
  }
  // Refuses a sign, and the names of infinity, on which libstdc++ 12 reads beyond the end.
  if (text.find_first_of("0123456789.") != 0) return std::nullopt;
  // The 64-bit mantissa keeps decimal fractions of every integer quantity exact after rounding.
  long double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc{} || !std::isfinite(number)) return std::nullopt;
  const std::string_view symbol = trimmed({rest, static_cast<std::size_t>(end - rest)});
  const Form known = form<Q>();
  for (const UnitWord& unit : known.units) {
    if (unit.symbol != symbol) continue;
    const long double value = number * static_cast<long double>(unit.factor);
    if (value < static_cast<long double>(known.least)) return std::nullopt;
    const auto count = fitting<typename Q::rep>(value);
    return count ? std::optional<Q>{Q{*count}} : std::nullopt;
  }
  return std::nullopt;
}

template std::string_view expected_form<Time>();
template std::string_view expected_form<Bytes>();
template std::string_view expected_form<Flops>();
template std::string_view expected_form<Bandwidth>();
template std::string_view expected_form<FlopRate>();
template std::string_view expected_form<Power>();
template std::string_view expected_form<Energy>();
template std::string_view expected_form<Money>();
template std::string_view expected_form<Price>();
template std::string_view expected_form<Frequency>();
template std::optional<Time> parse_quantity<Time>(std::string_view);
template std::optional<Bytes> parse_quantity<Bytes>(std::string_view);
template std::optional<Flops> parse_quantity<Flops>(std::string_view);
template std::optional<Bandwidth> parse_quantity<Bandwidth>(std::string_view);
template std::optional<FlopRate> parse_quantity<FlopRate>(std::string_view);
template std::optional<Power> parse_quantity<Power>(std::string_view);
template std::optional<Energy> parse_quantity<Energy>(std::string_view);
template std::optional<Money> parse_quantity<Money>(std::string_view);
template std::optional<Price> parse_quantity<Price>(std::string_view);
template std::optional<Frequency> parse_quantity<Frequency>(std::string_view);

std::string format(Time time) {
  constexpr UnitWord units[] = {{"ps", 1},   {"ns", 1e3},    {"us", 1e6},    {"ms", 1e9},
                                {"s", 1e12}, {"min", 60e12}, {"h", 3600e12}, {"d", 86400e12}};
  return in_fitting_unit(static_cast<double>(time.count()), units);
}

std::string format(Bytes size) {
  constexpr UnitWord units[] = {{"B", 1},        {"KiB", 0x1p10}, {"MiB", 0x1p20},
                                {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}};
  return in_fitting_unit(static_cast<double>(size.count()), units);
}

std::string format(Flops work) {
  return in_fitting_unit(static_cast<double>(work.count()), flop_units);
}

std::string format(Bandwidth rate) {
  constexpr UnitWord units[] = {{"B/s", 1},    {"kB/s", 1e3},  {"MB/s", 1e6},
                                {"GB/s", 1e9}, {"TB/s", 1e12}, {"PB/s", 1e15}};
  return in_fitting_unit(rate.count(), units);
}

std::string format(FlopRate rate) {
  constexpr UnitWord units[] = {{"FLOP/s", 1},     {"MFLOP/s", 1e6},  {"GFLOP/s", 1e9},
                                {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"EFLOP/s", 1e18}};
  return in_fitting_unit(rate.count(), units);
}

std::string format(Power power) {
  return in_fitting_unit(power.count(), power_units);
}

std::string format(Energy energy) {
  constexpr UnitWord units[] = {
      {"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}, {"MWh", 3600e6}, {"GWh", 3600e9}};
  return in_fitting_unit(energy.count(), units);
}

std::string format(Money amount) {
  return dollars(amount.count());
}
std::string format(Price price) {
  return dollars(price.count()) + "/h";
}
std::string format(Frequency rate) {
  return in_fitting_unit(rate.count(), frequency_units);
}

}  // namespace orrery

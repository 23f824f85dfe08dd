#include "scenarios/validation/page/network_text.hpp"

#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace orrery::scenarios {

namespace {

std::string lower_case(std::string_view text) {
  std::string lower{text};
  for (char& each : lower) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return lower;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The NIC count of "8x NAME 400gb/s": the last "8x" before the rate, in the same clause.
int count_before(std::string_view clause, std::size_t rate_at) {
  for (std::size_t i = rate_at; i-- > 1;) {
    if (clause[i] == ',' || clause[i] == '+' || clause[i] == ';') break;
    if (clause[i] != 'x' || !is_digit(clause[i - 1])) continue;
    std::size_t first = i - 1;
    while (first > 0 && is_digit(clause[first - 1])) --first;
    return std::atoi(std::string{clause.substr(first, i - first)}.c_str());
  }
  return 0;
}

/// A rate in gigabits per second: where its number begins and its unit ends in the text.
struct Rate {
  std::size_t begin = 0, end = 0;
  double gigabits = 0;
};

std::optional<Rate> next_rate(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (!is_digit(text[i]) || (i > 0 && (is_digit(text[i - 1]) || text[i - 1] == '.'))) continue;
    std::size_t end = i;
    while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
    std::size_t unit = end;
    while (unit < text.size() && text[unit] == ' ') ++unit;
    const std::string_view rest = text.substr(unit);
    const bool gigabits =
        rest.rfind("gb/s", 0) == 0 || rest.rfind("gbps", 0) == 0 || rest.rfind("gbe", 0) == 0;
    if (gigabits) return Rate{i, unit + 4, std::atof(std::string{text.substr(i, end - i)}.c_str())};
  }
  return std::nullopt;
}

/// Whether the unit is GB/s: only the capital B distinguishes bytes from bits.
bool in_bytes(std::string_view original, const Rate& rate) {
  return original.substr(rate.begin, rate.end - rate.begin).find("GB/") != std::string_view::npos;
}

}  // namespace

std::string latency_class_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> words{{
      {"efa", "efa"},
      {"omni-path", "omni-path"},
      {"slingshot", "slingshot"},
      {"roce", "roce"},
      {"infiniband", "infiniband"},
      {"ib ndr", "infiniband"},
      {"hdr", "infiniband"},
      {"ndr", "infiniband"},
      {"ethernet", "ethernet"},
  }};
  const std::string lower = lower_case(text);
  for (const auto& [word, known_as] : words) {
    if (lower.find(word) != std::string::npos) return std::string{known_as};
  }
  return {};
}

namespace {

/// "Management: ... 100Gb/s, Compute: 8x ConnectX-7 Infini": a list of a system's networks that was
/// cut before the rate of the one that ranks use, which its NICs tell.
/// Source  NVIDIA's data sheets: ConnectX-6 200, ConnectX-7 400 Gb/s a port
std::optional<NetworkText> network_of_nics(const std::string& lower) {
  const std::size_t compute = lower.find("compute:");
  if (compute == std::string::npos || next_rate(lower, compute)) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, double>, 2> nics{
      {{"connectx-7", 400}, {"connectx-6", 200}}};
  for (const auto& [name, gigabits] : nics) {
    const std::size_t at = lower.find(name, compute);
    const int count = at == std::string::npos ? 0 : count_before(lower, at);
    if (count == 0) continue;
    const bool infiniband = lower.find("infini", compute) != std::string::npos;
    return NetworkText{.nics = count,
                       .gigabits = gigabits,
                       .latency_class = infiniband ? "infiniband" : latency_class_of(lower)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<NetworkText> read_network(std::string_view text, int gpus_per_node) {
  const std::string lower = lower_case(text);
  if (const auto cut = network_of_nics(lower)) return cut;
  NetworkText best;
  for (std::size_t from = 0;;) {
    const auto rate = next_rate(lower, from);
    if (!rate) break;
    from = rate->end;
    if (in_bytes(text, *rate)) continue;
    NetworkText found{.nics = count_before(lower, rate->begin),
                      .gigabits = rate->gigabits,
                      .latency_class = latency_class_of(text)};
    if (found.nics == 0) {
      const std::string_view unit = std::string_view{lower}.substr(rate->end, 9);
      found.nics = gpus_per_node;
      if (unit.find("per node") != std::string_view::npos) found.gigabits /= gpus_per_node;
      const bool per_something = unit.find("per ") != std::string_view::npos;
      if (!per_something) found.nics = 1;
    }
    if (found.nics * found.gigabits > best.nics * best.gigabits) best = found;
  }
  if (best.gigabits <= 0) return std::nullopt;
  return best;
}

}  // namespace orrery::scenarios

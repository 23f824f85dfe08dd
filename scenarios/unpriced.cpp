#include "scenarios/unpriced.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace orrery::scenarios {

namespace {

constexpr std::array<UnpricedPointer, 3> unpriced{{
    {"/cluster/fabric/latency",
     "collectives across nodes take what /cluster/fabric/network says of each hop"},
    {"/cluster/fabric/levels", "the network above the leaf switches is not simulated"},
    {"/cluster/fabric/kind", "the network above the leaf switches is not simulated"},
}};

/// The first step of a pointer that begins with '/', which is removed from it.
std::string_view take_step(std::string_view& pointer) {
  pointer.remove_prefix(1);
  const std::size_t end = std::min(pointer.find('/'), pointer.size());
  const std::string_view step = pointer.substr(0, end);
  pointer.remove_prefix(end);
  return step;
}

bool matches(std::string_view pattern, std::string_view pointer) {
  while (!pattern.empty() && !pointer.empty()) {
    const std::string_view wanted = take_step(pattern);
    if (wanted == "**") return true;
    if (take_step(pointer) != wanted && wanted != "*") return false;
  }
  return pattern.empty() && pointer.empty();
}

void collect(const Json& value, const std::string& pointer, Json& found) {
  if (value.is_structured()) {
    for (const auto& [key, each] : value.items()) collect(each, pointer + "/" + key, found);
  } else if (const auto reason = why_unpriced(pointer)) {
    found[pointer] = *reason;
  }
}

}  // namespace

std::span<const UnpricedPointer> unpriced_pointers() {
  return unpriced;
}

std::optional<std::string_view> why_unpriced(std::string_view pointer) {
  for (const UnpricedPointer& each : unpriced) {
    if (matches(each.pattern, pointer)) return each.reason;
  }
  return std::nullopt;
}

Json unpriced_in(const Json& scenario) {
  Json found = Json::object();
  collect(scenario, "", found);
  return found;
}

}  // namespace orrery::scenarios

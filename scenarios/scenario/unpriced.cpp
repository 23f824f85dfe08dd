#include "scenarios/scenario/unpriced.hpp"

#include <algorithm>
#include <string>

namespace orrery::scenarios {

namespace {

constexpr std::string_view of_curve = "states what a curve was measured on; used only for notes";
constexpr std::string_view inside_node =
    "used only by show topology; messages inside a node are not routed";
constexpr std::string_view of_stack =
    "states which runs the profile is for; used by validation and searches";
constexpr std::string_view of_purchase = "purchases are not priced; clusters are rented";

constexpr UnpricedPointer unpriced[] = {
    {"/cluster/fabric/switch/purchase_price", of_purchase},
    {"/cluster/node/purchase_price", of_purchase},
    {"/cluster/node/cables/**", inside_node},
    {"/cluster/node/gpu/host_link", "used only by plans that offload"},
    {"/cluster/node/gpu/least_power_limit", "refuses a power_limit below it"},
    {"/cluster/node/host_memory", "limits only plans that offload"},
    {"/cluster/node/host_memory_bandwidth", "used only by plans that offload the optimizer"},
    {"/cluster/node/host_adam", "used only by plans that offload the optimizer"},
    {"/cluster/storage/*",
     "used only by plans that offload to nvme, a scenario's data and orrery train"},
    {"/cluster/node/gpu/attention/*/measured/rows", of_curve},
    {"/cluster/node/gpu/gemm/*/measured/rows", of_curve},
    {"/software/defaults/vocab", "states what published runs leave open; used by validation"},
    {"/software/runs/**", of_stack},
    {"/software/stands_for/**", of_stack},
    {"/software/uncertainty/rows", of_curve},
};

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

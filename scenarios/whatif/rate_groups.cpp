#include "scenarios/whatif/rate_groups.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace orrery::scenarios {

namespace {

struct RateRow {
  std::string_view pointer;  // ends with '/': all that is below it, where it is there already
  RateGroup group;
};

constexpr RateRow rate_rows[] = {
    {"/cluster/fabric/bandwidth", RateGroup::fabric},
    {"/cluster/fabric/latency", RateGroup::fabric},
    {"/cluster/fabric/hop_latency", RateGroup::fabric},
    {"/cluster/fabric/efficiency", RateGroup::fabric},
    {"/cluster/fabric/gather_efficiency", RateGroup::fabric},
    {"/cluster/fabric/network", RateGroup::fabric},
    {"/cluster/fabric/half_size", RateGroup::fabric},
    {"/cluster/fabric/half_size_growth", RateGroup::fabric},
    {"/cluster/fabric/growth", RateGroup::fabric},
    {"/cluster/fabric/oversubscription", RateGroup::fabric},
    {"/cluster/node/scale_up/bandwidth", RateGroup::node},
    {"/cluster/node/scale_up/base", RateGroup::node},
    {"/cluster/node/scale_up/step", RateGroup::node},
    {"/cluster/node/scale_up/ring_share", RateGroup::node},
    {"/cluster/node/scale_up/switch_share", RateGroup::node},
    {"/cluster/node/host_power", RateGroup::node},
    {"/cluster/node/gpu/memory", RateGroup::node},
    {"/cluster/node/gpu/memory_bandwidth", RateGroup::node},
    {"/cluster/node/gpu/board_power", RateGroup::node},
    {"/cluster/node/gpu/power_limit", RateGroup::node},
    {"/cluster/node/gpu/sustained_share", RateGroup::node},
    {"/cluster/node/gpu/dense_peak/", RateGroup::node},
    {"/cluster/node/gpu/gemm/", RateGroup::node},
    {"/cluster/node/gpu/memory_bound/", RateGroup::node},
    {"/cluster/site/tensor", RateGroup::site},
    {"/cluster/site/network", RateGroup::site},
    {"/cluster/site/jitter", RateGroup::site},
    {"/cluster/site/step", RateGroup::site},
    {"/cluster/site/clock", RateGroup::site},
    {"/cluster/price_per_gpu_hour", RateGroup::price},
};

constexpr std::string_view cluster_head = "/cluster";

/// Whether the cluster has a number or a text at a pointer of the scenario.
bool has_scalar_at(const Json& cluster, std::string_view pointer) {
  const Json::json_pointer inside{std::string{pointer.substr(cluster_head.size())}};
  if (!cluster.contains(inside)) return false;
  const Json& value = cluster.at(inside);
  return value.is_string() || value.is_number();
}

}  // namespace

std::optional<RateGroup> rate_group(std::string_view pointer, const Json& cluster) {
  for (const RateRow& row : rate_rows) {
    const bool below = row.pointer.back() == '/' && pointer.starts_with(row.pointer) &&
                       pointer.find('~') == std::string_view::npos &&
                       has_scalar_at(cluster, pointer);
    if (pointer == row.pointer || below) return row.group;
  }
  return std::nullopt;
}

void take_rates(RateGroup group, const hardware::Cluster& from, hardware::Cluster& to) {
  switch (group) {
    case RateGroup::fabric:
      to.fabric = from.fabric;
      to.collectives.network = from.collectives.network;
      to.collectives.half_size = from.collectives.half_size;
      to.collectives.half_size_growth = from.collectives.half_size_growth;
      to.collectives.growth = from.collectives.growth;
      return;
    case RateGroup::node:
      to.node = from.node;
      to.collectives.base = from.collectives.base;
      to.collectives.step = from.collectives.step;
      to.collectives.ring_rate = from.collectives.ring_rate;
      to.collectives.group_rates = from.collectives.group_rates;
      to.collectives.switch_rate = from.collectives.switch_rate;
      return;
    case RateGroup::site:
      to.site = from.site;
      return;
    case RateGroup::price:
      to.price_per_gpu_hour = from.price_per_gpu_hour;
      return;
  }
}

bool rates_are_apart(const Json& cluster) {
  // An ideal fabric's collectives take their rate_rows from the node; cores of a host are taken by
  // the plan.
  const auto fabric = cluster.find("fabric");
  const bool ideal = fabric != cluster.end() && fabric->is_object() && fabric->contains("ideal");
  const Json::json_pointer kind{"/node/scale_up/kind"};
  return !ideal && cluster.contains(kind) && cluster.at(kind) != "shared_memory";
}

}  // namespace orrery::scenarios

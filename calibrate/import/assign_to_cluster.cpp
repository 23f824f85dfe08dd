#include "calibrate/import/assign_to_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "calibrate/findings.hpp"
#include "hardware/catalogue.hpp"
#include "hardware/cluster/recognise.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

bool in_catalogue(const std::string& gpu) {
  const std::vector<std::string> known = hardware::Catalogue::gpus();
  return std::ranges::find(known, gpu) != known.end();
}

/// A board's name does not always state its memory size, so the cluster's is assumed.
void check_gpu(const hardware::Gpu& own, const std::string& reported, Imported& log) {
  const auto known = hardware::recognised_gpu(reported, own.memory);
  if (!known || !in_catalogue(own.name)) {
    log.notes.push_back(
        fmt::format("measured on {}, assumed to be the cluster's {}", reported, own.name));
    return;
  }
  if (*known == own.name) return;
  throw InputError{log.file, fmt::format("measured on {} ({}), the cluster has {}; accepted: a "
                                         "--cluster of the GPUs that were measured",
                                         reported, *known, own.name)};
}

void check_gpus(const hardware::Gpu& own, Imported& log) {
  std::set<std::string> devices;
  for (const Sample& each : log.samples) {
    // perftest names a NIC, OSU whose memory it used.
    const bool gpu = each.software != "perftest" && each.device != "GPU memory";
    if (gpu && !each.device.empty()) devices.insert(each.device);
  }
  for (const std::string& each : devices) check_gpu(own, each, log);
  const bool collectives = std::ranges::any_of(log.samples, in_collective_table);
  if (devices.empty() && collectives) {
    log.notes.push_back(fmt::format("the log names no GPU; the cluster's {} assumed", own.name));
  }
}

/// Errors  more ranks or nodes than the cluster has: InputError
void check_size(const hardware::Cluster& cluster, const Imported& log) {
  const std::int64_t gpus = cluster.node.gpus;
  std::int64_t ranks = 0, nodes = 0;
  for (const Sample& each : log.samples) {
    if (!in_collective_table(each)) continue;
    ranks = std::max(ranks, *each.ranks);
    nodes = std::max(nodes, each.nodes.value_or(1));
  }
  if (ranks <= cluster.gpus() && nodes <= cluster.nodes) return;
  throw InputError{
      log.file,
      fmt::format("measured on {} ranks{}, the cluster has {} GPUs on {} node{}; accepted: a "
                  "--cluster that was measured, such as '{} x {}'",
                  ranks, nodes > 1 ? fmt::format(" of {} nodes", nodes) : "", cluster.gpus(),
                  cluster.nodes, cluster.nodes > 1 ? "s" : "", cluster.node.name,
                  std::max(nodes, (ranks + gpus - 1) / gpus))};
}

}  // namespace

void assign_to_cluster(const hardware::Cluster& cluster, Imported& log) {
  check_gpus(cluster.gpu(), log);
  check_size(cluster, log);
  const std::int64_t gpus = cluster.node.gpus;
  std::set<std::int64_t> spread;
  for (Sample& each : log.samples) {
    if (!each.ranks || each.nodes || *each.ranks <= gpus) continue;
    each.nodes = (*each.ranks + gpus - 1) / gpus;
    spread.insert(*each.ranks);
  }
  for (const std::int64_t ranks : spread) {
    log.notes.push_back(fmt::format("{} ranks assumed to be on {} nodes of the cluster's {} GPUs",
                                    ranks, (ranks + gpus - 1) / gpus, gpus));
  }
}

}  // namespace orrery::calibrate

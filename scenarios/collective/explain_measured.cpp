#include "scenarios/collective/explain_measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hardware/cluster/recognise.hpp"
#include "models/network/collectives/fitted_line.hpp"
#include "sim/input/text.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

namespace {

using models::Collective;

void check_machine(const MeasuredPoint& point, const hardware::Cluster& cluster, int ranks) {
  const auto gpu = hardware::recognised_gpu(point.device, cluster.gpu().memory);
  if (gpu && *gpu != cluster.gpu().name) {
    throw InputError{point.place, fmt::format("measured on {}, and the cluster has {}",
                                              printable(point.device, 60), cluster.gpu().name)};
  }
  if (point.ranks > 0 && point.ranks != ranks) {
    throw InputError{point.place, fmt::format("measured on {} ranks; expected --ranks {}",
                                              point.ranks, point.ranks)};
  }
}

double steps(Collective kind, int ranks) {
  if (kind == Collective::send_receive) return 1;
  return kind == Collective::all_reduce ? 2.0 * (ranks - 1) : ranks - 1.0;
}

/// Constants of t = x * latency + y / bus: `latency` of a whole all-reduce in seconds, `per_byte` =
/// 1 / bus.
struct Explained {
  double latency = 0, per_byte = 0;

  double time(Collective kind, int ranks, Bytes size) const {
    const double hops = steps(kind, ranks) / steps(Collective::all_reduce, ranks);
    return latency * hops +
           per_byte * models::bus_factor(kind, ranks) * static_cast<double>(size.count());
  }
};

Explained fitted(const std::vector<MeasuredPoint>& points, int ranks) {
  std::vector<hardware::SizeTable::Point> times;
  for (const MeasuredPoint& point : points) times.emplace_back(point.size, point.time);
  const models::FittedLine line = models::fitted_line(times);
  return {line.latency, line.per_byte / models::bus_factor(Collective::all_reduce, ranks)};
}

double median_error(const Explained& constants, Collective kind, int ranks,
                    const std::vector<MeasuredPoint>& points) {
  std::vector<double> errors;
  for (const MeasuredPoint& point : points) {
    errors.push_back(100 *
                     std::abs(constants.time(kind, ranks, point.size) / seconds(point.time) - 1));
  }
  return median(errors);
}

}  // namespace

void explain_measured(const std::vector<MeasuredPoint>& measured, const hardware::Cluster& cluster,
                      CollectiveReport& answer) {
  const int ranks = answer.group.ranks;
  std::map<std::string, std::vector<MeasuredPoint>> by_operation;
  for (const MeasuredPoint& point : measured) {
    if (point.time <= Time{} || point.size <= Bytes{}) continue;
    if (!value_of(models::collective_words, point.operation)) continue;
    check_machine(point, cluster, ranks);
    by_operation[point.operation].push_back(point);
  }
  for (const MeasuredPoint& point : by_operation[std::string{models::name(answer.operation)}]) {
    for (CollectiveRow& row : answer.rows) {
      if (row.size == point.size && !row.measured) row.measured = point.time;
    }
  }
  const auto& reductions = by_operation["all_reduce"];
  if (reductions.size() < 2) return;
  const Explained constants = fitted(reductions, ranks);
  ExplainingConstants found{.latency = from_seconds(constants.latency)};
  if (constants.per_byte > 0) found.bus = Bandwidth{1 / constants.per_byte};
  found.median_error = median_error(constants, Collective::all_reduce, ranks, reductions);
  for (const auto& [operation, points] : by_operation) {
    if (operation == "all_reduce" || points.empty()) continue;
    const Collective kind = *value_of(models::collective_words, operation);
    found.siblings.push_back({.operation = operation,
                              .points = points.size(),
                              .median_error = median_error(constants, kind, ranks, points)});
  }
  answer.constants = found;
}

}  // namespace orrery::scenarios

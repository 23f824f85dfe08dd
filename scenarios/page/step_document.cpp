#include "scenarios/page/step_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "models/evaluation/replay.hpp"
#include "models/plan/fields.hpp"
#include "models/program/memory_course.hpp"
#include "models/program/trace_names.hpp"
#include "scenarios/report/result.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t timeline_parts = 240;
constexpr std::size_t most_drawn_stages = 6;

/// The first, the last, the slowest and evenly spaced others, ascending.
std::set<std::uint32_t> drawn_classes(const models::Prediction& prediction) {
  const std::size_t all = prediction.program->classes.size();
  std::set<std::uint32_t> drawn;
  if (all <= most_drawn_stages) {
    for (std::uint32_t c = 0; c < all; ++c) drawn.insert(c);
    return drawn;
  }
  constexpr std::size_t spaced = most_drawn_stages - 1;
  for (std::size_t i = 0; i < spaced; ++i) {
    drawn.insert(static_cast<std::uint32_t>(i * (all - 1) / (spaced - 1)));
  }
  drawn.insert(prediction.slowest);
  return drawn;
}

/// Busy time of one queue in equal parts of the step, by class.
class BusyParts {
 public:
  explicit BusyParts(Time step) : part_{seconds(step) / timeline_parts} {}

  void add(const TraceRecord& record) {
    std::vector<double>& parts = by_class_[record.kind];
    parts.resize(timeline_parts);
    const double begin = seconds(record.start), end = begin + seconds(record.duration);
    const auto first = static_cast<std::size_t>(begin / part_);
    for (std::size_t i = first; i < timeline_parts; ++i) {
      const double from = std::max(begin, part_ * static_cast<double>(i));
      const double to = std::min(end, part_ * static_cast<double>(i + 1));
      if (to <= from) break;
      parts[i] += (to - from) / part_;
    }
  }

  /// [first part, parts, class, share]: equal neighbours are joined.
  Json json() const {
    Json list = Json::array();
    for (const auto& [name, parts] : by_class_) {
      for (std::size_t i = 0; i < parts.size();) {
        const double share = rounded(parts[i]);
        std::size_t end = i + 1;
        while (end < parts.size() && rounded(parts[end]) == share) ++end;
        if (share > 0) list.push_back({i, end - i, name, share});
        i = end;
      }
    }
    return list;
  }

 private:
  static double rounded(double share) { return std::round(std::min(share, 1.0) * 1000) / 1000; }

  double part_;
  std::map<std::string, std::vector<double>> by_class_;
};

/// The highest memory in each part, of a rank of the class. Buffers are counted in the host's
/// order, at the times at which their instructions run.
Json memory_parts(const models::Prediction& prediction, std::uint32_t rank_class) {
  const models::Program& program = *prediction.program;
  const auto course = models::memory_course(program, rank_class);
  const Bytes around = models::around_course(course, prediction.memory.at(rank_class).total);
  const double part = seconds(prediction.step) / timeline_parts;
  std::vector<std::int64_t> parts(timeline_parts, -1);
  std::size_t at = 0;
  std::int64_t held = course.empty() ? 0 : course.front().during.count();
  const auto raise = [&](std::size_t i, std::int64_t bytes) {
    parts[i] = std::max(parts[i], bytes);
  };
  models::ReplayObserver observer;
  observer.instruction = [&](const models::InstructionRecord& each) {
    const auto reached = static_cast<std::size_t>(seconds(each.start) / part);
    for (; at < std::min(reached, timeline_parts - 1); ++at) raise(at, held);
    raise(at, held);
    raise(at, course[each.index].during.count());
    held = course[each.index].after.count();
  };
  models::replay(prediction.priced, prediction.times, rank_class, observer);
  for (; at < timeline_parts; ++at) raise(at, held);
  Json list = Json::array();
  for (const std::int64_t each : parts) list.push_back(each + around.count());
  return list;
}

}  // namespace

Json heading_of(const std::string& scenario, const models::Question& question) {
  const hardware::Cluster& cluster = question.cluster;
  return {{"command", "simulate"},
          {"scenario", scenario},
          {"model", question.model.name},
          {"cluster", cluster.name},
          {"gpu", cluster.gpu().name},
          {"nodes", cluster.nodes},
          {"gpus_per_node", cluster.node.gpus},
          {"nics_per_node", cluster.node.nics},
          {"fabric", cluster.fabric.name},
          {"software", question.software.name},
          {"plan", models::to_json(question.plan)},
          {"plan_title", models::title_of(question.plan)},
          {"available_memory_bytes", cluster.gpu().memory.count()}};
}

Json timeline_json(const models::Prediction& prediction) {
  const Trace trace = trace_of(prediction, TraceDetail::instructions);
  const std::set<std::uint32_t> drawn = drawn_classes(prediction);
  std::map<std::pair<std::size_t, std::size_t>, BusyParts> queues;
  for (const TraceRecord& each : trace.records()) {
    const Trace::Queue& queue = trace.tracks()[index(each.track)];
    if (queue.name == "host" || !drawn.contains(static_cast<std::uint32_t>(queue.process)))
      continue;
    queues.try_emplace({queue.process, queue.thread}, prediction.step).first->second.add(each);
  }
  Json stages = Json::array();
  for (const std::uint32_t c : drawn) {
    Json own = Json::array();
    for (const Trace::Queue& queue : trace.tracks()) {
      const auto found = queues.find({queue.process, queue.thread});
      if (queue.process != c || found == queues.end()) continue;
      own.push_back({{"name", queue.name}, {"busy", found->second.json()}});
    }
    stages.push_back({{"name", trace.processes()[c]},
                      {"queues", std::move(own)},
                      {"memory_bytes", memory_parts(prediction, c)}});
  }
  return {{"buckets", timeline_parts}, {"stages", std::move(stages)}};
}

}  // namespace orrery::scenarios

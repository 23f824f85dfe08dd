#include "scenarios/comparison/comparison.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "models/data/lane_names.hpp"
#include "scenarios/comparison/joined.hpp"

namespace orrery::scenarios {

namespace {

/// Sums by class and by operation.
class Sums {
 public:
  void add(const JoinedRecord& predicted, const JoinedRecord& measured, Comparison& into) {
    const Time p = predicted.duration, m = measured.duration;
    ClassComparison& kind = class_of(into, predicted.record->kind);
    ++kind.count;
    kind.predicted += p;
    kind.measured += m;
    const auto key = std::pair{measured.block, measured.operation};
    OperationComparison& operation = operations_[key];
    if (operation.count == 0) {
      operation = {measured.block, measured.operation, predicted.record->kind, 0, {}, {}};
    }
    ++operation.count;
    operation.predicted += p;
    operation.measured += m;
  }

  /// The operations that explain most of the difference, the largest first.
  std::vector<OperationComparison> largest(std::size_t most) const {
    std::vector<OperationComparison> all;
    for (const auto& entry : operations_) all.push_back(entry.second);
    const auto difference = [](const OperationComparison& each) {
      return std::max(each.predicted, each.measured) - std::min(each.predicted, each.measured);
    };
    std::ranges::stable_sort(all, std::greater{}, difference);
    if (all.size() > most) all.resize(most);
    return all;
  }

 private:
  static ClassComparison& class_of(Comparison& into, const std::string& name) {
    for (ClassComparison& each : into.classes) {
      if (each.name == name) return each;
    }
    into.classes.push_back({name, 0, {}, {}});
    return into.classes.back();
  }

  std::map<std::pair<std::string, std::string>, OperationComparison> operations_;
};

Time span_of(const std::vector<JoinedRecord>& records) {
  if (records.empty()) return {};
  Time first = records.front().record->start, last{};
  for (const JoinedRecord& each : records) {
    first = std::min(first, each.record->start);
    last = std::max(last, each.record->start + each.record->duration);
  }
  return last - first;
}

/// Predicted records by rank and path; a rank that the prediction lacks is represented by one of
/// its stage.
class Partners {
 public:
  explicit Partners(const std::vector<JoinedRecord>& predicted) : used_(predicted.size(), false) {
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      const JoinedRecord& each = predicted[i];
      ranks_.emplace(each.rank, each.rank);
      of_stage_.emplace(each.stage, each.rank);
      by_path_.emplace(std::pair{each.rank, each.path}, i);
    }
  }

  std::optional<std::size_t> of(const JoinedRecord& measured) {
    std::int64_t rank = measured.rank;
    if (ranks_.count(rank) == 0) {
      const auto stand_in = of_stage_.find(measured.stage);
      if (stand_in == of_stage_.end()) return std::nullopt;
      rank = stand_in->second;
    }
    const auto found = by_path_.find({rank, measured.path});
    if (found == by_path_.end()) return std::nullopt;
    used_[found->second] = true;
    return found->second;
  }

  bool used(std::size_t i) const { return used_[i]; }

 private:
  std::map<std::int64_t, std::int64_t> ranks_, of_stage_;
  std::map<std::pair<std::int64_t, std::string_view>, std::size_t> by_path_;
  std::vector<bool> used_;
};

bool by_operation(const std::vector<JoinedRecord>& records) {
  return std::ranges::any_of(records, [](const JoinedRecord& each) { return !each.block.empty(); });
}

bool has_launches(const std::vector<JoinedRecord>& records) {
  return std::ranges::any_of(records, &JoinedRecord::launch);
}

std::optional<Bytes> peak_of(const Trace& trace) {
  const auto note = trace.notes().find("peak_memory_bytes");
  if (note == trace.notes().end()) return std::nullopt;
  return Bytes{note->second};
}

std::int64_t ranks_in(const std::vector<JoinedRecord>& records) {
  std::map<std::int64_t, bool> ranks;
  for (const JoinedRecord& each : records) ranks[each.rank] = true;
  return static_cast<std::int64_t>(ranks.size());
}

/// Whether a path begins with an instruction's number. Records of the step as a whole in a
/// simulated trace ("step/host", "carried", "bound") have no measured partner.
bool is_of_instruction(std::string_view path) {
  return !path.empty() && path.front() >= '0' && path.front() <= '9';
}

void join(const std::vector<JoinedRecord>& predicted, const std::vector<JoinedRecord>& measured,
          Comparison& into) {
  const bool launches = has_launches(predicted) && has_launches(measured);
  Partners partners{predicted};
  Sums sums;
  for (const JoinedRecord& each : measured) {
    if (each.launch && !launches) continue;
    if (const auto partner = partners.of(each)) {
      sums.add(predicted[*partner], each, into);
    } else {
      into.only_measured.push_back(each.record->id);
    }
  }
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    if (partners.used(i) || (predicted[i].launch && !launches)) continue;
    if (!is_of_instruction(predicted[i].path)) continue;
    into.only_predicted.push_back(predicted[i].record->id);
  }
  into.largest = sums.largest(10);
}

/// Of the rank for which a stage took longest; nothing without the stage.
std::optional<Time> input_stage(const Trace& trace, std::string_view stage) {
  std::optional<Time> longest;
  const std::string id = models::trace_input_id(stage);
  for (const TraceRecord& each : trace.records()) {
    if (each.id == id) longest = std::max(longest.value_or(Time{}), each.duration);
  }
  return longest;
}

std::vector<InputComparison> compare_input(const Trace& predicted, const Trace& measured) {
  std::vector<InputComparison> stages;
  for (const char* name : {"read", "decode", "augment", "copy", "wait"}) {
    const auto there = input_stage(predicted, name), here = input_stage(measured, name);
    if (there || here) stages.push_back({name, there, here});
  }
  return stages;
}

}  // namespace

Comparison compare(const Trace& predicted, const Trace& measured,
                   const std::string& measured_name) {
  std::vector<JoinedRecord> there = records_of(predicted);
  std::vector<JoinedRecord> here = records_of(measured);
  if (by_operation(there) != by_operation(here)) {
    throw InputError{measured_name,
                     "one trace is by instructions and the other by operations; accepted: two of "
                     "the same --trace-detail"};
  }
  Comparison result;
  result.predicted = span_of(there);
  result.measured = span_of(here);
  result.ranks = ranks_in(here);
  result.waiting = take_out_waiting(here);
  join(there, here, result);
  result.input = compare_input(predicted, measured);
  result.predicted_path = critical_path(there);
  result.measured_path = critical_path(here);
  const auto& [parts, chain] = result.measured_path;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::vector<std::string>& other = result.predicted_path.chain;
    if (i < other.size() && other[i] == chain[i]) continue;
    result.paths_part_at = chain[i];
    break;
  }
  result.predicted_peak = peak_of(predicted);
  result.measured_peak = peak_of(measured);
  return result;
}

}  // namespace orrery::scenarios

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "scenarios/comparison/joined.hpp"

namespace orrery::scenarios {

namespace {

bool ends_before(const JoinedRecord* a, const JoinedRecord* b) {
  return a->start + a->duration < b->start + b->duration;
}

/// Walks back from the record that ends last: before each record comes the one that ended last
/// before its start, preferring its own rank among equals.
class ChainWalk {
 public:
  explicit ChainWalk(const std::vector<JoinedRecord>& records) {
    for (const JoinedRecord& each : records) {
      if (!first_start_ || each.record->start < *first_start_) {
        first_start_ = each.record->start;
        launches_first_ = each.launch;
      }
      if (!each.launch && each.duration > Time{}) by_end_.push_back(&each);
    }
    std::ranges::stable_sort(by_end_, ends_before);
  }

  CriticalPath run() {
    CriticalPath path;
    if (by_end_.empty()) return path;
    std::map<std::string, Time> parts;
    const JoinedRecord* at = by_end_.back();
    while (true) {
      parts[at->record->kind] += at->duration;
      path.chain.emplace_back(at->path);
      const JoinedRecord* before = before_start(*at);
      if (before == nullptr) {
        parts[launches_first_ ? "host" : "idle"] += at->start - *first_start_;
        break;
      }
      parts["idle"] += at->start - (before->start + before->duration);
      at = before;
    }
    std::ranges::reverse(path.chain);
    for (const auto& [kind, time] : parts) {
      if (time > Time{}) path.parts.push_back({kind, time});
    }
    std::ranges::stable_sort(path.parts, std::greater{}, &CriticalPath::Share::time);
    return path;
  }

 private:
  const JoinedRecord* before_start(const JoinedRecord& each) const {
    const auto later = std::upper_bound(by_end_.begin(), by_end_.end(), each.start,
                                        [](Time start, const JoinedRecord* other) {
                                          return start < other->start + other->duration;
                                        });
    if (later == by_end_.begin()) return nullptr;
    const JoinedRecord* best = *(later - 1);
    for (auto it = later; it != by_end_.begin();) {
      const JoinedRecord* other = *--it;
      if (ends_before(other, best)) break;
      if (other->rank == each.rank) return other;
    }
    return best;
  }

  std::vector<const JoinedRecord*> by_end_;
  std::optional<Time> first_start_;  // of all records
  bool launches_first_ = false;
};

}  // namespace

CriticalPath critical_path(const std::vector<JoinedRecord>& records) {
  return ChainWalk{records}.run();
}

CriticalPath critical_path(const Trace& trace) {
  return critical_path(records_of(trace));
}

}  // namespace orrery::scenarios

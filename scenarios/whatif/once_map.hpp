#pragma once
// Values by number, each made once however many threads ask for it, and forgotten least recently
// used first when they occupy more than a budget.

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace orrery::scenarios {

template <class Value>
class OnceMap {
 public:
  /// budget  in the bytes that `make` states
  explicit OnceMap(std::size_t budget) : budget_{budget} {}

  /// The value of a key; where it is not there, `make` is called, which returns the value and its
  /// bytes. Others who ask for the same key meanwhile wait. An exception of `make` reaches its
  /// caller alone.
  template <class Make>
  std::shared_ptr<const Value> get(std::uint64_t key, const Make& make) {
    const std::shared_ptr<KeptValue> entry = entry_of(key);
    const std::lock_guard making{entry->making};
    if (entry->value) return entry->value;
    auto [value, bytes] = make();
    entry->value = std::move(value);
    hold(key, *entry, bytes + sizeof(KeptValue) + overhead);
    return entry->value;
  }

 private:
  struct KeptValue {
    std::mutex making;
    std::shared_ptr<const Value> value;
    std::size_t bytes = 0;                        // 0: not made yet, and not evicted
    std::list<std::uint64_t>::iterator position;  // in used_
  };
  static constexpr std::size_t overhead = 128;  // of the tables

  std::shared_ptr<KeptValue> entry_of(std::uint64_t key) {
    const std::lock_guard lock{mutex_};
    std::shared_ptr<KeptValue>& entry = entries_[key];
    if (!entry) {
      entry = std::make_shared<KeptValue>();
      used_.push_front(key);
      entry->position = used_.begin();
    } else if (entry->position != used_.begin()) {
      used_.splice(used_.begin(), used_, entry->position);
    }
    return entry;
  }

  /// Counts a value's bytes, and forgets others that are too many.
  void hold(std::uint64_t key, KeptValue& made, std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    const auto own = entries_.find(key);
    if (own == entries_.end() || own->second.get() != &made) return;  // forgotten meanwhile
    made.bytes = bytes;
    held_ += bytes;
    while (held_ > budget_ && used_.size() > 1) {
      const auto oldest = entries_.find(used_.back());
      if (oldest->second.get() == &made) break;
      held_ -= oldest->second->bytes;
      used_.pop_back();
      entries_.erase(oldest);
    }
  }

  std::size_t budget_, held_ = 0;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<KeptValue>> entries_;
  std::list<std::uint64_t> used_;  // latest first
};

}  // namespace orrery::scenarios

#pragma once
// Radix heap: a priority queue for times that only move forward. Entry x lies in bucket
//   b = bit length of (time(x) XOR base),   base = the time reached
// so bucket 0 holds what is due at the base, and every bucket is later than those below it.
// Moving the base redistributes one bucket into lower, empty ones, in order: among equal times the
// first pushed is the first popped, and no sequence number is stored.
// Source  Ahuja, Mehlhorn, Orlin & Tarjan 1990, "Faster algorithms for the shortest path problem"
// Buckets keep their capacity: the queue holds the memory of its largest size.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace orrery {

class RadixHeap {
 public:
  struct Entry {
    std::int64_t time;
    std::uint64_t payload;
  };

  bool empty() const { return occupied_ == 0; }

  /// The caller has checked base <= time.
  void push(Entry entry) {
    const int bucket = bucket_of(entry.time);
    buckets_[bucket].push_back(entry);
    occupied_ |= std::uint64_t{1} << bucket;
  }

  /// Is there an entry at the base?
  bool ready() const { return (occupied_ & 1) != 0; }

  /// The first pushed of the entries at the base; the caller has checked `ready`.
  Entry pop() {
    const Entry entry = buckets_[0][head_++];
    if (head_ == buckets_[0].size()) {
      buckets_[0].clear();
      head_ = 0;
      occupied_ &= ~std::uint64_t{1};
    }
    return entry;
  }

  /// The least time held; the caller has checked that the queue is not empty.
  std::int64_t earliest() const {
    const auto& first = buckets_[std::countr_zero(occupied_)];
    std::int64_t least = first.front().time;
    for (const Entry& entry : first) least = std::min(least, entry.time);
    return least;
  }

  /// Moves the base; the caller has checked that no entry is earlier than `time`.
  void advance(std::int64_t time) {
    const int bucket = bucket_of(time);
    base_ = time;
    if ((occupied_ >> bucket & 1) == 0 || bucket == 0) return;
    occupied_ &= ~(std::uint64_t{1} << bucket);
    if (due_at_once(buckets_[bucket])) {  // avoids copying a large bucket
      buckets_[0].swap(buckets_[bucket]);
      occupied_ |= 1;
      return;
    }
    for (const Entry& entry : buckets_[bucket]) push(entry);
    buckets_[bucket].clear();
  }

  /// Calls `visit` for every entry, in unspecified order.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = head_; i < buckets_[0].size(); ++i) visit(buckets_[0][i]);
    for (std::size_t b = 1; b < buckets_.size(); ++b) {
      for (const Entry& entry : buckets_[b]) visit(entry);
    }
  }

  /// Sets the base, even to an earlier time; the caller has checked that the queue is empty.
  void restart(std::int64_t time) { base_ = time; }

 private:
  /// Times are never negative: 63 bit lengths and bucket 0 for "equal" make 64 buckets.
  int bucket_of(std::int64_t time) const {
    return std::bit_width(static_cast<std::uint64_t>(time ^ base_));
  }

  bool due_at_once(const std::vector<Entry>& bucket) const {
    constexpr std::size_t crowd = 256;
    return bucket.size() > crowd &&
           std::ranges::all_of(bucket, [this](const Entry& x) { return x.time == base_; });
  }

  std::array<std::vector<Entry>, 64> buckets_;
  std::uint64_t occupied_ = 0;  // bit b: bucket b holds something
  std::size_t head_ = 0;        // index of the next entry to pop from bucket 0
  std::int64_t base_ = 0;
};

}  // namespace orrery

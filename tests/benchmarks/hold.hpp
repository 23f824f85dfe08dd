#pragma once
// The hold model on a 4-ary heap of 16-byte keys: how fast a machine is, in a figure that other
// benchmarks state their targets by.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "sim/quantity.hpp"

namespace orrery {

enum class Spread { exponential, ties };

/// Increments drawn beforehand, so that no random generator is timed; the table stays in L1/L2.
class Increments {
 public:
  explicit Increments(Spread spread) {
    std::mt19937_64 random{1};
    std::exponential_distribution<double> exponential{1e-8};  // mean 100 us
    for (std::int64_t& next : table_) {
      next = spread == Spread::ties ? static_cast<std::int64_t>(random() % 4) * 500'000
                                    : static_cast<std::int64_t>(exponential(random));
    }
  }
  Time next() { return Time{table_[at_++ % table_.size()]}; }

 private:
  std::array<std::int64_t, 4093> table_{};  // a prime: no period in step with N
  std::size_t at_ = 0;
};

/// How far the clock moves while about 10,000 events fire.
inline Time window(Spread spread, std::int64_t pending) {
  const std::int64_t mean = spread == Spread::ties ? 750'000 : 100'000'000;
  return Time{std::max<std::int64_t>(mean * 10'000 / pending, 1)};
}

inline void report(benchmark::State& state, std::int64_t events) {
  state.counters["per_event"] = benchmark::Counter(
      static_cast<double>(events), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// A 4-ary heap of {time, sequence and slot}; the payload stays in its slot.
class FourAryHeap {
 public:
  struct Key {
    std::int64_t time;
    std::uint64_t order;  // sequence in the upper 40 bits, slot below
    bool before(const Key& other) const {
      return time != other.time ? time < other.time : order < other.order;
    }
  };

  std::int64_t earliest() const { return keys_.front().time; }

  void push(std::int64_t time, std::uint64_t payload) {
    std::uint32_t slot;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(payloads_.size());
      payloads_.push_back(payload);
    } else {
      slot = free_.back();
      free_.pop_back();
      payloads_[slot] = payload;
    }
    const Key key{time, sequence_++ << 24 | slot};
    std::size_t hole = keys_.size();
    keys_.push_back(key);
    while (hole > 0 && key.before(keys_[(hole - 1) / 4])) {
      keys_[hole] = keys_[(hole - 1) / 4];
      hole = (hole - 1) / 4;
    }
    keys_[hole] = key;
  }

  std::pair<std::int64_t, std::uint64_t> pop() {
    const Key top = keys_.front();
    const Key last = keys_.back();
    keys_.pop_back();
    if (!keys_.empty()) sink(last);
    const auto slot = static_cast<std::uint32_t>(top.order & 0xff'ffff);
    free_.push_back(slot);
    return {top.time, payloads_[slot]};
  }

 private:
  void sink(Key key) {
    std::size_t hole = 0;
    while (4 * hole + 1 < keys_.size()) {
      std::size_t least = 4 * hole + 1;
      const std::size_t end = std::min(least + 4, keys_.size());
      for (std::size_t child = least + 1; child < end; ++child) {
        if (keys_[child].before(keys_[least])) least = child;
      }
      if (!keys_[least].before(key)) break;
      keys_[hole] = keys_[least];
      hole = least;
    }
    keys_[hole] = key;
  }

  std::vector<Key> keys_;
  std::vector<std::uint64_t> payloads_;
  std::vector<std::uint32_t> free_;
  std::uint64_t sequence_ = 0;
};

inline void four_ary_heap(benchmark::State& state, Spread spread) {
  FourAryHeap heap;
  Increments increments{spread};
  std::int64_t events = 0;
  std::int64_t now = 0;
  const auto hold_until = [&](std::int64_t until) {
    while (heap.earliest() <= until) {
      const auto event = heap.pop();
      now = event.first;
      ++events;
      heap.push(now + increments.next().count(), event.second);
    }
    now = until;
  };
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    heap.push(increments.next().count(), static_cast<std::uint64_t>(i));
  }
  const std::int64_t step = window(spread, state.range(0)).count();
  while (events < 4 * state.range(0)) hold_until(now + step);
  const std::int64_t before = events;
  for (auto _ : state) hold_until(now + step);
  report(state, events - before);
}

}  // namespace orrery

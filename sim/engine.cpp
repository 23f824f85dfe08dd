#include "sim/engine.hpp"

#include <fmt/core.h>

#include <limits>

#include "sim/errors.hpp"

namespace orrery {

Event Engine::at(Time time, Handler handler) {
  ensure(static_cast<bool>(handler), "an event needs a handler");
  if (time < now_) refuse_past(time);
  std::uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot].handler = std::move(handler);
  schedule(time, slot);
  return {slot, slots_[slot].generation};
}

bool Engine::cancel(Event event) {
  if (event.slot >= slots_.size()) return false;
  Slot& slot = slots_[event.slot];
  if (slot.generation != event.generation || !slot.handler) return false;
  slot.handler.reset();
  --pending_;
  return true;
}

Engine::Kind Engine::add_kind(void* object, Receive receive) {
  ensure(receivers_.size() < 256, "an engine knows at most 255 kinds of signals");
  receivers_.push_back({object, receive});
  return static_cast<Kind>(receivers_.size() - 1);
}

void Engine::run() {
  fire_through(Time{std::numeric_limits<std::int64_t>::max()});
  queue_.restart(now_.count());  // cancelled events may have been later than the last that fired
}

void Engine::run_until(Time time) {
  if (time < now_) refuse_past(time);
  fire_through(time);
  now_ = time;
  queue_.advance(time.count());
}

void Engine::fire_through(Time limit) {
  ensure(!running_, "the engine is already running: a handler may not run it");
  struct Running {
    explicit Running(bool& flag) : flag_{flag} { flag_ = true; }
    ~Running() { flag_ = false; }
    bool& flag_;
  } const running{running_};

  while (true) {
    while (queue_.ready()) fire(queue_.pop());
    if (!closing_.empty()) {
      close_instant();
      continue;
    }
    if (queue_.empty()) return;
    const std::int64_t next = queue_.earliest();
    if (next > limit.count()) return;
    queue_.advance(next);
  }
}

void Engine::fire(RadixHeap::Entry entry) {
  const std::uint64_t kind = entry.payload >> word_bits;
  if (kind != 0) {
    now_ = Time{entry.time};
    --pending_;
    receivers_[kind].receive(receivers_[kind].object,
                             entry.payload & ((std::uint64_t{1} << word_bits) - 1));
    return;
  }
  Slot& slot = slots_[entry.payload];
  Handler handler = std::move(slot.handler);  // it may schedule, and so move or reuse the slot
  ++slot.generation;
  free_.push_back(static_cast<std::uint32_t>(entry.payload));
  if (!handler) return;  // cancelled: it does not move the clock
  now_ = Time{entry.time};
  --pending_;
  handler();
}

void Engine::close_instant() {
  closed_.swap(closing_);
  for (Handler& handler : closed_) handler();
  closed_.clear();
}

void Engine::refuse_past(Time time) const {
  throw ContractError{
      fmt::format("scheduled for {} ps, but it is already {} ps", time.count(), now_.count())};
}

void Engine::refuse_word() {
  throw ContractError{"a signal carries a word below 2^56"};
}

}  // namespace orrery

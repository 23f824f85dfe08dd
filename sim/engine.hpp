#pragma once
// Discrete-event engine: a clock in integer picoseconds and a queue of pending events. Events fire
// in (time, order scheduled), so the same program gives the same trace on every run. It does not
// know what events mean. There is no global state, so many engines can live in one process. An
// engine is used from one thread.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/handler.hpp"
#include "sim/quantity.hpp"
#include "sim/radix_heap.hpp"

namespace orrery {

/// Handle of one scheduled handler, for cancelling it. A default-constructed one refers to none.
struct Event {
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;
};

class Engine {
 public:
  using Handler = orrery::Handler;

  /// Identifies an (object, method) pair that receives signals; made by `add_kind`.
  enum class Kind : std::uint8_t {};
  /// What a signal carries: an index into its receiver's own tables, below 2^56.
  using Word = std::uint64_t;

  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Time now() const { return now_; }
  /// Events that have neither fired nor been cancelled.
  std::size_t pending() const { return pending_; }

  /// `handler` runs at `time`, after all that was scheduled for that time before.
  /// Errors  time < now, empty handler: ContractError
  Event at(Time time, Handler handler);
  Event after(Time delay, Handler handler) { return at(now_ + delay, std::move(handler)); }

  /// The handler will not run; its captures are destroyed now. False if there was nothing to
  /// cancel: it has run, is running, or was cancelled before.
  bool cancel(Event event);

  /// For hot paths: `(receiver.*method)(word)` is called at the time of each signal. A signal takes
  /// no slot, has no captures and cannot be cancelled. The receiver must outlive every signal.
  /// Errors  more than 255 kinds: ContractError
  template <auto method, class Receiver>
  Kind add_kind(Receiver& receiver) {
    return add_kind(&receiver, [](void* object, Word word) {
      (static_cast<Receiver*>(object)->*method)(word);
    });
  }
  /// Errors  time < now, word >= 2^56: ContractError
  void signal(Time time, Kind kind, Word word) {
    if (word >> word_bits != 0) refuse_word();
    schedule(time, static_cast<std::uint64_t>(kind) << word_bits | word);
  }

  /// Runs `handler` once, after all events of the current instant have fired: for work that many
  /// simultaneous events cause and that is needed only once. The handler may schedule more events
  /// for this instant; the instant then ends again.
  void at_instant_end(Handler handler) { closing_.push_back(std::move(handler)); }

  /// Fires all pending events and those that they schedule. The clock stops at the last event.
  /// Errors  called from a handler: ContractError
  void run();
  /// Fires all events due at or before `time`, then sets the clock to `time`.
  /// Errors  time < now, called from a handler: ContractError
  void run_until(Time time);

 private:
  using Receive = void (*)(void* object, Word word);
  struct Receiver {
    void* object;
    Receive receive;
  };
  struct Slot {
    Handler handler;  // empty: cancelled; the slot is freed at the event's time
    std::uint64_t generation = 1;
  };
  static constexpr int word_bits = 56;

  Kind add_kind(void* object, Receive receive);
  void schedule(Time time, std::uint64_t payload) {
    if (time < now_) refuse_past(time);
    queue_.push({time.count(), payload});
    ++pending_;
  }
  void fire_through(Time limit);
  void fire(RadixHeap::Entry entry);
  void close_instant();
  [[noreturn]] void refuse_past(Time time) const;
  [[noreturn]] static void refuse_word();

  Time now_{};
  RadixHeap queue_;  // its base is `now_` whenever a handler runs
  std::size_t pending_ = 0;
  std::vector<Receiver> receivers_{{nullptr, nullptr}};  // kind 0: handlers in slots
  std::vector<Slot> slots_;  // one queue entry each: freed when it is popped, never before
  std::vector<std::uint32_t> free_;
  std::vector<Handler> closing_;  // to run at the end of this instant
  std::vector<Handler> closed_;   // the ones being run
  bool running_ = false;
};

}  // namespace orrery

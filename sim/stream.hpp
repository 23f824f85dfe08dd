#pragma once
// An in-order queue of work whose durations are known when it is enqueued: the kernels of one GPU
// queue, the copies of one engine. Leaves out waiting for other queues and durations that depend on
// concurrent work: the owner handles those.

#include <algorithm>

#include "sim/engine.hpp"

namespace orrery {

class Stream {
 public:
  explicit Stream(Engine& engine) : engine_{engine} {}

  /// Starts when all that was enqueued before has ended; `done` fires at its end.
  ///   end = max(end of the work before, now) + duration
  /// Errors  duration < 0: ContractError
  void enqueue(Time duration, Engine::Handler done) {
    ensure(duration >= Time{}, "work lasts no less than 0 ps");
    busy_until_ = std::max(busy_until_, engine_.now()) + duration;
    engine_.at(busy_until_, std::move(done));
  }

  /// When the work enqueued so far ends, or ended.
  Time busy_until() const { return busy_until_; }

 private:
  Engine& engine_;
  Time busy_until_{};
};

}  // namespace orrery

#pragma once
// Who takes part in a step that is run as events: queues, wires, meetings (and ranks, in
// event_rank.hpp). None of them computes a time: what they hold begins at the moment when the last
// thing that it waits for has happened. What happens then is in events.cpp.

#include <cstdint>
#include <deque>
#include <vector>

#include "models/evaluation/priced.hpp"

namespace orrery::models::events {

/// What ends on a rank (operations, receives, joint collectives), numbered in program order.
using TaskId = std::uint32_t;
inline constexpr TaskId no_task = 0;  // ended before the step began
inline constexpr std::uint32_t no_meeting = 0xffffffff;
inline constexpr std::uint32_t no_group = 0xffffffff;

/// Which tasks of one rank have ended.
class EndedTasks {
 public:
  TaskId add() {
    ended_.push_back(0);
    return static_cast<TaskId>(ended_.size() - 1);
  }
  void end(TaskId id) { ended_[id] = 1; }
  bool ended(TaskId id) const { return id < ended_.size() && ended_[id] != 0; }
  TaskId next() const { return static_cast<TaskId>(ended_.size()); }
  /// The first that has not ended; next() if all have.
  TaskId first_pending() const {
    TaskId id = 0;
    while (ended(id)) ++id;
    return id;
  }

 private:
  std::vector<std::uint8_t> ended_{1};
};

/// What a host launches onto a queue: an operation, or its rank's part in a joint collective.
struct LaunchStep {
  Time launch{}, duration{}, lead{}, trail{};
  const std::vector<OpId>* after = nullptr;
  std::uint32_t index = 0;  // in its block
  Lane queue = Lane::compute;
  bool host_waits = false;
  bool writes_output = false;
  std::uint32_t group = no_group;  // of a collective of a block: where its members meet
};

/// A step once it is launched. `input` is what `block_input` stands for.
struct LaunchedTask {
  const LaunchStep* step = nullptr;
  TaskId id = no_task, input = no_task;
  std::uint32_t meeting = no_meeting;
};

/// An in-order queue of one rank.
class LaneQueue {
 public:
  void push(const LaunchedTask& task) {
    tasks_.push_back(task);
    last_ = task.id;
  }
  const LaunchedTask& head() const { return tasks_.front(); }
  /// The task pushed last.
  TaskId last() const { return last_; }

  /// Nothing but the other members of its meeting keeps the head from beginning.
  bool ready(const EndedTasks& progress) const {
    if (engaged_ || tasks_.empty()) return false;
    const LaunchedTask& task = head();
    const TaskId first = task.id - task.step->index;
    for (const OpId id : *task.step->after) {
      if (!progress.ended(id == block_input ? task.input : first + id)) return false;
    }
    return true;
  }
  /// The head runs, waits for its wire or has gone to its meeting.
  void engage() { engaged_ = true; }
  bool engaged() const { return engaged_; }
  void head_ended(Time now) {
    engaged_ = false;
    free_ = now + head().step->trail;
    tasks_.pop_front();
  }
  Time free() const { return free_; }
  /// The wire of the one before lets the head begin no earlier.
  Time head_may_begin() const { return free_ + head().step->lead; }

 private:
  std::deque<LaunchedTask> tasks_;
  TaskId last_ = no_task;
  bool engaged_ = false;
  Time free_{};
};

/// A channel between two ranks: the k-th send meets the k-th receive, one transfer at a time.
struct EventWire {
  std::uint32_t from = 0, to = 0;  // ranks
  Time duration{};
  std::deque<TaskId> sends;     // launched: the sender's tasks whose ends are to be sent
  std::deque<TaskId> receives;  // launched: tasks of the receiver
  bool busy = false;
  std::vector<Time> ends;

  bool ready(const EndedTasks& sender) const {
    return !busy && !receives.empty() && !sends.empty() && sender.ended(sends.front());
  }
};

/// A collective: it begins on all its queues at once, when each has it ready at its head.
struct JointStart {
  std::vector<std::uint32_t> lanes;
  std::size_t arrived = 0;
  Time start{};  // of the last one held
};

}  // namespace orrery::models::events

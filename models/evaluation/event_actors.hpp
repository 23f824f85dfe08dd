#pragma once
// The parts of an evaluation by events: queues, the wires of channels, and meetings, at which the
// ranks of a collective wait for each other (ranks: event_rank.hpp). None of
// them computes a time: a task begins at the event that fulfils the last condition it waits for.
// The events themselves are in events.cpp.

#include <cstdint>
#include <deque>
#include <vector>

#include "models/evaluation/priced.hpp"

namespace orrery::models::events {

/// A task of one rank (an operation, receive or joint collective), numbered in program order.
using TaskId = std::uint32_t;
inline constexpr TaskId no_task = 0;  // counts as ended before the step began
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
  std::uint32_t group =
      no_group;  // of a collective inside a block: its index in EventState's groups
};

/// A launched step. `input` is the task that a dependency on `block_input` means.
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

  /// Is the queue idle, with all dependencies of its head ended? Then only the wire and the other
  /// members of its meeting can delay the head.
  bool ready(const EndedTasks& progress) const {
    if (engaged_ || tasks_.empty()) return false;
    const LaunchedTask& task = head();
    const TaskId first = task.id - task.step->index;
    for (const OpId id : *task.step->after) {
      if (!progress.ended(id == block_input ? task.input : first + id)) return false;
    }
    return true;
  }
  /// Marks the head as begun: it runs, waits for its wire, or waits for the other members.
  void engage() { engaged_ = true; }
  bool engaged() const { return engaged_; }
  void head_ended(Time now) {
    engaged_ = false;
    free_ = now + head().step->trail;
    tasks_.pop_front();
  }
  Time free() const { return free_; }
  /// Earliest start of the head: the wire carries the trail of the task before it, then its own
  /// lead.
  Time head_may_begin() const { return free_ + head().step->lead; }

 private:
  std::deque<LaunchedTask> tasks_;
  TaskId last_ = no_task;
  bool engaged_ = false;
  Time free_{};
};

/// A channel between two ranks: the k-th send matches the k-th receive, one transfer at a time.
struct EventWire {
  std::uint32_t from = 0, to = 0;  // ranks
  Time duration{};
  std::deque<TaskId> sends;     // launched sends: the sender's task whose output each sends
  std::deque<TaskId> receives;  // launched receives: tasks of the receiver
  bool busy = false;
  std::vector<Time> ends;

  bool ready(const EndedTasks& sender) const {
    return !busy && !receives.empty() && !sends.empty() && sender.ended(sends.front());
  }
};

/// The meeting of a collective: it begins on all its queues at once, when it is ready at the head
/// of each.
struct CollectiveMeeting {
  std::vector<std::uint32_t> lanes;
  std::size_t arrived = 0;
  Time start{};  // of the collective held last
};

}  // namespace orrery::models::events

#pragma once
// One rank of an evaluation by events: how far its host is in the instruction list, and its queues.

#include <array>
#include <cstdint>
#include <vector>

#include "models/evaluation/event_actors.hpp"
#include "sim/errors.hpp"

namespace orrery::models::events {

/// How far a host has launched a phase: invocation, repetition and operation.
class PhaseCursor {
 public:
  using Blocks = std::vector<std::vector<LaunchStep>>;

  explicit PhaseCursor(const Blocks& blocks) : blocks_{&blocks} {}

  void begin(const Phase& phase, TaskId input) {
    runs_ = &phase.invocations;
    at_ = 0;
    input_ = output_ = input;
    skip_empty();
  }
  /// The next operation to launch; null when the whole phase is launched.
  const LaunchStep* next() const { return at_ < runs_->size() ? &steps()[operation_] : nullptr; }
  /// The task whose end is the input of the block that the next operation belongs to.
  TaskId input() const { return input_; }
  /// The task whose end is the output of what is launched so far.
  TaskId output() const { return output_; }

  void launched(TaskId id) {
    if (next()->writes_output) output_ = id;
    if (++operation_ < steps().size()) return;
    operation_ = 0;
    input_ = output_;
    if (++repetition_ < (*runs_)[at_].count) return;
    repetition_ = 0;
    ++at_;
    skip_empty();
  }

 private:
  const std::vector<LaunchStep>& steps() const { return (*blocks_)[(*runs_)[at_].block]; }
  void skip_empty() {
    while (at_ < runs_->size() && ((*runs_)[at_].count <= 0 || steps().empty())) ++at_;
  }

  const Blocks* blocks_;
  const std::vector<Invocation>* runs_ = nullptr;
  std::size_t at_ = 0, operation_ = 0;
  std::int64_t repetition_ = 0;
  TaskId input_ = no_task, output_ = no_task;
};

/// The tasks whose ends are an instruction's output and the end of its kernels.
struct InstructionTasks {
  TaskId output = no_task, end = no_task;
};

/// One rank: its instruction list, queues and host. Wires and meetings are held by EventState.
struct EventRank {
  explicit EventRank(const PhaseCursor::Blocks& blocks) : walk{blocks} {}

  const RankClass* list = nullptr;
  std::uint32_t rank_class = 0, replica = 0;
  EndedTasks progress;
  std::array<LaneQueue, lane_count> lanes;
  std::vector<std::uint32_t> outgoing;  // wires on which it sends
  // State of its host.
  Token at = 0;          // the instruction that it has reached
  bool entered = false;  // the phase's wait for its token, if any, is on the compute queue
  std::vector<TaskId> first_tasks;     // first task of each instruction reached so far
  std::vector<InstructionTasks> made;  // by each of them
  PhaseCursor walk;
  TaskId awaited = no_task;  // the task that the host waits for
  Time host_end{};

  InstructionTasks made_by(Token token) const {
    ensure(token == no_token || token < at,
           "an instruction awaits what is not earlier in its list");
    return token == no_token ? InstructionTasks{} : made[token];
  }

  LaneQueue& lane(Lane queue) { return lanes[static_cast<std::size_t>(queue)]; }
  bool host_done() const { return at == list->instructions.size(); }
  bool done() const { return host_done() && progress.first_pending() == progress.next(); }
};

}  // namespace orrery::models::events

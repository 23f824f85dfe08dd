#include "models/evaluation/events.hpp"

#include "models/evaluation/event_state.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/engine.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace events {
namespace {

/// Its events: a host has launched something, the wire is free for the head of a queue, the head of
/// a queue has ended, a transfer has ended. After each, everything that may have waited for it is
/// checked again.
class EventRun {
 public:
  EventRun(const PricedProgram& priced, EventRanks ranks)
      : priced_{priced},
        program_{*priced.program},
        state_{priced, ranks},
        launched_{engine_.add_kind<&EventRun::launched>(*this)},
        arrived_{engine_.add_kind<&EventRun::arrived>(*this)},
        ended_{engine_.add_kind<&EventRun::ended>(*this)},
        transferred_{engine_.add_kind<&EventRun::transferred>(*this)} {}

  StepTimes run() {
    for (std::uint32_t r = 0; r < state_.ranks.size(); ++r) {
      carry(r);
      engine_.at(priced_.step_launch, [this, r] {
        meet_instruction(state_.ranks[r]);
        proceed(r);
      });
    }
    engine_.run();
    state_.refuse_unfinished();
    return state_.times(priced_.bound.time);
  }

  std::uint64_t events() const { return events_; }

 private:
  /// Puts what the previous step left on the data queue; an optimizer waits for it as for any other
  /// task there.
  void carry(std::uint32_t r) {
    const LaunchStep& step = state_.carried[state_.ranks[r].rank_class];
    if (step.duration == Time{}) return;
    enqueue(r, {&step, state_.ranks[r].progress.add(), no_task, no_meeting});
  }

  // --- the host ----------------------------------------------------------------------------

  /// The host reaches an instruction.
  void meet_instruction(EventRank& rank) {
    if (rank.host_done()) return;
    const Instruction& each = rank.list->instructions[rank.at];
    rank.first_tasks.push_back(rank.progress.next());
    rank.made.emplace_back();
    if (runs_phase(each)) {
      rank.walk.begin(program_.phases[each.target], rank.made_by(each.input).output);
    }
  }

  void leave_instruction(EventRank& rank, InstructionTasks made) {
    rank.made.back() = made;
    ++rank.at;
    rank.entered = false;
    meet_instruction(rank);
  }

  /// The host begins its next launch.
  void proceed(std::uint32_t r) {
    EventRank& rank = state_.ranks[r];
    const auto transfer = [&](Token, const Instruction&) {
      begin_launch(r, priced_.transfer_launch);
      return true;
    };
    const auto joint = [&](Token, const Instruction& each) {
      begin_launch(r, state_.joints[each.target].launch);
      return true;
    };
    const auto phase = [&](Token, const Instruction& each) {
      if (!rank.entered) enter_phase(r, each);
      if (const LaunchStep* step = rank.walk.next()) {
        begin_launch(r, step->launch);
        return true;
      }
      leave_instruction(rank, {rank.walk.output(), rank.lane(Lane::compute).last()});
      return false;
    };
    const Cases launches{phase, transfer, transfer, joint};
    while (!rank.host_done()) {
      if (visit(rank.at, rank.list->instructions[rank.at], launches)) return;
    }
    rank.host_end = engine_.now();
  }

  /// The compute queue waits for the token of a phase, which costs no launch, like a wait for a
  /// CUDA event.
  void enter_phase(std::uint32_t r, const Instruction& each) {
    EventRank& rank = state_.ranks[r];
    rank.entered = true;
    if (each.awaits == no_token) return;
    enqueue(r, {&state_.wait, rank.progress.add(), rank.made_by(each.awaits).end, no_meeting});
  }

  void begin_launch(std::uint32_t r, Time cost) {
    engine_.signal(engine_.now() + cost, launched_, r);
  }

  /// Event: the host has finished a launch.
  void launched(Engine::Word word) {
    ++events_;
    const auto r = static_cast<std::uint32_t>(word);
    EventRank& rank = state_.ranks[r];
    const Cases launches{[&](Token, const Instruction&) { launch_operation(r); },
                         [&](Token, const Instruction& each) { launch_send(rank, each); },
                         [&](Token, const Instruction& each) { launch_receive(rank, each.target); },
                         [&](Token, const Instruction& each) { launch_joint(r, each); }};
    visit(rank.at, rank.list->instructions[rank.at], launches);
    if (rank.awaited == no_task) proceed(r);
  }

  void launch_operation(std::uint32_t r) {
    EventRank& rank = state_.ranks[r];
    const LaunchStep& step = *rank.walk.next();
    const LaunchedTask task{&step, rank.progress.add(), rank.walk.input(),
                            state_.meeting_of(r, step)};
    rank.walk.launched(task.id);
    enqueue(r, task);
  }

  void launch_joint(std::uint32_t r, const Instruction& each) {
    EventRank& rank = state_.ranks[r];
    const LaunchedTask task{&state_.joints[each.target], rank.progress.add(),
                            rank.made_by(each.input).end,
                            state_.meeting_of(each.target, rank.replica)};
    enqueue(r, task);
    leave_instruction(rank, {task.id, task.id});
  }

  void launch_send(EventRank& rank, const Instruction& each) {
    const std::uint32_t wire = state_.wire_of(rank, each.target);
    const TaskId sent = rank.made_by(each.input).output;
    state_.wires[wire].sends.push_back(sent);
    leave_instruction(rank, {sent, sent});
    look(wire);
  }

  void launch_receive(EventRank& rank, std::uint32_t channel) {
    const std::uint32_t wire = state_.wire_of(rank, channel);
    const TaskId received = rank.progress.add();
    state_.wires[wire].receives.push_back(received);
    if (priced_.waits_for_receive()) rank.awaited = received;
    leave_instruction(rank, {received, received});
    look(wire);
  }

  void enqueue(std::uint32_t r, const LaunchedTask& task) {
    EventRank& rank = state_.ranks[r];
    const Lane queue = task.step->queue;
    if (task.step->host_waits) rank.awaited = task.id;
    rank.lane(queue).push(task);
    look(r, queue);
  }

  // --- queues, wires and meetings ----------------------------------------------------------

  /// Begins the head of a queue if nothing holds it back.
  void look(std::uint32_t r, Lane queue) {
    LaneQueue& lane = state_.ranks[r].lane(queue);
    if (!lane.ready(state_.ranks[r].progress)) return;
    lane.engage();
    const std::uint32_t id = EventState::lane_of(r, queue);
    if (lane.head_may_begin() <= engine_.now()) return arrive(id);
    engine_.signal(lane.head_may_begin(), arrived_, id);
  }

  /// Event: the wire is free for the head of a queue.
  void arrived(Engine::Word word) {
    ++events_;
    arrive(static_cast<std::uint32_t>(word));
  }

  /// Begins the head of a queue, or has it wait for the other members of its meeting.
  void arrive(std::uint32_t id) {
    const LaunchedTask& head = state_.lane(id).head();
    if (head.meeting == no_meeting) return begin(id);
    CollectiveMeeting& meeting = state_.collective_meetings[head.meeting];
    if (++meeting.arrived < meeting.lanes.size()) return;
    meeting.arrived = 0;
    meeting.start = engine_.now();
    for (const std::uint32_t member : meeting.lanes) {
      ensure(state_.lane(member).engaged(), "a collective began without one of its members");
      begin(member);
    }
  }

  void begin(std::uint32_t id) {
    engine_.signal(engine_.now() + state_.lane(id).head().step->duration, ended_, id);
  }

  /// Begins the next transfer of a wire if nothing holds it back.
  void look(std::uint32_t id) {
    EventWire& wire = state_.wires[id];
    if (!wire.ready(state_.ranks[wire.from].progress)) return;
    wire.busy = true;
    engine_.signal(engine_.now() + wire.duration, transferred_, id);
  }

  /// Event: the head of a queue has ended.
  void ended(Engine::Word word) {
    ++events_;
    const auto r = static_cast<std::uint32_t>(word / lane_count);
    LaneQueue& lane = state_.ranks[r].lanes[word % lane_count];
    const TaskId id = lane.head().id;
    lane.head_ended(engine_.now());
    conclude(r, id);
  }

  /// Event: a transfer has ended.
  void transferred(Engine::Word word) {
    ++events_;
    const auto id = static_cast<std::uint32_t>(word);
    EventWire& wire = state_.wires[id];
    const TaskId receive = wire.receives.front();
    wire.sends.pop_front();
    wire.receives.pop_front();
    wire.busy = false;
    wire.ends.push_back(engine_.now());
    conclude(wire.to, receive);
    look(id);
  }

  /// Ends a task, and checks everything of its rank that may have waited for it.
  void conclude(std::uint32_t r, TaskId id) {
    EventRank& rank = state_.ranks[r];
    rank.progress.end(id);
    for (int q = 0; q < lane_count; ++q) look(r, static_cast<Lane>(q));
    for (const std::uint32_t wire : rank.outgoing) look(wire);
    if (rank.awaited != id) return;
    rank.awaited = no_task;
    proceed(r);
  }

  const PricedProgram& priced_;
  const Program& program_;
  EventState state_;
  Engine engine_;
  std::uint64_t events_ = 0;
  Engine::Kind launched_, arrived_, ended_, transferred_;
};

}  // namespace
}  // namespace events

StepTimes evaluate_events(const PricedProgram& priced, std::uint64_t& count) {
  events::EventRun run{priced, events::EventRanks::one};
  StepTimes times = run.run();
  count = run.events();
  return times;
}

StepTimes evaluate_events(const PricedProgram& priced) {
  std::uint64_t count = 0;
  return evaluate_events(priced, count);
}

StepTimes evaluate_all_ranks(const PricedProgram& priced) {
  return events::EventRun{priced, events::EventRanks::all}.run();
}

}  // namespace orrery::models

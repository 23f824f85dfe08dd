#include "models/prediction/breakdown.hpp"

#include <algorithm>
#include <vector>

#include "models/evaluation/replay.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Something outside the rank's own queues that was under way for a while.
struct Outside {
  Time start{}, end{};
  TimeClass part = TimeClass::other;
  bool host_waits = false;
};

class BreakdownWalk {
 public:
  BreakdownWalk(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class)
      : priced_{priced}, program_{*priced.program}, times_{times}, rank_class_{rank_class} {}

  Breakdown run() {
    outside_.push_back({Time{}, priced_.carried_by(rank_class_), TimeClass::dp, false});
    // Outside intervals first: an operation's gap may be explained by what stands behind it.
    ReplayObserver outside;
    outside.instruction = [&](const InstructionRecord& record) { note(record); };
    replay(priced_, times_, rank_class_, outside);
    std::stable_sort(outside_.begin(), outside_.end(),
                     [](const Outside& a, const Outside& b) { return a.start < b.start; });
    ReplayObserver inside;
    inside.operation = [&](const OperationRecord& record) { take(record); };
    replay(priced_, times_, rank_class_, inside);
    finish();
    return parts_;
  }

 private:
  Time& part(TimeClass which) { return parts_[static_cast<std::size_t>(which)]; }

  void note(const InstructionRecord& record) {
    const auto received = [&](Token, const Instruction&) {
      outside_.push_back({record.start, record.end, TimeClass::pp, priced_.waits_for_receive()});
    };
    const auto joined = [&](Token, const Instruction& each) {
      const JointCollective& joint = program_.collectives[each.target];
      const TimeClass part = program_.communicators[joint.communicator].time_class;
      outside_.push_back({on_wire(record), record.end, part, priced_.waits_for(joint)});
    };
    visit(record.index, *record.instruction, Cases{pass_over, pass_over, received, joined});
  }

  /// From when a collective was waited for and on its wire, as far as this rank alone can tell.
  Time on_wire(const InstructionRecord& record) const {
    const Time launched = Time{record.before[state_host].value} +
                          priced_.collectives[record.instruction->target].launch;
    const Time ready = std::max(launched, Time{record.before[state_compute].value});
    return std::clamp(ready, record.start - record.lead, record.start);
  }

  /// Gives [cursor, until) to the outside intervals that cover it and the rest to `otherwise`.
  void fill(Time until, TimeClass otherwise) {
    while (next_ < outside_.size() && outside_[next_].end <= cursor_) ++next_;
    for (std::size_t i = next_; i < outside_.size() && cursor_ < until; ++i) {
      const Outside& each = outside_[i];
      if (each.end <= cursor_) continue;
      if (each.start >= until) break;
      if (each.start > cursor_) advance(each.start, otherwise);
      advance(std::min(each.end, until), each.part);
    }
    if (cursor_ < until) advance(until, otherwise);
  }

  void advance(Time to, TimeClass which) {
    part(which) += to - cursor_;
    cursor_ = to;
  }

  void take(const OperationRecord& record) {
    const Operation& op = program_.blocks[record.block].operations[record.operation];
    if (op.queue != Lane::compute) return;
    if (record.start > cursor_) {
      switch (record.cause) {
        case Cause::dependency:
          advance(record.start, waited(record));
          break;
        case Cause::input:
          fill(record.start, TimeClass::bubble);
          break;
        case Cause::joint:
          fill(record.start, TimeClass::dp);
          break;
        default:
          host_gap(record.start);
          break;
      }
    }
    advance(record.end, op.time_class);
  }

  TimeClass waited(const OperationRecord& record) const {
    return program_.blocks[record.block].operations[record.waited_for].time_class;
  }

  /// The host was late: for what it waited itself, then for its own work.
  void host_gap(Time until) {
    Time blocked = cursor_;
    for (std::size_t i = next_; i < outside_.size() && outside_[i].start < until; ++i) {
      const Outside& each = outside_[i];
      if (each.host_waits && each.end <= until) blocked = std::max(blocked, each.end);
    }
    if (blocked > cursor_) fill(blocked, TimeClass::bubble);
    if (until > cursor_) advance(until, TimeClass::host);
  }

  /// Behind the last kernel: what is still under way, the host's own rest, other ranks.
  void finish() {
    const QueueTimes& own = times_.ranks[rank_class_];
    if (own.data > cursor_) fill(own.data, TimeClass::bubble);
    if (own.tensor > cursor_) advance(own.tensor, TimeClass::tp);
    if (own.host > cursor_) advance(own.host, TimeClass::host);
    const Time scheduled = times_.scheduled();
    if (scheduled > cursor_) fill(scheduled, TimeClass::bubble);
    if (times_.step > cursor_) advance(times_.step, priced_.bound.part);
  }

  const PricedProgram& priced_;
  const Program& program_;
  const StepTimes& times_;
  std::uint32_t rank_class_;
  std::vector<Outside> outside_;
  std::size_t next_ = 0;
  Time cursor_{};
  Breakdown parts_{};
};

}  // namespace

Breakdown breakdown_of(const PricedProgram& priced, const StepTimes& times,
                       std::uint32_t rank_class) {
  return BreakdownWalk{priced, times, rank_class}.run();
}

}  // namespace orrery::models

#include "models/prediction/breakdown.hpp"

#include <algorithm>
#include <vector>

#include "models/evaluation/replayer.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// The interval of a receive, a joint collective, or traffic carried over from the previous step.
struct ExternalInterval {
  Time start{}, end{};
  TimeClass part = TimeClass::other;
  bool host_waits = false;
};

class BreakdownWalk {
 public:
  BreakdownWalk(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class)
      : priced_{priced}, program_{*priced.program}, times_{times}, rank_class_{rank_class} {}

  Breakdown run() {
    external_.push_back({Time{}, priced_.carried_by(rank_class_), TimeClass::dp, false});
    // External intervals are collected first: what explains an operation's gap may be launched
    // after it.
    const std::vector<std::size_t> none_received(priced_.channels.size());
    walk(program_, rank_class_, OutsideWalk{*this, none_received});
    std::ranges::stable_sort(external_, [](const ExternalInterval& a, const ExternalInterval& b) {
      return a.start < b.start;
    });
    Replayer<BreakdownWalk>{priced_, times_, rank_class_, *this}.run();
    finish();
    return parts_;
  }

 private:
  Time& part(TimeClass which) { return parts_[static_cast<std::size_t>(which)]; }

  /// Collects the receives and joint collectives of the list.
  struct OutsideWalk {
    BreakdownWalk& all;
    std::vector<std::size_t> received;  // so far, by channel
    std::size_t joined = 0;

    void phase(Token, const Instruction&) {}
    void send(Token, const Instruction&) {}
    void receive(Token, const Instruction& each) {
      const std::size_t k = received[each.target]++;
      const Time end = all.times_.transfers[each.target].at(k);
      all.external_.push_back({all.times_.transfer_start(all.priced_, each.target, k), end,
                               TimeClass::pp, all.priced_.waits_for_receive()});
    }
    void joint(Token, const Instruction& each) {
      const JointCollective& joint = all.program_.collectives[each.target];
      const PricedOperation& price = all.priced_.collectives[each.target];
      const Time start = all.times_.collective_starts[each.target];
      const Time ready = all.times_.collectives_ready[all.rank_class_].at(joined++);
      // From when this rank was ready for it, but within its lead: as much as this rank can know.
      all.external_.push_back({std::clamp(ready, start - price.lead, start),
                               all.times_.collective_end(all.priced_, each.target),
                               all.program_.communicators[joint.communicator].time_class,
                               all.priced_.waits_for(joint)});
    }
  };

  /// Attributes [cursor, until) to the outside intervals that cover it and the rest to `otherwise`.
  void fill(Time until, TimeClass otherwise) {
    while (next_ < external_.size() && external_[next_].end <= cursor_) ++next_;
    for (std::size_t i = next_; i < external_.size() && cursor_ < until; ++i) {
      const ExternalInterval& each = external_[i];
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

  friend class Replayer<BreakdownWalk>;
  friend class PhaseReplayer<BreakdownWalk>;
  bool only_waits() const { return true; }
  void instruction(const InstructionRecord&) {}
  void operation(const OperationRecord& record) {
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
    advance(record.end, class_of(record.block, record.operation));
  }
  void at_once(std::uint32_t block, std::size_t operation, Time start, Time end) {
    if (start > cursor_) host_gap(start);
    advance(end, class_of(block, operation));
  }

  TimeClass class_of(std::uint32_t block, std::size_t operation) const {
    return program_.blocks[block].operations[operation].time_class;
  }

  TimeClass waited(const OperationRecord& record) const {
    return program_.blocks[record.block].operations[record.waited_for].time_class;
  }

  /// Attributes a gap in which the host was late: first to what the host waited for, then to the
  /// host.
  void host_gap(Time until) {
    Time blocked = cursor_;
    for (std::size_t i = next_; i < external_.size() && external_[i].start < until; ++i) {
      const ExternalInterval& each = external_[i];
      if (each.host_waits && each.end <= until) blocked = std::max(blocked, each.end);
    }
    if (blocked > cursor_) fill(blocked, TimeClass::bubble);
    if (until > cursor_) advance(until, TimeClass::host);
  }

  /// Attributes the time after the last kernel: to traffic that has not ended, the rest of the
  /// host's work, and other ranks.
  void finish() {
    const QueueTimes& own = times_.ranks[rank_class_];
    if (own[Lane::data] > cursor_) fill(own[Lane::data], TimeClass::bubble);
    if (own[Lane::tensor] > cursor_) advance(own[Lane::tensor], TimeClass::tp);
    if (own[Lane::context] > cursor_) advance(own[Lane::context], TimeClass::cp);
    if (own[Lane::copy] > cursor_) advance(own[Lane::copy], TimeClass::optimizer);
    if (own[Lane::host] > cursor_) advance(own[Lane::host], TimeClass::host);
    const Time scheduled = times_.scheduled();
    if (scheduled > cursor_) fill(scheduled, TimeClass::bubble);
    if (times_.step > cursor_) advance(times_.step, priced_.bound.part);
  }

  const PricedProgram& priced_;
  const Program& program_;
  const StepTimes& times_;
  std::uint32_t rank_class_;
  std::vector<ExternalInterval> external_;
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

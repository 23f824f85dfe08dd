#include "models/evaluation/event_state.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::models::events {

EventState::EventState(const PricedProgram& priced, EventRanks ranks)
    : program_{*priced.program},
      replicas_{
          ranks == EventRanks::one ? 1 : static_cast<std::uint32_t>(program_.mesh.stage_ranks())} {
  ensure(priced.blocks.size() == program_.blocks.size() &&
             priced.channels.size() == program_.channels.size() &&
             priced.collectives.size() == program_.collectives.size(),
         "the prices are of another program");
  add_steps(priced);
  add_joints(priced);
  add_ranks();
  add_wires(priced);
  add_meetings();
}

void EventState::add_steps(const PricedProgram& priced) {
  for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
    const Block& block = program_.blocks[b];
    const std::vector<PricedOperation>& prices = priced.blocks[b];
    ensure(prices.size() == block.operations.size(), "the prices are of another program");
    std::vector<LaunchStep>& steps = blocks_.emplace_back(block.operations.size());
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const Operation& op = block.operations[i];
      const auto is_output = [&](OperandId id) { return to_other_block(block.operands[id].role); };
      LaunchStep& step = steps[i];
      step.index = i;
      step.launch = prices[i].launch;
      step.duration = prices[i].duration;
      step.lead = prices[i].lead;
      step.trail = prices[i].trail;
      step.after = &op.after;
      step.queue = op.queue;
      step.host_waits = op.queue == Lane::host || priced.waits_for(op);
      step.writes_output = std::ranges::any_of(op.writes, is_output);
      if (op.kind == OpKind::collective) step.group = group_of(op.communicator(), op.queue);
    }
  }
}

void EventState::add_joints(const PricedProgram& priced) {
  joints.resize(program_.collectives.size());
  for (std::size_t j = 0; j < joints.size(); ++j) {
    ensure(priced.collectives[j].trail == Time{}, "a joint collective has no trail");
    joints[j].launch = priced.collectives[j].launch;
    joints[j].duration = priced.collectives[j].duration;
    joints[j].lead = priced.collectives[j].lead;
    joints[j].after = &input_alone_;
    joints[j].queue = Lane::data;
    joints[j].host_waits = priced.waits_for(program_.collectives[j]);
  }
  wait.after = &input_alone_;
  wait.queue = Lane::compute;
  for (std::uint32_t c = 0; c < program_.classes.size(); ++c) {
    LaunchStep& step = carried.emplace_back();
    step.duration = priced.carried_by(c);
    step.after = &nothing_;
    step.queue = Lane::data;
  }
}

void EventState::add_ranks() {
  for (std::uint32_t c = 0; c < program_.classes.size(); ++c) {
    for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
      EventRank& rank = ranks.emplace_back(blocks_);
      rank.list = &program_.classes[c];
      rank.rank_class = c;
      rank.replica = replica;
    }
  }
}

void EventState::add_wires(const PricedProgram& priced) {
  for (std::size_t c = 0; c < program_.channels.size(); ++c) {
    for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
      EventWire& wire = wires.emplace_back();
      wire.from = program_.channels[c].from * replicas_ + replica;
      wire.to = program_.channels[c].to * replicas_ + replica;
      wire.duration = priced.channels[c];
      ranks[wire.from].outgoing.push_back(static_cast<std::uint32_t>(wires.size() - 1));
    }
  }
}

std::uint32_t EventState::group_of(std::uint16_t communicator, Lane queue) {
  const auto same = [&](const BlockGroup& each) {
    return each.communicator == communicator && each.queue == queue;
  };
  const auto found = std::ranges::find_if(groups_, same);
  const auto id = static_cast<std::uint32_t>(found - groups_.begin());
  if (found == groups_.end()) groups_.push_back({communicator, queue});
  return id;
}

/// Numbers meetings of joint collectives first, then those of collectives inside blocks, by the
/// first rank of the group and by BlockGroup.
void EventState::add_meetings() {
  collective_meetings.resize(program_.collectives.size() * replicas_);
  for (std::uint32_t j = 0; j < program_.collectives.size(); ++j) {
    for (const std::uint32_t c : program_.collectives[j].classes) {
      for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
        collective_meetings[meeting_of(j, replica)].lanes.push_back(
            lane_of(c * replicas_ + replica, Lane::data));
      }
    }
  }
  first_block_meeting_ = static_cast<std::uint32_t>(collective_meetings.size());
  if (replicas_ == 1) return;
  collective_meetings.resize(collective_meetings.size() + ranks.size() * groups_.size());
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      collective_meetings[block_meeting(r, group)].lanes.push_back(
          lane_of(r, groups_[group].queue));
    }
  }
}

/// The first replica in the group of this one. Groups over several stages have the same replicas on
/// each.
std::uint32_t EventState::first_of(std::uint32_t replica, std::uint16_t communicator) const {
  const AxisSet spanned = program_.communicators.at(communicator).axes;
  std::int64_t first = replica;
  if (replicas_ == 1) return replica;
  for (const AxisRow& each : axes) {
    const bool inside = each.view != MeshView::stages && spanned.has(each.axis);
    if (inside) first = program_.mesh.moved(first, each.axis, 0);
  }
  return static_cast<std::uint32_t>(first);
}

std::uint32_t EventState::meeting_of(std::uint32_t joint, std::uint32_t replica) const {
  return joint * replicas_ + first_of(replica, program_.collectives[joint].communicator);
}

std::uint32_t EventState::block_meeting(std::uint32_t rank, std::uint32_t group) const {
  const std::uint32_t replica = rank % replicas_;
  const std::uint32_t first = rank - replica + first_of(replica, groups_[group].communicator);
  return first_block_meeting_ + first * static_cast<std::uint32_t>(groups_.size()) + group;
}

void EventState::refuse_unfinished() const {
  std::string text;
  std::uint32_t next_class = 0;
  for (const EventRank& rank : ranks) {
    if (rank.done() || rank.rank_class < next_class) continue;
    next_class = rank.rank_class + 1;
    text += (text.empty() ? " stage " : "; stage ") + std::to_string(rank.list->stage) +
            waiting_at(rank);
  }
  if (!text.empty()) throw ContractError{"the schedule cannot proceed:" + text};
}

std::string EventState::waiting_at(const EventRank& rank) const {
  const std::vector<TaskId>& firsts = rank.first_tasks;
  const auto next = std::ranges::upper_bound(firsts, rank.progress.first_pending());
  const auto at = static_cast<std::size_t>(next - firsts.begin()) - 1;
  const Instruction& each = rank.list->instructions[at];
  const std::string text = " waits at i" + std::to_string(at) + " " + std::string{name(each.op)};
  if (each.op != Opcode::receive) return text;
  return text + " from stage " + std::to_string(program_.channels[each.target].from);
}

StepTimes EventState::times(Time bound) const {
  StepTimes times;
  for (const EventRank& rank : ranks) {
    QueueTimes& own = times.ranks.emplace_back();
    for (std::size_t i = 0; i < own.free.size(); ++i) own.free[i] = rank.lanes[i].free();
    own[Lane::host] = rank.host_end;
  }
  for (const EventWire& wire : wires) times.transfers.push_back(wire.ends);
  times.step = std::max(times.scheduled(), bound);
  for (std::uint32_t j = 0; j < program_.collectives.size(); ++j) {
    for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
      times.collective_starts.push_back(collective_meetings[meeting_of(j, replica)].start);
    }
  }
  return times;
}

}  // namespace orrery::models::events

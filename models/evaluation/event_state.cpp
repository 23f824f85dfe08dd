#include "models/evaluation/event_state.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::models::events {

EventState::EventState(const PricedProgram& priced, std::int64_t tensor, std::int64_t data)
    : program_{*priced.program},
      tensor_{static_cast<std::uint32_t>(tensor)},
      replicas_{static_cast<std::uint32_t>(tensor * data)} {
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
      const auto is_output = [&](OperandId id) { return block.operands[id].role == Role::output; };
      LaunchStep& step = steps[i];
      step.index = i;
      step.launch = prices[i].launch;
      step.duration = prices[i].duration;
      step.lead = prices[i].lead;
      step.trail = prices[i].trail;
      step.after = &op.after;
      step.queue = op.queue;
      step.host_waits = op.queue == Lane::host || priced.waits_for(op);
      step.writes_output = std::any_of(op.writes.begin(), op.writes.end(), is_output);
      step.with_tensor_group = op.kind == OpKind::collective &&
                               program_.role_of(op.communicator) == CommunicatorRole::tensor;
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

/// First those of joint collectives, then those of tensor groups: by class, data coordinate and
/// queue.
void EventState::add_meetings() {
  meetings.resize(program_.collectives.size() * replicas_);
  for (std::uint32_t j = 0; j < program_.collectives.size(); ++j) {
    for (const std::uint32_t c : program_.collectives[j].classes) {
      for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
        meetings[meeting_of(j, replica)].lanes.push_back(
            lane_of(c * replicas_ + replica, Lane::data));
      }
    }
  }
  first_tensor_meeting_ = static_cast<std::uint32_t>(meetings.size());
  if (tensor_ == 1) return;
  meetings.resize(meetings.size() + ranks.size() / tensor_ * lane_count);
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    for (int q = 0; q < lane_count; ++q) {
      const auto queue = static_cast<Lane>(q);
      meetings[tensor_meeting(r, queue)].lanes.push_back(lane_of(r, queue));
    }
  }
}

bool EventState::spans(std::uint32_t joint, MeshAxis axis) const {
  const std::uint16_t id = program_.collectives[joint].communicator;
  return program_.communicators.at(id).axes.has(axis);
}

std::uint32_t EventState::meeting_of(std::uint32_t joint, std::uint32_t replica) const {
  std::uint32_t t = replica % tensor_, d = replica / tensor_;
  if (t > 0 && spans(joint, MeshAxis::tensor)) t = 0;
  if (d > 0 && spans(joint, MeshAxis::data)) d = 0;
  return joint * replicas_ + t + tensor_ * d;
}

std::uint32_t EventState::tensor_meeting(std::uint32_t rank, Lane queue) const {
  return first_tensor_meeting_ + lane_of(rank / tensor_, queue);
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
  const auto next = std::upper_bound(firsts.begin(), firsts.end(), rank.progress.first_pending());
  const auto at = static_cast<std::size_t>(next - firsts.begin()) - 1;
  const Instruction& each = rank.list->instructions[at];
  const std::string text = " waits at i" + std::to_string(at) + " " + std::string{name(each.op)};
  if (each.op != Opcode::receive) return text;
  return text + " from stage " + std::to_string(program_.channels[each.target].from);
}

StepTimes EventState::times(Time bound) const {
  StepTimes times;
  for (const EventRank& rank : ranks) {
    const auto free = [&](Lane queue) {
      return rank.lanes[static_cast<std::size_t>(queue)].free();
    };
    times.ranks.push_back({rank.host_end, free(Lane::compute), free(Lane::tensor), free(Lane::data),
                           free(Lane::copy)});
  }
  for (const EventWire& wire : wires) times.transfers.push_back(wire.ends);
  times.step = std::max(times.scheduled(), bound);
  for (std::uint32_t j = 0; j < program_.collectives.size(); ++j) {
    for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
      times.collective_starts.push_back(meetings[meeting_of(j, replica)].start);
    }
  }
  return times;
}

}  // namespace orrery::models::events

#pragma once
// Everything that takes part in a step that is run as events, and how it is numbered.
//
// A rank class stands for tensor x data replicas; one of each is the folded run. Replicas, tensor
// varying fastest, are numbered within all that the Program has one of: rank = class x replicas +
// replica, and likewise wires of a channel and meetings of a joint collective.

#include <cstdint>
#include <string>
#include <vector>

#include "models/evaluation/event_rank.hpp"

namespace orrery::models::events {

class EventState {
 public:
  /// Errors  prices of another Program: ContractError
  EventState(const PricedProgram& priced, std::int64_t tensor, std::int64_t data);
  EventState(const EventState&) = delete;
  EventState& operator=(const EventState&) = delete;

  std::vector<EventRank> ranks;
  std::vector<EventWire> wires;
  std::vector<JointStart> meetings;
  std::vector<LaunchStep> joints;  // as Program::collectives
  std::vector<LaunchStep>
      carried;      // as Program::classes, of the data queue: what is on it at first
  LaunchStep wait;  // of the compute queue, for the task that is its input

  std::uint32_t wire_of(const EventRank& rank, std::uint32_t channel) const {
    return channel * replicas_ + rank.replica;
  }
  /// A joint collective is held once by each of its groups, under the group's first replica.
  std::uint32_t meeting_of(std::uint32_t joint, std::uint32_t replica) const;
  /// Where an operation meets the other members of the rank's tensor group; none where there are
  /// no others.
  std::uint32_t meeting_of(std::uint32_t rank, const LaunchStep& step) const {
    const bool meets = step.with_tensor_group && tensor_ > 1;
    return meets ? tensor_meeting(rank, step.queue) : no_meeting;
  }
  static std::uint32_t lane_of(std::uint32_t rank, Lane queue) {
    return rank * lane_count + static_cast<std::uint32_t>(queue);
  }
  LaneQueue& lane(std::uint32_t id) { return ranks[id / lane_count].lanes[id % lane_count]; }

  /// Once nothing happens any more. Errors  something has not ended: ContractError naming, of each
  /// class that waits, the first instruction that has not ended on its first such rank
  void refuse_unfinished() const;
  /// What was found, in the order of the numbering.
  StepTimes times(Time bound) const;

 private:
  void add_steps(const PricedProgram& priced);
  void add_joints(const PricedProgram& priced);
  void add_ranks();
  void add_wires(const PricedProgram& priced);
  void add_meetings();
  bool spans(std::uint32_t joint, MeshAxis axis) const;
  std::uint32_t tensor_meeting(std::uint32_t rank, Lane queue) const;
  std::string waiting_at(const EventRank& rank) const;

  const Program& program_;
  std::uint32_t tensor_, replicas_;
  PhaseCursor::Blocks blocks_;
  const std::vector<OpId> input_alone_{block_input};  // what a joint and a wait wait for
  const std::vector<OpId> nothing_;
  std::uint32_t first_tensor_meeting_ = 0;
};

}  // namespace orrery::models::events

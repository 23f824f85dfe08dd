#pragma once
// State of an evaluation by events: ranks, wires and meetings, and their numbering.
//
// A rank class stands for all ranks of a stage, its replicas; a folded evaluation has one replica
// of each. rank = class x replicas + replica, where replicas are numbered with the tensor index
// varying fastest. Wires of a channel and meetings of a joint collective are numbered alike.

#include <cstdint>
#include <string>
#include <vector>

#include "models/evaluation/event_rank.hpp"
#include "models/evaluation/step_times.hpp"

namespace orrery::models::events {

/// One rank of each class, or all.
enum class EventRanks : std::uint8_t { one, all };

class EventState {
 public:
  /// Errors  prices of another Program: ContractError
  EventState(const PricedProgram& priced, EventRanks ranks);
  EventState(const EventState&) = delete;
  EventState& operator=(const EventState&) = delete;

  std::vector<EventRank> ranks;
  std::vector<EventWire> wires;
  std::vector<CollectiveMeeting> collective_meetings;
  std::vector<LaunchStep> joints;   // as Program::collectives
  std::vector<LaunchStep> carried;  // as Program::classes: what is first on the data queue
  LaunchStep wait;                  // on the compute queue, for the task that is its input

  std::uint32_t wire_of(const EventRank& rank, std::uint32_t channel) const {
    return channel * replicas_ + rank.replica;
  }
  /// The meeting of a joint collective: one for each of its groups, numbered by the group's first
  /// replica.
  std::uint32_t meeting_of(std::uint32_t joint, std::uint32_t replica) const;
  /// The meeting of a collective inside a block; no_meeting where the rank has no other members to
  /// wait for.
  std::uint32_t meeting_of(std::uint32_t rank, const LaunchStep& step) const {
    const bool meets = step.group != no_group && replicas_ > 1;
    return meets ? block_meeting(rank, step.group) : no_meeting;
  }
  static std::uint32_t lane_of(std::uint32_t rank, Lane queue) {
    return rank * lane_count + static_cast<std::uint32_t>(queue);
  }
  LaneQueue& lane(std::uint32_t id) { return ranks[id / lane_count].lanes[id % lane_count]; }

  /// For when no event is left.
  /// Errors  a task has not ended (a deadlock): ContractError naming, for each class that waits,
  ///         the first instruction that has not ended on its first such rank
  void refuse_unfinished() const;
  /// The times found, in the order of the numbering.
  StepTimes times(Time bound) const;

 private:
  void add_steps(const PricedProgram& priced);
  void add_joints(const PricedProgram& priced);
  void add_ranks();
  void add_wires(const PricedProgram& priced);
  void add_meetings();
  std::uint32_t group_of(std::uint16_t communicator, Lane queue);
  std::uint32_t first_of(std::uint32_t replica, std::uint16_t communicator) const;
  std::uint32_t block_meeting(std::uint32_t rank, std::uint32_t group) const;
  std::string waiting_at(const EventRank& rank) const;

  /// Collectives inside blocks that run one after another: of one communicator, on one lane.
  struct BlockGroup {
    std::uint16_t communicator = 0;
    Lane queue = Lane::tensor;
  };

  const Program& program_;
  std::uint32_t replicas_;
  std::vector<BlockGroup> groups_;
  PhaseCursor::Blocks blocks_;
  const std::vector<OpId> input_alone_{block_input};  // the dependencies of a joint and of a wait
  const std::vector<OpId> nothing_;
  std::uint32_t first_block_meeting_ = 0;
};

}  // namespace orrery::models::events

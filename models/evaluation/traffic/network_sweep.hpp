#pragma once
// The step of one job while it is evaluated with traffic, by the rules of evaluate.hpp. Another
// job's next step begins when its last one has ended.

#include <string>
#include <vector>

#include "models/evaluation/step_times.hpp"
#include "models/evaluation/traffic/evaluate.hpp"
#include "models/evaluation/traffic/phase_runner.hpp"
#include "models/evaluation/traffic/sweep_state.hpp"
#include "models/evaluation/traffic/traffic_events.hpp"

namespace orrery::models::traffic {

/// Delays of one job's traffic.
struct JobDelays {
  LaunchDelays delays;
  std::uint32_t job = 0;
};

class NetworkSweep {
 public:
  NetworkSweep(const JobTraffic& job, const std::vector<FlowClass>& flow_classes,
               TrafficEvents& events, const JobDelays& delays);
  NetworkSweep(const NetworkSweep&) = delete;
  NetworkSweep& operator=(const NetworkSweep&) = delete;

  /// From now on ranks stop at their first joint collective.
  void stop_at_joints() { stops_at_joints_ = true; }
  bool at_joint() const { return at_joint_; }
  /// Continues from `before`, which stopped there, whose ranks stand for those here, and which
  /// outlives this. Nothing has begun here yet.
  void resume(const NetworkSweep& before, const JobPrefix& prefix);
  /// Advances all ranks as far as they can go.
  void wake_all();

  /// Begins the step and runs it until it needs the end of active traffic.
  void begin_step(std::int64_t at);
  /// What a flow class of this job was sending has ended.
  void traffic_ended(std::uint32_t id, std::int64_t now);

  /// Are all ends of its ranks and transfers known?
  bool finished() const { return unfinished_ranks_ == 0 && transfers_under_way_ == 0; }
  /// The last of these ends. The step ends then, but no earlier than its bound.
  Time last() const;
  Time step_end() const;
  /// Errors  not finished: ContractError
  void refuse_unfinished() const;
  /// The times of its ranks, channels and groups.
  void add_times(NetworkTimes& found) const;

  // Visitor of a rank's host: each returns false if the host waits at the instruction.
  bool phase(Token i, const Instruction& each);
  bool send(Token i, const Instruction& each);
  bool receive(Token i, const Instruction& each);
  bool joint(Token i, const Instruction& each);

 private:
  void begin_ranks();
  void number_joints();
  void wake(std::uint32_t rank);
  void drain();
  void advance(std::uint32_t rank);
  bool advance_host(std::uint32_t rank);
  bool advance_device(std::uint32_t rank);
  bool can_run(const RankTrack& rank, Token i) const;
  bool run_phase(std::uint32_t rank);
  bool run_phase_together(std::uint32_t rank, const Instruction& each);

  // Collectives inside blocks.
  void find_block_collectives();
  bool has_traffic_inside(std::uint32_t rank, std::uint32_t phase) const;
  bool run_inside(std::uint32_t rank, const Instruction& each);
  bool await_inside(std::uint32_t rank);
  std::int64_t run_inside_block(std::uint32_t rank, std::uint32_t block);
  std::uint32_t block_group(std::uint32_t rank, std::uint32_t block, std::size_t operation) const;
  void meet(std::uint32_t rank, std::uint32_t group, std::uint32_t block, std::size_t operation,
            std::int64_t start);
  void inside_ended(std::uint32_t group, std::int64_t end);
  void begin_phase(RankTrack& rank, const Instruction& each) const;
  void end_phase(std::uint32_t rank);

  void make(std::uint32_t rank, Token token, InstructionTimes made);
  void sent(std::uint32_t rank, const RankTrack::Send& each);
  void try_channel(std::uint32_t channel);
  void try_joint(std::uint32_t rank);
  std::uint32_t instance(std::uint32_t rank, std::uint32_t joint) const;
  /// Flow classes are numbered within the job here: channels, then groups.
  std::uint32_t flow_class_of(std::uint32_t group) const {
    return static_cast<std::uint32_t>(traffic_.channels.size()) + group;
  }
  std::int64_t alone(std::uint32_t id, Time fluid) const;

  /// Begins what a flow class sends: the k-th of its channel, or of its group, by the number of the
  /// joint collective or of the collective inside blocks.
  struct Launch {
    std::uint64_t k = 0;
    std::int64_t start = 0;
    Time latency{}, fluid{};
  };
  void begin(std::uint32_t id, const Launch& launch);
  LaunchSource source_of(std::uint32_t id) const;
  void ended(std::uint32_t id, std::int64_t end);
  void transfer_ended(std::uint32_t channel, std::int64_t end);
  void joint_ended(std::uint32_t group, std::int64_t end);

  // After a prefix.
  std::vector<Token> oldest_needed() const;
  RankTrack track_after(const RankTrack& before, Token first, std::uint32_t rank) const;
  void resume_joints();
  void resume_block_collectives();
  InsideTimes inside_of(std::uint32_t rank) const;

  StepTimes replica(std::uint32_t number) const;
  std::uint32_t last_replica() const;

  const PricedProgram& priced_;
  const Program& program_;
  const JobTraffic& traffic_;
  const std::vector<FlowClass>& flow_classes_;
  TrafficEvents& events_;
  JobDelays delays_;
  std::vector<double> speeds_;
  PhaseRunner phases_;
  std::vector<RankTrack> ranks_;
  std::vector<ChannelTrack> channels_;
  std::vector<JointTrack> joints_;
  std::vector<std::uint32_t> first_instance_;  // by joint collective
  std::vector<std::uint32_t> place_of_group_;  // its position among those of its split
  std::vector<std::vector<std::uint32_t>> groups_of_split_;
  std::vector<std::uint32_t> joint_of_group_;       // the one that the group runs
  std::vector<BlockCollectiveTrack> block_tracks_;  // by group
  std::vector<char> group_is_in_blocks_;
  std::vector<std::uint32_t> block_groups_;  // at rank x kinds + kind; no_kind: as priced
  std::vector<std::vector<std::uint32_t>> kinds_of_phase_;  // of collectives inside it
  std::vector<Time> fluid_of_channel_;
  std::vector<char> one_speed_;                               // by tensor group
  std::vector<std::vector<UnitEntry>> tensor_group_entries_;  // by tensor group
  std::vector<RankTrack*> together_;                          // members of a tensor group
  const NetworkSweep* before_ = nullptr;  // stood for this one, as `prefix_` says
  JobPrefix prefix_;
  std::vector<std::uint32_t> runnable_;
  std::uint32_t rank_ = 0;  // the one whose host advances
  std::int64_t begun_ = 0;
  bool stops_at_joints_ = false, at_joint_ = false;
  std::size_t unfinished_ranks_ = 0, transfers_under_way_ = 0;
};

}  // namespace orrery::models::traffic

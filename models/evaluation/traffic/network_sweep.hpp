#pragma once
// One evaluation with traffic while it runs; evaluate.hpp says what it means.

#include <string>
#include <vector>

#include "models/evaluation/traffic/evaluate.hpp"
#include "models/evaluation/traffic/shares.hpp"
#include "models/evaluation/traffic/sweep_state.hpp"
#include "sim/radix_heap.hpp"

namespace orrery::models::traffic {

class NetworkSweep {
 public:
  NetworkSweep(const PricedProgram& priced, const Traffic& traffic);
  NetworkSweep(const NetworkSweep&) = delete;
  NetworkSweep& operator=(const NetworkSweep&) = delete;

  NetworkTimes run();

  // A rank's host meets an instruction: false if it waits there.
  bool phase(Token i, const Instruction& each);
  bool send(Token i, const Instruction& each);
  bool receive(Token i, const Instruction& each);
  bool joint(Token i, const Instruction& each);

 private:
  enum class Event : std::uint8_t { start, end, change };

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

  // Collectives inside blocks: network_sweep_inside.cpp.
  void find_inside();
  bool meets_inside(std::uint32_t rank, std::uint32_t phase) const;
  bool run_inside(std::uint32_t rank, const Instruction& each);
  bool await_inside(std::uint32_t rank);
  bool run_inside_block(std::uint32_t rank, std::uint32_t block);
  std::uint32_t inside_group(std::uint32_t rank, std::uint32_t block, std::size_t operation) const;
  void meet(std::uint32_t rank, std::uint32_t group, std::uint32_t block, std::size_t operation,
            std::int64_t start);
  void inside_ended(std::uint32_t group, std::int64_t end);
  void begin_phase(RankTrack& rank, const Instruction& each) const;
  void end_phase(std::uint32_t rank);
  bool known(const RankTrack& rank, Token token) const;
  Made made(const RankTrack& rank, Token token) const;

  void make(std::uint32_t rank, Token token, Made made);
  void sent(std::uint32_t rank, const RankTrack::Send& each);
  void try_channel(std::uint32_t channel);
  void try_joint(std::uint32_t rank);
  std::uint32_t instance(std::uint32_t rank, std::uint32_t joint) const;
  std::int64_t alone(std::uint32_t id, Time fluid) const;

  void begin(std::uint32_t id, std::int64_t start, Time latency, Time fluid);
  void ended(std::uint32_t id, std::int64_t end);
  void transfer_ended(std::uint32_t channel, std::int64_t end);
  void joint_ended(std::uint32_t group, std::int64_t end);
  void push(Event kind, std::uint32_t id, std::uint32_t serial, std::int64_t at);
  void handle(std::uint64_t payload);

  void refuse_unfinished() const;
  NetworkTimes result();
  StepTimes replica(std::uint32_t number) const;
  std::uint32_t last_replica() const;

  const PricedProgram& priced_;
  const Program& program_;
  const Traffic& traffic_;
  std::vector<double> speeds_;
  PhaseRunner phases_;
  WireShares shares_;
  std::vector<RankTrack> ranks_;
  std::vector<ChannelTrack> channels_;
  std::vector<JointTrack> joints_;
  std::vector<std::uint32_t> first_instance_;  // by joint collective
  std::vector<std::uint32_t> place_of_group_;  // among its structure's
  std::vector<std::vector<std::uint32_t>> groups_of_structure_;
  std::vector<std::uint32_t> joint_of_group_;  // that is under way
  std::vector<InsideTrack> inside_;            // by group
  std::vector<char> group_is_inside_;
  std::vector<std::uint32_t> inside_groups_;  // rank x kinds + kind; no_inside: as alone
  std::vector<std::vector<std::uint32_t>> kinds_of_phase_;  // of collectives inside it
  std::vector<Time> fluid_of_channel_;
  std::vector<Time> pending_;  // fluid of a template's instance that is in its latency
  RadixHeap events_;
  std::vector<std::uint32_t> runnable_;
  std::uint32_t rank_ = 0;  // whose host advances
  std::int64_t now_ = 0;
  std::uint64_t items_ = 0;
};

}  // namespace orrery::models::traffic

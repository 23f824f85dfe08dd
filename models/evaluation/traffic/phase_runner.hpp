#pragma once
// Runs phases of ranks: by (max,+) maps where a rank waits for no other, or where its tensor group
// has one speed; operation by operation together with the other members where their speeds differ.
//
// Phases of a tensor group whose members have one speed but begin at different times. A member's
// lane times after a phase depend on its own times before it, by paths without a collective of the
// group, and through these collectives on the latest of each time over all members:
//   out = max(own (x) in, met (x) latest), with (x) the (max,+) product
// Source  Baccelli, Cohen, Olsder & Quadrat 1992, "Synchronization and Linearity", section 2.5

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/phase_maps.hpp"
#include "models/evaluation/traffic/sweep_state.hpp"

namespace orrery::models::traffic {

class TensorGroupMaps {
 public:
  /// blocks  of the Program, at the members' speed
  TensorGroupMaps(const Program& program, const std::vector<ChainBlock>& blocks);

  using States = std::span<Chain<NumberTime>* const>;

  /// Replaces the states of all members by those after the phase.
  void run(std::uint32_t phase, const Chain<NumberTime>& latest, States members) const {
    maps_[map_of_phase_[phase]].run(latest, members);
  }

 private:
  /// The maps of a phase, for the `size` entries of the state that it changes or reads.
  struct ReducedMap {
    using Matrix = std::array<std::array<std::int64_t, chain_states>, chain_states>;
    Matrix own, met;  // by entry of the state before, then after
    std::array<std::uint8_t, chain_states> states{};
    std::uint8_t size = 0;

    void run(const Chain<NumberTime>& latest, States members) const;
  };
  struct Pair;
  static Pair pair_of(const ChainBlock& block);
  static ReducedMap reduced(const Pair& pair);

  std::vector<ReducedMap> maps_;
  std::vector<std::uint32_t> map_of_phase_;
};

/// Runs phases: by maps where a rank waits for no other or its tensor group has one speed,
/// operation by operation together with the other members where their speeds differ.
class PhaseRunner {
 public:
  PhaseRunner(const PricedProgram& priced, const std::vector<double>& speeds);

  bool meets(std::uint32_t phase) const { return meets_[phase]; }
  bool host_waits(std::uint32_t phase) const { return host_waits_[phase]; }
  std::int64_t launches(std::uint32_t phase) const { return launches_[phase]; }
  /// Host time to launch what a phase has after a run of a block; nullopt: the host waits there.
  std::optional<std::int64_t> launches_after(std::uint32_t phase, std::size_t invocation,
                                             std::int64_t repeat) const;
  void run(std::uint32_t phase, RankTrack& rank) const { maps_[rank.speed].run(phase, rank.state); }
  void run_together(std::uint32_t phase, const std::vector<RankTrack*>& members);
  /// The same where all members have one speed. Returns the latest of their times before the phase.
  Chain<NumberTime> run_tensor_group(std::uint32_t phase, const std::vector<RankTrack*>& members);
  const ChainBlock& block(const RankTrack& rank, std::uint32_t id) const {
    return blocks_[rank.speed][id];
  }

 private:
  void run_block_together(std::uint32_t block, const std::vector<RankTrack*>& members);

  const Program& program_;
  std::vector<PhaseMaps> maps_;                  // by speed
  std::vector<std::vector<ChainBlock>> blocks_;  // by speed
  std::vector<char> meets_, host_waits_;
  std::vector<std::int64_t> launches_;
  /// Of one run of a block, or of the invocations from one on.
  struct HostRun {
    std::int64_t launches = 0;
    bool waits = false;
  };
  std::vector<HostRun> host_of_block_;
  std::vector<std::vector<HostRun>> host_from_;  // by phase and invocation, and nothing at the end
  std::vector<std::vector<NumberTime>> ends_;    // by member
  std::vector<std::unique_ptr<TensorGroupMaps>> tensor_group_maps_;  // by speed, once needed
  std::vector<Chain<NumberTime>*> states_;                           // by member
};

}  // namespace orrery::models::traffic

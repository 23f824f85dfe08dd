#pragma once
// Phases of a tensor group whose members have one speed but begin at different times. A member's
// lane times after a phase depend on its own times before it, by paths without a collective of the
// group, and through these collectives on the latest of each time over all members:
//   out = max(own (x) in, met (x) latest), with (x) the (max,+) product
// Source  Baccelli, Cohen, Olsder & Quadrat 1992, "Synchronization and Linearity", section 2.5

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/chain_times.hpp"

namespace orrery::models::traffic {

class UnitMaps {
 public:
  /// blocks  of the Program, at the members' speed
  UnitMaps(const Program& program, const std::vector<ChainBlock>& blocks);

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

}  // namespace orrery::models::traffic

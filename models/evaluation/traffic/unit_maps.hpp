#pragma once
// Phases of a tensor group whose members are of one speed and differ in when they begin. What a
// member's queues become depends on its own times by paths that no other member is on, and through
// a collective of the group on those of all alike, the latest of each:
//   out = max(own (x) in, met (x) latest)
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

  /// All states become those after the phase.
  void run(std::uint32_t phase, const Chain<NumberTime>& latest, States members) const {
    maps_[map_of_phase_[phase]].run(latest, members);
  }

 private:
  /// Of the states that a phase turns, `size` of them.
  struct Turn {
    using Matrix = std::array<std::array<std::int64_t, chain_states>, chain_states>;
    Matrix own, met;  // by state before, then after
    std::array<std::uint8_t, chain_states> states{};
    std::uint8_t size = 0;

    void run(const Chain<NumberTime>& latest, States members) const;
  };
  struct Pair;
  static Pair pair_of(const ChainBlock& block);
  static Turn turn_of(const Pair& pair);

  std::vector<Turn> maps_;
  std::vector<std::uint32_t> map_of_phase_;
};

}  // namespace orrery::models::traffic

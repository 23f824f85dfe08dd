#pragma once
// The phases of a Program as (max,+) maps, for evaluations other than evaluate_maps, which visit
// instructions in an order of their own.

#include <array>
#include <cstdint>
#include <vector>

#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/max_plus_map.hpp"
#include "models/evaluation/priced.hpp"

namespace orrery::models {

/// One map for each phase; phases that run the same blocks share it.
class PhaseMaps {
 public:
  explicit PhaseMaps(const PricedProgram& priced);

  /// `state` becomes the state after the phase.
  void run(std::uint32_t phase, Chain<NumberTime>& state) const;

 private:
  /// A map without the entries that it leaves as they are and on which no other entry depends.
  class ShortMap {
   public:
    explicit ShortMap(const MaxPlusMap& map);
    void apply(Chain<NumberTime>& state) const;

   private:
    /// `n` is at least size_; coefficients beyond size_ are `never`.
    template <int n>
    void apply_to(Chain<NumberTime>& state) const;

    std::array<std::array<std::int64_t, chain_states>, chain_states> columns_;
    std::array<std::uint8_t, chain_states> states_{};
    std::uint8_t size_ = 0;
  };

  std::vector<ShortMap> maps_;
  std::vector<std::uint32_t> map_of_phase_;
};

}  // namespace orrery::models

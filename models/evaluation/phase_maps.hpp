#pragma once
// The phases of a Program as (max,+) maps, for evaluations other than evaluate_maps, which visit
// instructions in an order of their own.

#include <memory>

#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/priced.hpp"

namespace orrery::models {

/// One map for each phase; phases that run the same blocks share it.
class PhaseMaps {
 public:
  explicit PhaseMaps(const PricedProgram& priced);
  PhaseMaps(PhaseMaps&&) noexcept;
  ~PhaseMaps();

  /// `state` becomes the state after the phase.
  void run(std::uint32_t phase, Chain<NumberTime>& state) const;

 private:
  struct Maps;
  std::unique_ptr<Maps> maps_;
};

}  // namespace orrery::models

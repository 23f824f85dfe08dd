#include "models/evaluation/priced.hpp"

namespace orrery::models {

PricedProgram at_speed(const PricedProgram& priced, double speed) {
  PricedProgram slower = priced;
  for (std::size_t b = 0; b < slower.blocks.size(); ++b) {
    for (std::size_t i = 0; i < slower.blocks[b].size(); ++i) {
      if (priced.program->blocks[b].operations[i].kind == OpKind::collective) continue;
      Time& duration = slower.blocks[b][i].duration;
      duration = scaled(duration, 1 / speed);
    }
  }
  return slower;
}

}  // namespace orrery::models

#include "models/evaluation/priced.hpp"

namespace orrery::models {

namespace {

/// Does a slower GPU take longer for it? Not for what its host does, copies over the host's link,
/// or collectives.
bool runs_on_gpu(const Operation& op) {
  return op.queue == Lane::compute && op.kind != OpKind::collective && op.kind != OpKind::copy;
}

}  // namespace

PricedProgram at_speed(const PricedProgram& priced, double speed) {
  PricedProgram slower = priced;
  for (std::size_t b = 0; b < slower.blocks.size(); ++b) {
    for (std::size_t i = 0; i < slower.blocks[b].size(); ++i) {
      if (!runs_on_gpu(priced.program->blocks[b].operations[i])) continue;
      Time& duration = slower.blocks[b][i].duration;
      duration = scaled(duration, 1 / speed);
    }
  }
  return slower;
}

}  // namespace orrery::models

#include "models/lowering/lower.hpp"

namespace orrery::models {

std::int64_t owned_parameters(const Program& program, const Phase& phase) {
  std::int64_t sum = 0;
  for (const Invocation& run : phase.invocations) {
    const BlockUse use = program.use_of(run.block);
    if (use.kind != nullptr) sum += run.count * use.kind->parameters;
  }
  return sum;
}

Bytes frozen_parameters(const Program& program, const Phase& phase) {
  Bytes sum{};
  for (const Invocation& run : phase.invocations) {
    const BlockUse use = program.use_of(run.block);
    if (use.kind != nullptr) sum += use.kind->frozen * run.count;
  }
  return sum;
}

}  // namespace orrery::models

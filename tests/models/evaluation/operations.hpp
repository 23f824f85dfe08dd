#pragma once
// Against which maps are checked, next to the event engine: one sweep, operation by operation.

#include "models/evaluation/chain.hpp"
#include "models/evaluation/sweep.hpp"

namespace orrery::models {

/// Runs a phase operation by operation.
class OperationRunner {
 public:
  explicit OperationRunner(const PricedProgram& priced) : program_{*priced.program} {
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      blocks_.emplace_back(priced, b);
    }
  }

  void operator()(std::uint32_t phase, Chain<NumberTime>& state) {
    const auto ignore = [](auto&&...) {};
    for (const Invocation& run : program_.phases[phase].invocations) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        run_block(blocks_[run.block], state, ends_, ignore);
      }
    }
  }

 private:
  const Program& program_;
  std::vector<ChainBlock> blocks_;
  std::vector<NumberTime> ends_;
};

inline StepTimes evaluate_operations(const PricedProgram& priced) {
  return Sweep{priced, OperationRunner{priced}}.run();
}

}  // namespace orrery::models

#pragma once
// Evaluates one block, operation by operation, for any type of time: with numbers it is the
// operation sweep, with (max,+) coefficients it gives the block's map. So the two agree by
// construction; the event engine is the independent check. Instructions between blocks: sweep.hpp.

#include <cstdint>
#include <vector>

#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/priced.hpp"

namespace orrery::models {

/// A block ready to evaluate: its prices and dependencies in flat arrays.
struct ChainBlock {
  struct Step {
    std::int64_t launch = 0, duration = 0, lead = 0, trail = 0;
    std::uint32_t after_begin = 0, after_end = 0;
    std::uint8_t queue = 0;
    bool host_waits = false, writes_output = false;
    bool collective = false;
    bool meets = false;  // a collective of the tensor group
  };
  std::vector<Step> steps;
  std::vector<OpId> after;

  ChainBlock() = default;
  ChainBlock(const PricedProgram& priced, std::size_t id);
};

/// Evaluates a block operation by operation from `state`, which becomes the state after the block.
/// `ends` is scratch space for the ends of its operations.
template <class V>
class BlockRun {
 public:
  BlockRun(const ChainBlock& block, Chain<V>& state, std::vector<V>& ends)
      : BlockRun{block, state, ends, V{state[state_io]}} {}
  /// Resumes a block whose output so far is ready at `output`.
  BlockRun(const ChainBlock& block, Chain<V>& state, std::vector<V>& ends, const V& output)
      : block_{block}, state_{state}, ends_{ends}, output_{output} {
    ends.resize(block.steps.size());
  }

  /// Launches operation `i`; returns when it can start.
  V start(std::size_t i) {
    const ChainBlock::Step& step = block_.steps[i];
    V& host = state_[state_host];
    host.advance(step.launch);
    V start = host;
    V free = state_[step.queue];
    free.advance(step.lead);
    start.raise(free);
    for (std::uint32_t at = step.after_begin; at < step.after_end; ++at) {
      const OpId id = block_.after[at];
      start.raise(id == block_input ? state_[state_io] : ends_[id]);
    }
    return start;
  }

  /// Ends operation `i` after its duration. `observe` is called with (index, launched, start, end).
  template <class Observe>
  void end(std::size_t i, const V& start, Observe&& observe) {
    V end = start;
    end.advance(block_.steps[i].duration);
    end_at(i, start, end, observe);
  }

  /// The same with a given end, where other ranks or shared links determine it.
  template <class Observe>
  void end_at(std::size_t i, const V& start, const V& end, Observe&& observe) {
    const ChainBlock::Step& step = block_.steps[i];
    V& host = state_[state_host];
    observe(i, host, start, end);
    V& queue = state_[step.queue];
    queue = end;
    queue.advance(step.trail);
    ends_[i] = end;
    if (step.host_waits) host.raise(end);
    if (step.writes_output) output_ = end;
  }

  void finish() { state_[state_io] = output_; }
  const V& output() const { return output_; }

 private:
  const ChainBlock& block_;
  Chain<V>& state_;
  std::vector<V>& ends_;
  V output_;
};

/// Evaluates a whole block. `observe` is called for each operation in order.
template <class V, class Observe>
void run_block(const ChainBlock& block, Chain<V>& state, std::vector<V>& ends, Observe&& observe) {
  BlockRun<V> run{block, state, ends};
  for (std::size_t i = 0; i < block.steps.size(); ++i) run.end(i, run.start(i), observe);
  run.finish();
}

}  // namespace orrery::models

#pragma once
// The samples of a step on one rank: the tokens and labels that enter, and the loss that comes out.

#include <memory>
#include <optional>
#include <vector>

#include "executor/run/held_memory.hpp"
#include "executor/run/rank_context.hpp"

namespace orrery::executor {

class Reducer;

class Samples {
 public:
  Samples(const RankContext& rank, HeldMemory& memory);

  /// The micro-batches of this data rank.
  void load(std::int64_t step);
  /// Null where neither embedding nor head is here.
  std::byte* tokens(std::int64_t micro_batch) const { return part(micro_batch); }
  std::byte* labels(std::int64_t micro_batch) const {
    return part(rank_.program.step.micro_batches + micro_batch);
  }

  /// Of the mean over the global batch, the weight of one label.
  double weight() const;
  /// What the head of a micro-batch leaves for its backward, among its operands.
  void keep_statistics(std::int64_t micro_batch, const std::vector<View>& operands);
  /// Puts the loss into the outcome. All ranks together, when the step has ended.
  void report(Reducer& reducer, StepOutcome& outcome) const;

 private:
  std::byte* part(std::int64_t number) const;
  /// Tokens of a sequence that have a label.
  std::int64_t labelled() const;
  /// Sum over this rank's micro-batches; bits of a double, or in the ring an integer.
  std::uint64_t known_loss() const;

  std::int64_t tokens() const {  // of a micro-batch, on this rank
    return rank_.program.step.sequences * std::ssize(rank_.tokens.places);
  }

  const RankContext& rank_;
  std::unique_ptr<TokenSource> own_;
  const TokenSource& source_;
  std::byte *batch_ = nullptr, *statistics_ = nullptr;
  bool fills_in_ = false;               // masked tokens, rather than each next one
  std::optional<std::size_t> operand_;  // of the head, that the statistics are
  View view_;                           // ... of one micro-batch
};

}  // namespace orrery::executor

#pragma once
// The samples of a step on one rank: takes their tokens and labels from the rank's reader
// (reader.hpp) to the device, and computes the loss when the step has ended.

#include <memory>
#include <optional>
#include <vector>

#include "executor/run/held_memory.hpp"
#include "executor/run/rank_context.hpp"
#include "executor/run/reader.hpp"

namespace orrery::executor {

class Reducer;

/// Tokens, labels and loss of one rank.
class Samples {
 public:
  Samples(const RankContext& rank, HeldMemory& memory);

  /// Copies the micro-batches of this data rank to the device, once they are read.
  void load(std::int64_t step);
  /// What the last load took and waited for.
  const InputTimes& times() const { return times_; }
  /// Device addresses; null where this rank has neither embedding nor head.
  std::byte* tokens(std::int64_t micro_batch) const { return part(micro_batch); }
  std::byte* labels(std::int64_t micro_batch) const {
    return part(rank_.program.step.micro_batches + micro_batch);
  }

  /// Tokens that an encoder reads.
  std::byte* source(std::int64_t micro_batch) const {
    return batch_ == nullptr
               ? nullptr
               : part(2 * rank_.program.step.micro_batches) + micro_batch * source_tokens() * 8;
  }

  /// Weight of one label in the mean loss over the global batch.
  double weight() const;
  /// Copies the loss statistics that the head's forward leaves for its backward; `operands` are
  /// those of the head's block.
  void keep_statistics(std::int64_t micro_batch, const std::vector<View>& operands);
  /// Writes the loss into the outcome. Collective over the world, when the step has ended.
  void report(Reducer& reducer, StepOutcome& outcome) const;

 private:
  std::byte* part(std::int64_t number) const {
    return batch_ == nullptr ? nullptr : batch_ + number * tokens() * 8;
  }
  BatchShape shape() const;
  /// Tokens of a sequence that have a label.
  std::int64_t labelled() const;
  /// This rank's part of the loss, over its micro-batches: the bits of a double, or in ring
  /// arithmetic an integer.
  std::uint64_t known_loss() const;

  std::int64_t source_tokens() const {  // of a micro-batch
    return rank_.program.step.sequences * rank_.program.step.source_len;
  }
  std::int64_t tokens() const {  // of a micro-batch, on this rank
    return rank_.program.step.sequences * std::ssize(rank_.tokens.places);
  }

  const RankContext& rank_;
  std::unique_ptr<TokenSource> own_;
  const TokenSource& source_;
  std::unique_ptr<Reader> reader_;  // null where this rank reads nothing
  InputTimes times_;
  std::byte *batch_ = nullptr, *statistics_ = nullptr;
  bool fills_in_ = false;               // predicts masked tokens, not each next one
  std::optional<std::size_t> operand_;  // the head's operand that holds the statistics
  View view_;                           // the statistics of one micro-batch, without data
};

}  // namespace orrery::executor

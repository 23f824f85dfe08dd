#pragma once
// All-to-alls of experts' rows. In memory every expert has as many slots for each rank that sends
// to it; on the wire go the rows that routing put there, expert by expert. Before the first of a
// block ranks send each other how many rows they have for each expert: an all-to-all of 8 bytes for
// each.
//
// Where ranks cut an expert (expert_tensor) what they gather and sum are slots still.

#include <vector>

#include "executor/run/rank_context.hpp"

namespace orrery::executor {

/// What /plan/imbalance means, as it was: rows of the busiest rank of each group over the group's
/// mean, over every time that tokens were routed. 1 where none were.
double measured_imbalance(const std::vector<RoutedBytes>& ranks);

class ExpertRows {
 public:
  explicit ExpertRows(const RankContext& rank);
  ~ExpertRows();
  ExpertRows(const ExpertRows&) = delete;
  ExpertRows& operator=(const ExpertRows&) = delete;

  void begin_step() { sent_ = {}; }
  /// A block begins: its tokens are routed anew.
  void begin_block() { known_ = false; }
  /// Does the block route tokens?
  bool routes(std::uint32_t block) const { return chosen_[block] >= 0; }
  /// Before rows are put into slots: the host looks whether all of them find one, or are dropped.
  /// Errors  RunFailure{invalid_program} saying what the plan would need
  void require_room(const models::Operation& dispatch, const std::vector<View>& views) const;
  /// What goes where in the operation, an all-to-all of the block; slots without rows are zeroed
  /// where experts will read them.
  void fill(std::uint32_t block, const models::Operation& op, const std::vector<View>& views,
            CollectiveCall& call);
  const RoutedBytes& sent() const { return sent_; }  // since begin_step

 private:
  struct Ends;

  std::vector<std::int64_t> rows_of_experts(const View& chosen, std::int64_t experts) const;
  void exchange_counts(const models::Operation& op, const View& chosen, std::int64_t experts,
                       std::int64_t room);

  const RankContext& rank_;
  std::vector<int> chosen_;      // by block: the operand that names each token's experts; -1: none
  std::byte* buffer_ = nullptr;  // of the device, for counts: this rank's, then those for it
  bool known_ = false;
  std::vector<std::int64_t> own_;       // rows of each expert
  std::vector<std::int64_t> arriving_;  // [member][local expert]
  RoutedBytes sent_;
};

}  // namespace orrery::executor

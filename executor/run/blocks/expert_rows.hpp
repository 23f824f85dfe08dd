#pragma once
// The all-to-alls of expert parallelism. In memory every expert has the same number of slots for
// each rank that sends to it; only the rows that routing put there are sent, expert by expert
// (all_to_all_v). Before the first of them in a block, ranks send each other how many rows they
// have for each expert: an all-to-all of 8 bytes per expert.
//
// Where an expert is sharded (expert_tensor), its ranks still gather and sum all slots.

#include <vector>

#include "executor/run/rank_context.hpp"

namespace orrery::executor {

/// The measured value of /plan/imbalance: rows of the busiest rank of each expert-parallel group
/// over the group's mean, both summed over every time that tokens were routed. 1 where none were.
double measured_imbalance(const std::vector<RoutedBytes>& ranks);

/// Row counts of one rank's routed tokens, and the all-to-alls that they shape.
class ExpertRows {
 public:
  explicit ExpertRows(const RankContext& rank);
  ~ExpertRows();
  ExpertRows(const ExpertRows&) = delete;
  ExpertRows& operator=(const ExpertRows&) = delete;

  void begin_step() { sent_ = {}; }
  /// Call before each block: its tokens are routed anew, so the counts are unknown.
  void begin_block() { known_ = false; }
  /// Does the block route tokens?
  bool routes(std::uint32_t block) const { return chosen_[block] >= 0; }
  /// Call before a dispatch: the host checks that every row finds a slot, or that the operation
  /// drops those that do not.
  /// Errors  RunFailure{invalid_program} saying what the plan would need
  void require_room(const models::Operation& dispatch, const std::vector<View>& views) const;
  /// Fills in an all-to-all of the block: which rows go to and come from which member. Slots
  /// without rows are zeroed where experts will read them.
  void fill(std::uint32_t block, const models::Operation& op, const std::vector<View>& views,
            CollectiveCall& call);
  const RoutedBytes& sent() const { return sent_; }  // since begin_step

 private:
  struct Ends;

  std::vector<std::int64_t> rows_of_experts(const View& chosen, std::int64_t experts) const;
  void exchange_counts(const models::Operation& op, const View& chosen, std::int64_t experts,
                       std::int64_t room);

  const RankContext& rank_;
  std::vector<int> chosen_;             // by block: the operand with each token's experts; -1: none
  std::byte* buffer_ = nullptr;         // device memory for counts: sent ones, then received ones
  bool known_ = false;                  // are the counts those of the running block?
  std::vector<std::int64_t> own_;       // this rank's rows for each expert
  std::vector<std::int64_t> arriving_;  // rows for this rank's experts, [member][local expert]
  RoutedBytes sent_;
};

}  // namespace orrery::executor

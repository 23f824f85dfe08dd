#pragma once
// The end of a step on one rank: the gradient norm, the loss scale, and the Adam update of the
// elements that the rank owns, with the copies to and from the host where the host updates.

#include "executor/run/loss_scale.hpp"
#include "executor/run/reducer/reducer.hpp"

namespace orrery::executor {

/// Runs the optimizer phases of one rank.
class Optimizer {
 public:
  Optimizer(const RankContext& rank, Weights& weights, Reducer& reducer);

  void begin_step(std::int64_t step);
  /// Runs an optimizer phase: this rank's sum of squared gradients, or the update.
  void run(models::Token i);
  /// Sums the squares over all ranks; the host waits for the result.
  void norm(models::Token i);
  void report(StepOutcome& outcome) const;

  LossScale& loss_scale() { return scale_; }
  /// After a load of a state that has seen `steps` steps, skipped updates included.
  void resume(std::int64_t steps) { updates_ = steps - scale_.state().skipped; }

 private:
  void run(const models::Operation& op, const models::Block& block);
  void in_order(models::Lane queue);
  void squared_norm(const models::Operation& op);
  void to_host(const models::Operation& op);
  void to_device(const models::Operation& op);
  void adam(const models::Operation& op);
  void skip_update();
  std::vector<Span> updated_ranges() const;
  void update(const models::Operation& op, const AdamStep& numbers, const Span& range);

  const RankContext& rank_;
  Weights& weights_;
  Reducer& reducer_;
  LossScale scale_;
  std::int64_t step_ = 0, updates_ = 0;
  models::Lane queue_ = models::Lane::compute;  // of the last operation
  bool skipped_ = false;                        // this step's update was skipped
  bool gradients_seen_ = false;                 // settings.before_update was called in this step
  double norm_ = 0;
  std::uint64_t ring_norm_ = 0;
};

}  // namespace orrery::executor

#pragma once
// The end of a step: the gradients' norm, the loss's scale, and the update of what a rank owns.

#include "executor/run/loss_scale.hpp"
#include "executor/run/reducer.hpp"

namespace orrery::executor {

class Optimizer {
 public:
  Optimizer(const RankContext& rank, Weights& weights, Reducer& reducer);

  void begin_step(std::int64_t step);
  /// Runs a phase of the step: squares of the gradients summed, or the update.
  void run(models::Token i);
  /// The sum of squares over all ranks, read by the host.
  void norm(models::Token i);
  void report(StepOutcome& outcome) const;

  LossScale& loss_scale() { return scale_; }
  /// After a load: steps that the state has seen, but for the updates left out.
  void resume(std::int64_t steps) { updates_ = steps - scale_.state().skipped; }

 private:
  void squared_norm(const models::Operation& op);
  void adam(const models::Operation& op);
  void leave_out_update();
  void update(const models::Operation& op, const AdamStep& numbers, std::int64_t local,
              std::int64_t count);

  const RankContext& rank_;
  Weights& weights_;
  Reducer& reducer_;
  LossScale scale_;
  std::int64_t step_ = 0, updates_ = 0;
  bool gradients_seen_ = false;  // by settings.before_update, in this step
  double norm_ = 0;
  std::uint64_t ring_norm_ = 0;
};

}  // namespace orrery::executor

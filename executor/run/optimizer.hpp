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
  void run(const models::Operation& op, const models::Block& block);
  void in_order(models::Lane queue);
  void squared_norm(const models::Operation& op);
  void to_host(const models::Operation& op);
  void to_device(const models::Operation& op);
  void adam(const models::Operation& op);
  void leave_out_update();
  std::vector<Span> updated_ranges() const;
  void update(const models::Operation& op, const AdamStep& numbers, const Span& range);

  const RankContext& rank_;
  Weights& weights_;
  Reducer& reducer_;
  LossScale scale_;
  std::int64_t step_ = 0, updates_ = 0;
  models::Lane queue_ = models::Lane::compute;  // that the last operation ran on
  bool left_out_ = false;                       // the update of this step
  bool gradients_seen_ = false;                 // by settings.before_update, in this step
  double norm_ = 0;
  std::uint64_t ring_norm_ = 0;
};

}  // namespace orrery::executor

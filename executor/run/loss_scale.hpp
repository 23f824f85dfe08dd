#pragma once
// Dynamic loss scaling for fp16, whose gradients underflow below 2^-24: backward begins from the
// loss times the scale; the gradient norm and the update divide by it again. The scale is a power
// of two, so that it causes no rounding, and is kept as large as the gradients allow:
//   a norm that is not finite  the update is skipped, the scale is halved
//   2000 updates in a row      the scale is doubled
// In other formats the scale is 1. An update whose norm is not finite is skipped there, too,
// because it would make every weight NaN. Ten skipped updates in a row that no smaller scale could
// have saved end the run. Source  Micikevicius et al. 2018, arXiv 1710.03740; the numbers are those
// of PyTorch's GradScaler

#include <cstdint>

namespace orrery::executor {

inline constexpr double first_loss_scale = 65536;
inline constexpr std::int64_t updates_until_growth = 2000;
inline constexpr int most_unfixable = 10;

/// The part of the loss scale that a checkpoint keeps.
struct LossScaleState {
  double value = 1;
  std::int64_t good = 0;     // updates since it last changed
  std::int64_t skipped = 0;  // updates skipped so far
};

/// The loss scale and its adaptation.
class LossScale {
 public:
  /// A scale that stays 1.
  LossScale() = default;
  /// A dynamic scale that begins at `first`.
  explicit LossScale(double first) : state_{.value = first}, dynamic_{true} {}

  double value() const { return state_.value; }
  const LossScaleState& state() const { return state_; }
  /// Is there anything that a checkpoint must keep?
  bool counts() const { return dynamic_ || state_.skipped > 0; }
  /// Restores a checkpoint's state; a scale that stays 1 takes only the count of skipped updates.
  void load(const LossScaleState& state) {
    state_ = dynamic_ ? state : LossScaleState{.skipped = state.skipped};
  }

  /// Called once per step with its gradient norm: adapts the scale (never below 1) and returns
  /// whether to update.
  bool accept(double norm);
  /// Were `most_unfixable` updates in a row skipped that a smaller scale could not have saved?
  bool diverged() const { return unfixable_ >= most_unfixable; }

 private:
  LossScaleState state_;
  int unfixable_ = 0;
  bool dynamic_ = false;
};

}  // namespace orrery::executor

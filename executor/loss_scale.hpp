#pragma once
// The scale of the loss in fp16, whose gradients vanish below 2^-24: backward begins from the loss
// times the scale, and the gradients' norm and the update take it out again. A power of two, so
// that nothing is rounded by it; as large as the gradients bear, found by trying:
//   a norm that is not finite  no update, and half the scale
//   2000 updates in a row      twice the scale
// Source  Micikevicius et al. 2018, arXiv 1710.03740; the numbers are those of PyTorch's GradScaler

#include <cstdint>

namespace orrery::executor {

inline constexpr double first_loss_scale = 65536;
inline constexpr std::int64_t updates_until_growth = 2000;

/// What a checkpoint keeps of it.
struct LossScaleState {
  double value = 1;
  std::int64_t good = 0;     // updates since it last changed
  std::int64_t skipped = 0;  // updates left out so far
};

class LossScale {
 public:
  /// 1, whatever happens.
  LossScale() = default;
  explicit LossScale(double first) : state_{.value = first}, moves_{true} {}

  double value() const { return state_.value; }
  const LossScaleState& state() const { return state_; }
  /// Has it done anything that a checkpoint must keep?
  bool counts() const { return moves_ || state_.skipped > 0; }
  /// Where nothing is scaled, of a run that did: how many updates it had left out.
  void load(const LossScaleState& state) {
    state_ = moves_ ? state : LossScaleState{.skipped = state.skipped};
  }

  /// Once in each step, behind its norm: is it to be an update? Never below a scale of 1.
  bool accept(double norm);

 private:
  LossScaleState state_;
  bool moves_ = false;
};

}  // namespace orrery::executor

#pragma once
// The scale of the loss in fp16, whose gradients vanish below 2^-24: backward begins from the loss
// times the scale, and the gradients' norm and the update take it out again. A power of two, so
// that nothing is rounded by it; as large as the gradients bear, found by trying:
//   a norm that is not finite  no update, and half the scale
//   2000 updates in a row      twice the scale
// In other formats the scale is 1, and an update whose norm is not finite is left out all the same:
// it would make every weight NaN. Where no smaller scale can help, ten such steps in a row end the
// run.
// Source  Micikevicius et al. 2018, arXiv 1710.03740; the numbers are those of PyTorch's GradScaler

#include <cstdint>

namespace orrery::executor {

inline constexpr double first_loss_scale = 65536;
inline constexpr std::int64_t updates_until_growth = 2000;
inline constexpr int most_without_remedy = 10;

/// What a checkpoint keeps of it.
struct LossScaleState {
  double value = 1;
  std::int64_t good = 0;     // updates since it last changed
  std::int64_t skipped = 0;  // updates left out so far
};

class LossScale {
 public:
  /// Stays 1.
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

  /// Once in each step, after its norm: is it to be an update? Never below a scale of 1.
  bool accept(double norm);
  /// Were so many updates left out in a row, none of them for too large a scale, that training has
  /// no way on?
  bool hopeless() const { return without_remedy_ >= most_without_remedy; }

 private:
  LossScaleState state_;
  int without_remedy_ = 0;
  bool moves_ = false;
};

}  // namespace orrery::executor

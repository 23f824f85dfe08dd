// A Runner's state for checkpoints.

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/run/weights/weights.hpp"

namespace orrery::executor {

CheckpointState state_of(Runner& runner) {
  return {
      .runs = runner.layout().runs(),
      .read = [&runner](StateKind kind, std::int64_t local, std::int64_t count,
                        void* to) { runner.weights().read_state(kind, local, count, to); },
      .load = [&runner](
                  StateKind kind, std::int64_t local, std::int64_t count,
                  const void* from) { runner.weights().load_state(kind, local, count, from); },
      .loss_scale = runner.loss_scale(),
      .load_loss_scale = [&runner](const LossScaleState& state) { runner.load_loss_scale(state); }};
}

}  // namespace orrery::executor

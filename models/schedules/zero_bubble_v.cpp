#include <algorithm>

#include "models/schedules/vee.hpp"

namespace orrery::models {

namespace {

/// Warm-up and steady state.
void begin(VeeStage& of, std::int64_t stages, std::int64_t stage, std::int64_t count) {
  of.forwards(0, 2 * (stages - stage) - 1);
  for (std::int64_t i = 0; i < stage; ++i) {
    of.forwards(1, 1);
    of.forwards(0, 1);
  }
  for (std::int64_t i = 0; i < stages - stage; ++i) {
    of.forwards(1, 1);
    of.backward(1);
  }
  while (of.forwards_of(1) < of.forwards_of(0) || of.forwards_of(0) < count) {
    if (of.forwards_of(0) < count) of.forwards(0, 1);
    of.backward(0);
    of.forwards(1, 1);
    of.backward(1);
  }
}

}  // namespace

/// ZB-V: two chunks on each stage, placed as a V. Every stage holds as many activations as 1F1B's
/// first stage; if forward, backward and weight gradient take equally long, no stage is idle
/// between its first slot and its last. Laid out for at least 2 stages - 1 micro-batches; with
/// fewer, slots of missing micro-batches are left out.
/// Source  Qi et al. 2024, "Pipeline parallelism with controllable memory", arXiv 2405.15362
void zero_bubble_v(const PipelineShape& shape, std::int64_t stage, Slots& slots) {
  VeeStage of{shape, stage, slots};
  begin(of, shape.stages, stage, std::max(2 * shape.stages - 1, shape.micro_batches));
  for (std::int64_t i = 0; i < stage; ++i) {
    of.input_gradient(0);
    of.input_gradient(1);
  }
  for (std::int64_t i = 0; i < shape.stages - stage; ++i) {
    of.input_gradient(0);
    of.weight_gradient_of(0);
  }
  of.weight_gradients_of(1);
  of.weight_gradients_of(0);
}

std::vector<std::string> vee_unmet(const PipelineShape& shape) {
  std::vector<std::string> lacks;
  if (shape.stages == 1) lacks.emplace_back("pipeline above 1");
  if (shape.virtual_stages != 2) lacks.emplace_back("virtual_stages 2");
  return lacks;
}

}  // namespace orrery::models

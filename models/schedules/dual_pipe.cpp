#include <fmt/format.h>

#include <algorithm>

#include "models/schedules/vee.hpp"

namespace orrery::models {

namespace {

/// DualPipe's eight steps for one stage. `stages`: how many a direction has before it turns, half
/// of DualPipe's and all of DualPipeV's.
void eight_steps(VeeStage& of, std::int64_t stages, std::int64_t stage,
                 std::int64_t micro_batches) {
  const std::int64_t below = stages - stage - 1;
  of.forwards(0, 2 * below);
  for (std::int64_t i = 0; i <= stage; ++i) {
    of.forwards(0, 1);
    of.forwards(1, 1);
  }
  for (std::int64_t i = 0; i < below; ++i) {
    of.backward(1);
    of.forwards(1, 1);
  }
  for (std::int64_t i = 0; i < micro_batches - stages - below; ++i) {
    of.forwards(0, 1);
    of.backward(1);
    of.forwards(1, 1);
    of.backward(0);
  }
  for (std::int64_t i = 0; i < below; ++i) {
    of.backward(1);
    of.forwards(1, 1);
    of.backward(0);
  }
  // The second half of the remaining backwards defers its weight gradients to the end.
  const std::int64_t left = 2 * (stage + 1);
  for (std::int64_t i = 0; i < left; ++i) {
    const std::size_t which = i % 2 == 0 ? 1 : 0;
    i <= stage ? of.backward(which) : of.input_gradient(which);
  }
  for (std::int64_t i = 0; i < below; ++i) {
    of.weight_gradient();
    of.input_gradient(0);
  }
  for (std::int64_t i = 0; i <= stage; ++i) of.weight_gradient();
}

}  // namespace

/// DualPipe. Micro-batches enter at both ends of the pipeline; each stage holds a chunk of both
/// copies of the model. Forward of one micro-batch and backward of another are paired in
/// consecutive slots, so that transfers and all-to-alls of one overlap with kernels of the other
/// (expert_overlap micro-batches: lowering/unpaired_passes.cpp); their kernels take turns on the
/// compute lane.
///   bubble = (stages / 2 - 1) (pair + full backward - 3 weight gradient)
/// where both halves of a pair end together and a weight gradient takes as long as a forward; less
/// where they take turns:
///   bubble = (stages / 2 - 1) (forward + input gradient - weight gradient)
/// Source  DeepSeek-AI 2024, arXiv 2412.19437, table 2; its eight steps: github.com/deepseek-ai/
///         DualPipe, dualpipe.py
void dual_pipe(const PipelineShape& shape, std::int64_t stage, Slots& slots) {
  const std::int64_t half = shape.stages / 2, mirror = shape.stages - 1 - stage;
  const std::int64_t share = shape.micro_batches / 2;
  const VeeStage::VeeSide down{stage, 0, share};
  const VeeStage::VeeSide up{shape.stages + mirror, share, 2 * share};
  const bool enters_down = stage < half;
  VeeStage of{{enters_down ? down : up, enters_down ? up : down}, slots};
  eight_steps(of, half, std::min(stage, mirror), share);
}

/// DualPipeV: DualPipe folded onto half the stages, so that parameters are held once.
/// Source  github.com/deepseek-ai/DualPipe, dualpipev.py
void dual_pipe_v(const PipelineShape& shape, std::int64_t stage, Slots& slots) {
  VeeStage of{shape, stage, slots};
  eight_steps(of, shape.stages, stage, shape.micro_batches);
}

std::vector<std::string> dual_pipe_unmet(const PipelineShape& shape) {
  std::vector<std::string> lacks;
  if (shape.stages % 2 != 0) lacks.emplace_back("an even number of pipeline stages");
  if (shape.micro_batches % 2 != 0 || shape.micro_batches < 2 * shape.stages) {
    lacks.push_back(fmt::format("an even number of at least {} micro-batches, found {}",
                                2 * shape.stages, shape.micro_batches));
  }
  return lacks;
}

std::vector<std::string> dual_pipe_v_unmet(const PipelineShape& shape) {
  std::vector<std::string> lacks = vee_unmet(shape);
  if (shape.micro_batches < 2 * shape.stages) {
    lacks.push_back(fmt::format("at least {} micro-batches (twice the stages), found {}",
                                2 * shape.stages, shape.micro_batches));
  }
  return lacks;
}

}  // namespace orrery::models

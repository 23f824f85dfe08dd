#include "models/lowering/lower.hpp"

#include <utility>

#include "models/model/operation_list.hpp"

namespace orrery::models {

Program lower(const BlockInputs& inputs) {
  Program program = schedule_slots(inputs);
  program = insert_recompute(std::move(program), inputs.plan);
  program = insert_reference(std::move(program), inputs.plan.task);
  program = insert_collectives(std::move(program), inputs.software.overlap.tensor_backward,
                               inputs.software.gathered);
  program = insert_host_waits(std::move(program), inputs);
  program = offload_activations(std::move(program), inputs.plan);
  program = split_backward(std::move(program), inputs.plan.stages.deferred_head_gradients > 0
                                                   ? SplitKinds::head
                                                   : SplitKinds::all);
  program = insert_transfers(std::move(program));
  if (!inputs.model.list || inputs.model.list->trains()) {
    program = insert_gradient_reduction(std::move(program), inputs);
    program = insert_shards(std::move(program), inputs);
    program = insert_optimizer(std::move(program), inputs);
  }
  program = recompute_by_micro_batch(std::move(program), inputs.plan);
  program = bind_buffers(std::move(program), inputs);
  program = mark_unpaired_passes(std::move(program), inputs);
  return name_tokens(std::move(program));
}

}  // namespace orrery::models

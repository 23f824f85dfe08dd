#pragma once
// Which plans a stack can run, as its profile states with a source: the ZeRO stages it implements
// (FSDP is ZeRO-3; with parameters kept after forward, ZeRO-2), whether it has tensor and pipeline
// parallelism, and its forms of context parallelism. Leaves out which of these can be combined.

#include <string>
#include <vector>

#include "models/plan/plan.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

struct RunnablePlans {
  std::vector<Zero> zero{Zero::none, Zero::one};  // in ascending order
  bool tensor = true, pipeline = true;
  std::vector<ContextForm> context;    // the default first; empty: no context parallelism
  std::vector<std::string> schedules;  // pipeline schedules that a search tries besides the usual
  /// The experts' outputs for a rank's tokens are saved for backward, which computes the gradients
  /// of the router's weights from them. Not stated: not counted.
  bool keeps_expert_outputs = false;
  /// Runs mxfp8 and nvfp4 on any GPU by emulation: quantised blocks are decoded to the format of
  /// activations and multiplied in that.
  bool decodes_blocks = false;
  std::string source;  // empty: the profile does not say; the defaults above hold
};

/// `{"zero": [0, 1], "tensor": true, "pipeline": true, "context": ["ring"], "schedules": ["zb-v"],
/// "keeps_expert_outputs": true, "decodes_blocks": true, "source": TEXT}`. Absent tensor and
/// pipeline are true; absent context and schedules are empty, absent flags false.
/// Errors  stages that do not ascend, a stage above 3, an unknown schedule, no source
RunnablePlans read_runnable(const Node& node);

/// The ZeRO stages as text: "0, 1".
std::string stages_of(const RunnablePlans& plans);

/// What the stack cannot run of a plan, one message per field: "/plan/zero: ZeRO stage 3
/// is not supported by megatron-lm; supported: 0, 1".
std::vector<std::string> not_run(const Plan& plan, const RunnablePlans& plans,
                                 const std::string& stack);

}  // namespace orrery::models

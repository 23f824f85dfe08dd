#pragma once
// Which plans a stack can run, as its profile states with a source: the ZeRO stages that its code
// has (FSDP is ZeRO-3, with parameters kept after forward ZeRO-2), whether it cuts layers
// (tensor) or the list of layers (pipeline), and how it cuts sequences (context). Leaves out which
// of these go together.

#include <string>
#include <vector>

#include "models/plan/plan.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

struct RunnablePlans {
  std::vector<Zero> zero{Zero::none, Zero::one};  // by rising stage
  bool tensor = true, pipeline = true;
  std::vector<ContextForm> context;    // the usual one first; empty: no context parallelism
  std::vector<std::string> schedules;  // that a search tries next to the usual ones
  /// With experts: what they made of a rank's tokens is kept until backward, where the gradients of
  /// the weights that it was added up with are made of it. Not stated: not counted.
  bool keeps_expert_outputs = false;
  /// mxfp8 and nvfp4 on any GPU, by reference arithmetic: what blocks mean is written in the format
  /// of activations and multiplied in that.
  bool decodes_blocks = false;
  std::string source;  // empty: the profile does not say; the above is taken
};

/// `{"zero": [0, 1], "tensor": true, "pipeline": true, "context": ["ring"], "schedules": ["zb-v"],
/// "keeps_expert_outputs": true, "decodes_blocks": true, "source": TEXT}`; of tensor and pipeline
/// true where left out, of the others none.
/// Errors  stages that do not rise, a stage above 3, an unknown schedule, no source
RunnablePlans read_runnable(const Node& node);

/// "0, 1": the stages.
std::string stages_of(const RunnablePlans& plans);

/// What of a plan is not among these: "/plan/zero: 3 is not run by megatron-lm, which has 0, 1".
std::vector<std::string> not_run(const Plan& plan, const RunnablePlans& plans,
                                 const std::string& stack);

}  // namespace orrery::models

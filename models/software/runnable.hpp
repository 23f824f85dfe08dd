#pragma once
// Which plans a stack can run, as its profile states with a source: the ZeRO stages it implements
// (FSDP is ZeRO-3; with parameters kept after forward, ZeRO-2), whether it has tensor and pipeline
// parallelism, its forms of context parallelism, how it sends tokens to experts and what overlaps
// with that. Leaves out which of these can be combined, but for experts.

#include <string>
#include <vector>

#include "models/plan/plan.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

struct RunnablePlans {
  std::vector<Zero> zero{Zero::none, Zero::one};  // in ascending order
  bool tensor = true, pipeline = true;
  /// ZeRO-2 and ZeRO-3 in a pipeline, too: a search tries them there.
  bool shards_in_pipelines = false;
  std::vector<ContextForm> context;    // the default first; empty: no context parallelism
  std::vector<std::string> schedules;  // pipeline schedules that a search tries besides the usual
  /// How tokens may reach their experts, and what may overlap with that besides nothing. Empty: the
  /// profile does not say; a search tries alltoall, and no overlap.
  std::vector<Dispatcher> dispatchers;
  std::vector<ExpertOverlap> expert_overlaps;
  /// Modules of which a search tries every combination where layers recompute selectively. Empty:
  /// the profile does not say; a search tries the plan's own.
  std::vector<RecomputeModule> recompute_modules;
  /// The experts' outputs for a rank's tokens are saved for backward, which computes the gradients
  /// of the router's weights from them. Not stated: not counted.
  bool keeps_expert_outputs = false;
  /// Runs mxfp8 and nvfp4 on any GPU by emulation: quantised blocks are decoded to the format of
  /// activations and multiplied in that.
  bool decodes_blocks = false;
  std::string source;  // empty: the profile does not say; the defaults above hold
};

/// `{"zero": [0, 1], "tensor": true, "pipeline": true, "shards_in_pipelines": true, "context":
/// ["ring"], "schedules": ["zb-v"], "dispatchers": ["alltoall", "deepep"], "expert_overlaps":
/// ["shared"], "recompute_modules": ["core_attn", "mlp"], "keeps_expert_outputs": true,
/// "decodes_blocks": true, "source": TEXT}`. Absent tensor and pipeline are true; absent lists are
/// empty, absent flags false. Errors  stages that do not ascend, a stage above 3, an unknown
/// schedule, no source
RunnablePlans read_runnable(const Node& node);

/// The ZeRO stages as text: "0, 1".
std::string stages_of(const RunnablePlans& plans);

/// Whether the stack can run what a plan says about dispatcher and expert_overlap.
bool runs_experts(const Plan& plan, const RunnablePlans& plans);

/// What the stack cannot run of a plan, one message per field: "/plan/zero: ZeRO stage 3
/// is not supported by megatron-lm; supported: 0, 1". The overlap of experts' all-to-alls with
/// another micro-batch needs experts over ranks, virtual stages in a pipeline, and no full
/// recomputation; that with shared experts needs the dispatcher alltoall.
/// Source  Megatron-Core 0.14, transformer/transformer_config.py and transformer/moe/README.md;
///         Megatron-Bridge, docs/training/communication-overlap.md
std::vector<std::string> not_run(const Plan& plan, const RunnablePlans& plans,
                                 const std::string& stack);

}  // namespace orrery::models

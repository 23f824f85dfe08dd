#pragma once
// Runs one rank of a lowered Program for real: operation by operation in the Program's order, on
// buffers bound and freed where it says, with what ranks say to each other through a fabric. It
// never touches operands itself, only through the Device.
//
// Parameters are drawn by their index in the uncut model, so every cut starts from the same ones.
// Gradients are sums over the global batch of the mean loss, so every reduction is a plain sum.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"
#include "executor/layout/state.hpp"
#include "executor/run/loss_scale.hpp"
#include "executor/run/settings.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::executor {

/// Errors  RunFailure{invalid_program} naming what this executor or the device lacks: constructor.
/// All: RunFailure from the fabric (a peer failed) or the device.
class Runner {
 public:
  /// Collective over the world: makes the groups, binds memory, draws the parameters that this rank
  /// updates and gathers the others. Program, device and fabric outlive the runner.
  Runner(const models::Program& program, const models::Software& software, Device& device,
         Fabric& fabric, RunSettings settings);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// One training step on the samples of step `index` (from 0); all ranks together.
  StepOutcome step(std::int64_t index);
  /// What traces of the next steps hold. Marks on queues cost time, two timed events an operation:
  /// a step that is to be measured carries none.
  void record(TraceDetail detail);

  /// Safe from another thread while `step` runs.
  Progress progress() const;

  MeasuredMemory memory() const;
  GraphCounts graphs() const;
  RoutedBytes routed() const;
  /// Of the last step, in the simulator's terms: the same tracks, names, ids and classes.
  Trace trace() const;

  /// All tensors of the model; the runs of this rank, ascending in `local`; the format of their
  /// elements (fp32 or fp64; in the ring 8-byte integers). Parameters are the optimizer's own,
  /// wide copies. The gradients' runs are valid inside `before_update`, in the gradients' format,
  /// times the loss's scale.
  const std::vector<StateTensor>& state_tensors() const;
  const std::vector<StateRun>& state_runs() const;
  /// The same of what training leaves as it is, `local` for read_frozen.
  const std::vector<StateTensor>& frozen_tensors() const;
  std::vector<StateRun> frozen_runs() const;
  void read_frozen(std::int64_t local, std::span<double> to) const;
  models::DType state_format() const;
  /// As tests read gradients.
  models::DType gradient_format() const;
  /// `count` elements from element `local` on, which lie in one run.
  void read_state(StateKind kind, std::int64_t local, std::int64_t count, void* to) const;
  void load_state(StateKind kind, std::int64_t local, std::int64_t count, const void* from);
  /// The scale that the next step's loss has, and what led to it; nothing where none is used.
  std::optional<LossScaleState> loss_scale() const;
  void load_loss_scale(const LossScaleState& state);
  /// Collective over the world, after all other loads: working copies follow the loaded parameters,
  /// also of what other ranks own. The state has seen `steps` steps, but for the updates left out.
  void finish_loading(std::int64_t steps);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace orrery::executor

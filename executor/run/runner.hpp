#pragma once
// Runs one rank of a Program for real: executes the instruction list that the simulator prices, in
// its order, and binds and frees buffers where it says. A Device runs kernels and a Fabric runs
// collectives and transfers; the Runner itself never touches tensor data. Left out: starting ranks
// (executor/launch), checkpoints (executor/checkpoint), and the loop over steps (executor/session).
//
// Every way of sharding computes the same training run. Each parameter is drawn by its index in the
// unsharded model, so all start from equal weights. Each rank's gradients are its part of the
// gradient of the mean loss over the global batch, so every reduction is a plain sum.

#include <cstdint>
#include <memory>
#include <optional>

#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"
#include "executor/layout/state.hpp"
#include "executor/run/loss_scale.hpp"
#include "executor/run/settings.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::executor {

class Layout;
class Weights;

/// One rank of a training run.
/// Errors  constructor: RunFailure{invalid_program} naming what this executor or the device lacks;
///         all: RunFailure from the fabric (a peer failed) or the device
class Runner {
 public:
  /// Makes the communicators, allocates memory, draws or reads the parameters that this rank owns,
  /// and gathers the others. Collective over the world. Program, device and fabric outlive the
  /// runner.
  Runner(const models::Program& program, const models::Software& software, Device& device,
         Fabric& fabric, RunSettings settings);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs one training step on the samples of step `index` (from 0). Collective over the world.
  StepOutcome step(std::int64_t index);
  /// Sets what the next steps record. Recording costs time (two timed events per operation), so a
  /// step that is to be measured records nothing.
  void record(TraceDetail detail);

  /// What this rank does now. Safe to call from another thread while `step` runs.
  Progress progress() const;

  /// The memory peak so far; CUDA graphs captured so far; expert traffic of the last step.
  MeasuredMemory memory() const;
  GraphCounts graphs() const;
  RoutedBytes routed() const;
  /// The last step, with the tracks, names, ids and classes of the simulator's trace.
  Trace trace() const;

  /// The tensors of the unsharded model, trained and frozen, and the elements of them that this
  /// rank updates, ascending in `local`, or holds.
  const Layout& layout() const;
  /// The state of those elements, for checkpoints and exports; with Arithmetic::ring it is 8-byte
  /// integers. Parameters are the optimizer's master copies. What is read or loaded at once is of
  /// one run. Gradients can be read inside `before_update` only; they include the loss scale.
  Weights& weights();
  const Weights& weights() const;
  /// The next step's loss scale and its history; nullopt: there is nothing to keep of it.
  std::optional<LossScaleState> loss_scale() const;
  void load_loss_scale(const LossScaleState& state);
  /// Call after all other loads: updates the working copies from the loaded parameters, also those
  /// that other ranks own. `steps` counts the steps that led to the state, including those whose
  /// update was skipped. Collective over the world.
  void finish_loading(std::int64_t steps);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace orrery::executor

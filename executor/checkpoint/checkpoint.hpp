#pragma once
// Saves and restores the training state: parameters and moments in a folder, sharded as the ranks
// that wrote them and readable under any other sharding. One folder per checkpoint:
//
//   step-0000000040/part-00003.bin    the elements that rank 3 writes, tile after tile
//   step-0000000040/part-00003.json   which tiles those are, with a CRC-32C of each
//   step-0000000040/manifest.json     last of all: the run, the tensors, the parts, the loss scale.
//                                     A folder without a manifest is no checkpoint.
//   latest                            the name of the newest one, for people and scripts
//
// Every file is written under another name, flushed, renamed, its folder flushed; the manifest
// follows when all ranks have done so, `latest` follows the manifest, and only then is the oldest
// removed. So wherever a process dies in between, the newest checkpoint with a manifest is
// complete. All ranks see one folder (a shared file system).

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/run/runner.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::executor {

/// What to do with a checkpoint of a run that read other data, or batched them otherwise.
enum class Changed : std::uint8_t { refused, accepted };

/// The run that a checkpoint belongs to. One of another model or arithmetic is refused.
struct CheckpointRun {
  std::string model{};  // its name, for messages
  std::vector<StateTensor> tensors{};
  models::DType format = models::DType::fp32;
  Arithmetic arithmetic = Arithmetic::real;
  std::uint64_t seed = 1;
  /// What else the losses depend on, by name: "data", "global_batch", "seq_len", "precision".
  std::vector<std::pair<std::string, std::string>> inputs{};
  Changed changed = Changed::refused;
};

/// A rank's state and the functions that read and load it: a Runner's, or a test's.
struct CheckpointState {
  std::vector<StateRun> runs{};
  std::function<void(StateKind, std::int64_t local, std::int64_t count, void* to)> read{};
  std::function<void(StateKind, std::int64_t local, std::int64_t count, const void* from)> load{};
  std::optional<LossScaleState> loss_scale{};                    // the same on all ranks
  std::function<void(const LossScaleState&)> load_loss_scale{};  // where the checkpoint has one
};
CheckpointState state_of(Runner& runner);

/// Where checkpoints are, and what they need of the run.
struct CheckpointSettings {
  std::string folder{};
  int rank = 0;
  int ranks = 1;
  std::int64_t keep = 2;                                           // checkpoints
  std::function<void(const std::string&)> barrier = [](auto&) {};  // of all ranks
  std::function<void()> alive = [] {};  // called now and then while it works
  std::function<void(const std::string&)> note = [](auto&) {
  };                            // for the user: what is skipped, why
  StepDone step = [](auto) {};  // tests end the process here
};

/// A checkpoint that was found, and how far its run had come.
struct CheckpointFound {
  std::int64_t steps = 0;  // updates that the state has seen
  std::uint64_t seed = 1;
};

/// The checkpoints of one run, on one rank.
class Checkpoints {
 public:
  Checkpoints(CheckpointSettings settings, CheckpointRun run)
      : settings_{std::move(settings)}, run_{std::move(run)} {}

  /// Writes a checkpoint. Collective over all ranks, between two steps.
  /// Errors  OutputError: the disk; whatever `barrier` throws
  void save(const CheckpointState& state, std::int64_t steps) const;

  /// The newest checkpoint of fewer steps than `before` that is complete by its names and sizes;
  /// nullopt in an empty or absent folder. Damaged ones are skipped and noted.
  /// Errors  InputError in one sentence: all of them are damaged; of another model, another format
  ///         or seed; of other inputs, unless those may have changed. RunFailure: a folder or file
  ///         cannot be read, which is no damage
  std::optional<CheckpointFound> newest(
      std::int64_t before = std::numeric_limits<std::int64_t>::max()) const;

  /// Fills the state of this rank from the checkpoint of `steps`.
  /// Errors  InputError: a part that is missing or damaged, elements that no rank wrote;
  ///         RunFailure: a part that cannot be read
  void restore(const CheckpointState& state, std::int64_t steps) const;

 private:
  std::string folder_of(std::int64_t steps) const;
  void write_part(const CheckpointState& state, const std::string& folder) const;
  void write_manifest(const CheckpointState& state, const std::string& folder,
                      std::int64_t steps) const;
  void remove_old(std::int64_t steps) const;
  void require_same_run(const std::string& manifest, const Json& found) const;
  void require_same_inputs(const Node& root) const;
  std::string damage_of(std::int64_t steps) const;
  std::vector<std::int64_t> elements() const;

  CheckpointSettings settings_;
  CheckpointRun run_;
};

}  // namespace orrery::executor

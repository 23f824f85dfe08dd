#pragma once
// The checkpoints of a run of `orrery execute`: which one a rank goes on from, when the next is
// written, who asked for it, and what is lost without it.

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/folder_lock.hpp"
#include "executor/checkpoint/interval.hpp"
#include "executor/run/instruction_limits.hpp"
#include "scenarios/command/execute_meeting.hpp"
#include "scenarios/command/execute_run.hpp"

namespace orrery::scenarios {

class Saving {
 public:
  /// Tries the folder, and takes it for this run.
  /// Errors  InputError: another run has it; OutputError: it cannot be written
  Saving(const models::Question& question, const ExecuteOptions& options,
         const executor::TokenSource& tokens, Meeting& meeting);

  /// All ranks: the newest checkpoint that all can read, and how many steps it has seen. 0: there
  /// is none. Errors  InputError: all are damaged, or of another run
  std::int64_t resume(executor::Runner& runner);

  /// All ranks, when `done` steps are: writes a checkpoint if one is due or asked for.
  /// Errors  RunFailure{requeue, terminated, interrupted}: the run was asked to end, and may
  void after_step(executor::Runner& runner, const executor::InstructionLimits& limits,
                  std::int64_t done);

  /// Safe from another thread. What a run loses that ends now: "12 steps are lost: the newest
  /// checkpoint has 40". Empty: nothing.
  std::string loss() const;

 private:
  executor::Checkpoints of(const executor::Runner& runner) const;
  std::string restored(executor::Runner& runner, std::int64_t steps) const;
  void save(executor::Runner& runner, const executor::InstructionLimits& limits);

  const models::Question& question_;
  const ExecuteOptions& options_;
  Meeting& meeting_;
  bool first_;  // of the ranks
  std::string data_;
  std::optional<executor::FolderLock> lock_;
  executor::CheckpointInterval interval_;
  std::atomic<std::int64_t> done_{0}, kept_{0};  // steps
};

}  // namespace orrery::scenarios

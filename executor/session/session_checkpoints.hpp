#pragma once
// The checkpoints of a run: which one it resumes from, when the next is written, which request
// asked for it, and how many steps are lost without it.

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/folder_lock.hpp"
#include "executor/checkpoint/interval.hpp"
#include "executor/run/blocks/instruction_limits.hpp"
#include "executor/session/rank_session.hpp"
#include "executor/session/session.hpp"

namespace orrery::executor {

/// The checkpoints of one run, on one rank.
class SessionCheckpoints {
 public:
  /// Tries to write into the folder, and locks it for this run.
  /// Errors  InputError: another run has it; OutputError: it cannot be written
  SessionCheckpoints(const models::Question& question, const SessionOptions& options,
                     const TokenSource& tokens, RankSession& session);

  /// Restores the newest checkpoint that all ranks can read, and returns how many steps it has
  /// seen; 0: there is none. Collective over all ranks.
  /// Errors  InputError: all are damaged, or of another run
  std::int64_t resume(Runner& runner);

  /// Call after `done` steps: writes a checkpoint if one is due or asked for. Collective over all
  /// ranks.
  /// Errors  RunFailure{requeue, terminated, interrupted}: the run was asked to end, and can now
  void after_step(Runner& runner, const InstructionLimits& limits, std::int64_t done);

  /// What the run loses if it ends now: "12 steps are lost: the newest checkpoint is from step 40".
  /// Empty: nothing. Safe from another thread.
  std::string loss() const;

 private:
  Checkpoints of(const Runner& runner) const;
  std::string restored(Runner& runner, std::int64_t steps) const;
  void save(Runner& runner, const InstructionLimits& limits);

  const models::Question& question_;
  const SessionOptions& options_;
  RankSession& session_;
  bool first_;        // is this rank 0?
  std::string data_;  // digest of the tokens
  std::optional<FolderLock> lock_;
  CheckpointInterval interval_;
  std::atomic<std::int64_t> done_{0}, kept_{0};  // steps: all, in the newest checkpoint
};

}  // namespace orrery::executor

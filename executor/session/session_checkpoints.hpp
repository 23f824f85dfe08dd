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
#include "executor/run/instruction_limits.hpp"
#include "executor/session/rank_session.hpp"
#include "executor/session/session.hpp"

namespace orrery::executor {

class SessionCheckpoints {
 public:
  /// Tries to write into the folder, and locks it for this run.
  /// Errors  InputError: another run has it; OutputError: it cannot be written
  SessionCheckpoints(const models::Question& question, const SessionOptions& options,
                     const TokenSource& tokens, RankSession& session);

  /// All ranks: the newest checkpoint that all can read, and how many steps it has seen. 0: there
  /// is none. Errors  InputError: all are damaged, or of another run
  std::int64_t resume(Runner& runner);

  /// All ranks, when `done` steps are: writes a checkpoint if one is due or asked for.
  /// Errors  RunFailure{requeue, terminated, interrupted}: the run was asked to end, and may
  void after_step(Runner& runner, const InstructionLimits& limits, std::int64_t done);

  /// Safe from another thread. What a run loses that ends now: "12 steps are lost: the newest
  /// checkpoint has 40". Empty: nothing.
  std::string loss() const;

 private:
  Checkpoints of(const Runner& runner) const;
  std::string restored(Runner& runner, std::int64_t steps) const;
  void save(Runner& runner, const InstructionLimits& limits);

  const models::Question& question_;
  const SessionOptions& options_;
  RankSession& session_;
  bool first_;  // rank 0
  std::string data_;
  std::optional<FolderLock> lock_;
  CheckpointInterval interval_;
  std::atomic<std::int64_t> done_{0}, kept_{0};  // steps
};

}  // namespace orrery::executor

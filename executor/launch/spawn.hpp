#pragma once
// Starts the ranks of a run on this machine, as processes of the same program, and makes sure that
// none is left: signals are passed on, and once one rank has failed the others have a few seconds
// to end.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "executor/errors.hpp"

namespace orrery::executor {

/// What to start, and how.
struct SpawnSettings {
  std::vector<std::string> arguments{};  // of this program, without its name
  int ranks = 1;
  std::chrono::milliseconds patience{8000};       // from the first failure to SIGKILL
  bool saves = false;                             // ranks end after their step at the first request
  std::function<void(const std::string&)> say{};  // what only the parent sees: a rank was killed
};

/// The words that this process was started with, without its name.
std::vector<std::string> own_arguments();

/// Runs the ranks to their end. Each finds ORRERY_RANK, ORRERY_RANKS, ORRERY_JOB and ORRERY_STORE
/// (the store's Unix socket) in its environment; rank 0 alone writes to our standard output.
/// Returns the exit code of the rank that failed first by its own fault, else that of its peers.
int spawn_ranks(const SpawnSettings& settings);

}  // namespace orrery::executor

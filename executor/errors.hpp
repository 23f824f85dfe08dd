#pragma once
// Why a run ended before its last step, and the exit code from which a launcher decides what to do.
//
//   2   the input is wrong
//   3   internal error
//   70  the Program cannot be executed (an operation that the device lacks)
//   71  a peer failed or vanished: start again from the checkpoint
//   72  this machine failed (memory, disk, a device): exclude it
//   74  an output cannot be written
//   75  preempted: queue the job again
//   124 the deadline has passed
//   130 Ctrl-C
//   143 asked to end (SIGTERM), and no checkpoint is written
// Source  sysexits.h for 70 to 75, timeout(1) for 124, shells for 130

#include <stdexcept>
#include <string>
#include <string_view>

namespace orrery::executor {

enum class Exit : int {
  done = 0,
  wrong_input = 2,
  our_fault = 3,
  invalid_program = 70,
  peer_failed = 71,
  local_failure = 72,
  output_failed = 74,
  requeue = 75,
  deadline = 124,
  interrupted = 130,
  terminated = 143,
};

/// What a launcher should make of it, in words.
std::string_view meaning(Exit code);

/// The run cannot go on; `what()` is one sentence for the user.
class RunFailure : public std::runtime_error {
 public:
  RunFailure(Exit code, const std::string& why) : std::runtime_error{why}, code_{code} {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

}  // namespace orrery::executor

#include "executor/errors.hpp"

namespace orrery::executor {

std::string_view meaning(Exit code) {
  switch (code) {
    case Exit::done:
      return "done";
    case Exit::wrong_input:
      return "the input is wrong";
    case Exit::our_fault:
      return "internal error";
    case Exit::invalid_program:
      return "the program cannot be executed here";
    case Exit::peer_failed:
      return "a peer failed: start again from the checkpoint";
    case Exit::local_failure:
      return "this machine failed: exclude it";
    case Exit::output_failed:
      return "an output cannot be written";
    case Exit::requeue:
      return "preempted: queue the job again";
    case Exit::deadline:
      return "the deadline has passed";
    case Exit::interrupted:
      return "interrupted";
    case Exit::terminated:
      return "terminated without a checkpoint";
  }
  return "unknown";
}

}  // namespace orrery::executor

#include <fmt/format.h>

#include "executor/session/session.hpp"

namespace orrery::executor {

namespace {

/// Times of a run: up to a year.
void check_seconds(const char* flag, double value) {
  constexpr double most = 365 * 86400;
  if (value > 0 && value <= most) return;
  throw InputError{flag,
                   fmt::format("expected seconds above 0, at most {}, found {}", most, value)};
}

}  // namespace

void check(const SessionOptions& options) {
  if (options.fabric == FabricKind::nccl && options.backend != Backend::cuda) {
    throw InputError{"--fabric", "nccl needs --backend cuda"};
  }
  if (options.deadline) check_seconds("--deadline", *options.deadline);
  check_seconds("--stall", options.stall);
  if (options.steps < 1) {
    throw InputError{"--steps", fmt::format("expected 1 or more, found {}", options.steps)};
  }
  if (options.metrics_address && !options.metrics_port) {
    throw InputError{"--metrics-address", "needs --metrics-port"};
  }
}

}  // namespace orrery::executor

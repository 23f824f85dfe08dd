#include <fmt/format.h>

#include "executor/session/devices.hpp"
#include "executor/session/mlflow_store.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::executor {

namespace {

/// Checks a duration of a run: above 0, up to a year.
void check_seconds(const char* flag, double value) {
  constexpr double most = 365 * seconds_per_day;
  if (value > 0 && value <= most) return;
  throw InputError{
      flag,
      fmt::format("expected a number of seconds above 0 and at most {}, found {}", most, value)};
}

TraceDetail detail_of(const SessionWords& words) {
  const std::string detail = words.trace_detail.value_or("instructions");
  if (detail != "instructions" && detail != "operations") {
    throw InputError{"--trace-detail",
                     fmt::format("expected instructions or operations, found '{}'", detail)};
  }
  if (!words.trace && !words.explain) return TraceDetail::none;
  const bool operations = detail == "operations" || words.explain;
  return operations ? TraceDetail::operations : TraceDetail::instructions;
}

/// A vendor's collective library connects that vendor's GPUs only.
void check_fabric(const SessionOptions& options, const std::optional<std::string>& word) {
  if (options.fabric != FabricKind::vendor) return;
  for (const GpuVendor& each : gpu_vendors()) {
    if (word && *word != each.fabric) continue;
    if (options.backend.has_gpus() && (!word || &options.backend.vendor() == &each)) return;
    throw InputError{"--fabric", fmt::format("{} needs --backend {}", each.fabric, each.word)};
  }
}

void check(const SessionOptions& options) {
  if (options.deadline) check_seconds("--deadline", *options.deadline);
  check_seconds("--stall", options.stall);
  if (options.steps < 1) {
    throw InputError{"--steps", fmt::format("expected 1 or more, found {}", options.steps)};
  }
  if (options.metrics_address && !options.metrics_port) {
    throw InputError{"--metrics-address", "needs --metrics-port"};
  }
  if (options.mlflow) mlflow_folder(*options.mlflow);
}

}  // namespace

void complete(SessionOptions& options, const SessionWords& words) {
  if (words.fabric) options.fabric = fabric_of(*words.fabric);
  if (words.backend) {
    options.backend = backend_of(*words.backend);
    if (options.backend.has_gpus()) options.backend.module();  // all it needs is in place
  }
  check_fabric(options, words.fabric);
  options.detail = detail_of(words);
  check(options);
  if (words.checkpoint_every) {
    options.checkpoint_every = parse_checkpoint_every(*words.checkpoint_every);
    if (!options.checkpoint) throw InputError{"--checkpoint-every", "needs --checkpoint DIR"};
  }
  if (!words.resume) return;
  options.resume_changed = *words.resume == "changed";
  if (options.resume_changed || *words.resume == "same") return;
  throw InputError{"--resume", fmt::format("expected same or changed, found '{}'",
                                           printable(*words.resume, 60))};
}

}  // namespace orrery::executor

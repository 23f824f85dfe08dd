#pragma once
// The question whose prediction stands next to an executed run: the scenario with the executor's
// own software profile on this machine, unless the user names others.

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/scenario/scenario_request.hpp"

namespace orrery::scenarios {

/// A GPU with its driver's name: "NVIDIA H200".
struct InstalledGpu {
  std::string name;
  Bytes memory{};
};

/// The machine that executes a plan.
struct ExecutingMachine {
  std::optional<InstalledGpu> gpu{};             // nothing: one core for each rank
  std::string software = "orrery-cpu";           // the profile of our own executor there
  std::optional<std::int64_t> ranks_per_node{};  // nothing: all ranks are on one machine
};

struct ExecutionQuestion {
  models::Question question;
  /// On GPUs, one sentence: why this cluster is predicted. Empty if the user named it.
  std::string reason{};
};

/// The question of a request, with as many ranks as asked for.
///   software  of a request without one: the machine's
///   cluster   of a request without one: the scenario's own where it has this GPU, or where the
///             catalogue has none like it; else a node of the catalogue with this GPU, and as many
///             of them as the ranks take. Without a GPU: the scenario's own where it is made of
///             cores, else a host with a core per rank
///   ranks     sets the plan's data degree; nothing: as the plan says
/// Errors  InputError, `--ranks: expected a multiple of tensor x pipeline = 4, found 6`,
///         `--cluster: missing: the catalogue has no 'NVIDIA X'`
ExecutionQuestion execution_question(const ScenarioRequest& request,
                                     const ExecutingMachine& machine,
                                     std::optional<std::int64_t> ranks);

}  // namespace orrery::scenarios

#pragma once
// What is predicted for a plan that is executed here: the scenario on the executor's own software
// and on this machine, unless others are named.

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/question/scenario_request.hpp"

namespace orrery::scenarios {

/// A GPU as its driver names it: "NVIDIA H200".
struct InstalledGpu {
  std::string name;
  Bytes memory{};
};

/// What a plan is executed on.
struct ExecutingMachine {
  std::optional<InstalledGpu> gpu{};             // nothing: one core for each rank
  std::optional<std::int64_t> ranks_per_node{};  // nothing: all ranks are on one machine
};

struct ExecutionQuestion {
  models::Question question;
  /// On GPUs, one sentence: why it is predicted for this cluster. Empty: the user names it.
  std::string reason{};
};

/// The request on as many ranks as asked for.
///   software  of a request without one: orrery-cuda or orrery-cpu
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

#include "scenarios/question/execution_question.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/cluster/recognise.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

using Changes = std::vector<std::pair<std::string, Json>>;

constexpr const char* host_of_cores = "cpu-host x 1";

/// The cluster that a run is predicted for.
struct PredictedCluster {
  std::optional<std::string> name{};  // nothing: the scenario's own
  Changes changes{};
  std::string reason{};
};

std::int64_t member_or_1(const Json& json, const char* key) {
  const auto member = json.find(key);
  return member != json.end() && member->is_number_integer() ? member->get<std::int64_t>() : 1;
}

Json member_at(const Scenario& scenario, const char* pointer) {
  return scenario.json().value(Json::json_pointer{pointer}, Json{});
}

/// Without a GPU and without --cluster: the scenario's cluster if its devices are CPU cores, else
/// one host with a core per rank.
PredictedCluster cluster_of_cores(const ScenarioRequest& request, std::int64_t ranks) {
  const bool own = request.scenario && member_at(request.load(), "/cluster/node/scale_up/kind") ==
                                           Json("shared_memory");
  if (own) return {};
  return {.name = host_of_cores, .changes = {{"/cluster/node/gpus", ranks}}};
}

std::string gpu_named_in(const ScenarioRequest& request) {
  if (!request.scenario) return {};
  const Json name = member_at(request.load(), "/cluster/node/gpu/name");
  return name.is_string() ? name.get<std::string>() : std::string{};
}

PredictedCluster cluster_of_gpus(const ScenarioRequest& request, const ExecutingMachine& machine,
                                 std::int64_t ranks) {
  const InstalledGpu& gpu = *machine.gpu;
  const auto known = hardware::recognised_gpu(gpu.name, gpu.memory);
  const std::string named = gpu_named_in(request);
  if (!known) {
    if (!named.empty() && named != "cpu-core") {
      return {.reason = fmt::format("predicting for {}, which the scenario names: the catalogue "
                                    "has no '{}'",
                                    named, printable(gpu.name))};
    }
    throw InputError{"--cluster",
                     fmt::format("missing: the catalogue has no '{}'", printable(gpu.name))};
  }
  if (named == *known) return {.reason = fmt::format("predicting for the scenario's {}", named)};
  const auto node = hardware::node_with(*known);
  const std::int64_t here = std::min(machine.ranks_per_node.value_or(ranks), ranks);
  PredictedCluster found;
  found.name = fmt::format("{} x {}", node.value_or("l40s-8x"), (ranks + here - 1) / here);
  if (!node) found.changes.emplace_back("/cluster/node/gpu", *known);  // placed in a PCIe host
  found.changes.emplace_back("/cluster/node/gpus", here);
  found.reason = fmt::format("predicting for {} with {} GPUs per node: {} is recognised as {}",
                             *found.name, here, printable(gpu.name), *known);
  return found;
}

/// How many ranks run; with --ranks also adds the change of the plan's data degree.
std::int64_t ranks_of(const Json& plan, std::optional<std::int64_t> asked, Changes& changes) {
  const std::int64_t model_ranks = member_or_1(plan, "tensor") * member_or_1(plan, "pipeline");
  if (!asked) return model_ranks * member_or_1(plan, "data");
  if (*asked < 1 || model_ranks < 1 || *asked % model_ranks != 0) {
    throw InputError{"--ranks",
                     fmt::format("expected a multiple of tensor x pipeline = {}, found {}",
                                 model_ranks, *asked)};
  }
  changes.emplace_back("/plan/data", *asked / model_ranks);
  return *asked;
}

/// Runs read text byte by byte; a lane of anything else would be another run's.
void require_read_format(const Scenario& scenario) {
  constexpr const char* read = "text-bytes";
  const Json format = member_at(scenario, "/data/format");
  if (format.is_null() || format == Json(read)) return;
  throw InputError{
      scenario.file() + ":/data/format",
      fmt::format("expected {}, which orrery execute reads, found {}", read, shortened(format))};
}

}  // namespace

ExecutionQuestion execution_question(const ScenarioRequest& request,
                                     const ExecutingMachine& machine,
                                     std::optional<std::int64_t> asked_ranks) {
  ScenarioRequest asked = request;
  if (!asked.parts.software) asked.parts.software = machine.software;
  const bool named = asked.parts.cluster.has_value();
  ScenarioRequest with_plan = asked;
  if (!named && !asked.scenario) with_plan.parts.cluster = host_of_cores;  // only to read the plan
  Changes changes;
  const std::int64_t ranks = ranks_of(with_plan.load().json().at("plan"), asked_ranks, changes);
  std::string reason;
  if (!named) {
    const PredictedCluster found =
        machine.gpu ? cluster_of_gpus(asked, machine, ranks) : cluster_of_cores(asked, ranks);
    asked.parts.cluster = found.name;
    changes.insert(changes.end(), found.changes.begin(), found.changes.end());
    reason = found.reason;
  }
  const Scenario stated = asked.load();
  if (stated.json().contains("data") && member_at(stated, "/data/decode/cores").is_null()) {
    const std::int64_t readers = ranks / member_or_1(stated.json().at("plan"), "tensor") /
                                 member_or_1(stated.json().at("plan"), "pipeline");
    changes.emplace_back("/data/decode/cores", std::max<std::int64_t>(1, readers));
  }
  const Scenario scenario = stated.replace(changes);
  require_read_format(scenario);
  return {scenario.question(), reason};
}

}  // namespace orrery::scenarios

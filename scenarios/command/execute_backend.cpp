#include "scenarios/command/execute_backend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "executor/device/cpu/cpu_device.hpp"
#include "hardware/recognise.hpp"
#include "models/plan/plan.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

const executor::FoundCuda& found_cuda() {
  static const executor::FoundCuda found = executor::find_cuda();
  return found;
}

/// The attention of one layer on one rank, as lowering asks for it.
models::Operation attention_of(const models::Question& question) {
  const models::Plan& plan = question.plan;
  const models::Model& model = question.model;
  models::Operation op;
  op.kind = models::OpKind::attention;
  op.name = "attention";
  op.dtype = models::storage_dtype(plan.precision);
  op.attention = {.batch = plan.micro_batch,
                  .seq = plan.seq_len,
                  .heads = model.heads / plan.tensor,
                  .kv_heads = std::max<std::int64_t>(model.kv_heads / plan.tensor, 1),
                  .head_dim = model.head_dim,
                  .causal = model.causal,
                  .window = model.sliding_window};
  return op;
}

/// The GPU of a scenario's cluster, once expanded; empty where it names none.
std::string gpu_named_in(const Scenario& scenario) {
  return scenario.json().value(Json::json_pointer{"/cluster/node/gpu/name"}, std::string{});
}

}  // namespace

Backend backend_of(const std::string& word) {
  if (word == "cpu") return Backend::cpu;
  if (word != "cuda") {
    throw InputError{"--backend", fmt::format("expected cpu or cuda, found '{}'", word)};
  }
  cuda_module();
  return Backend::cuda;
}

const executor::CudaModule& cuda_module() {
  const executor::FoundCuda& found = found_cuda();
  if (!found.absence.empty()) throw InputError{"--backend", "cuda: " + printable(found.absence)};
  return *found.module;
}

Equipment equipment(Backend backend, const executor::Placement& placed) {
  if (backend == Backend::cpu) return {std::make_unique<executor::CpuDevice>(), {}};
  const std::vector<executor::VisibleGpu> gpus = cuda_module().gpus();
  const auto number = static_cast<std::size_t>(placed.local_rank.value_or(placed.rank));
  const std::size_t ordinal = number % gpus.size();
  return {cuda_module().make_device(static_cast<int>(ordinal)), gpus[ordinal].unique};
}

models::Question fitted(models::Question question, const executor::Device& device) {
  if (question.software.name != "orrery-cuda") return question;
  models::Operation op = attention_of(question);
  bool refused = !device.refusal(op).empty();
  op.kind = models::OpKind::attention_backward;
  refused = refused || !device.refusal(op).empty();
  if (refused) question.software.kernels.attention = {{"default", "unfused"}};
  return question;
}

Home gpu_home(const QuestionFlags& asked, const executor::Placement& placed, std::int64_t ranks) {
  const executor::VisibleGpu gpu = cuda_module().gpus().front();
  const auto known = hardware::recognised_gpu(gpu.name, gpu.memory);
  const std::string named = asked.scenario ? gpu_named_in(asked.load()) : std::string{};
  const bool of_cores = named.empty() || named == "cpu-core";
  if (!known) {
    if (!of_cores) {
      return {.reason = fmt::format("predicting for {}, which the scenario names: the catalogue "
                                    "has no '{}'",
                                    named, printable(gpu.name))};
    }
    throw InputError{"--cluster",
                     fmt::format("missing: the catalogue has no '{}'", printable(gpu.name))};
  }
  if (named == *known) return {.reason = fmt::format("predicting for the scenario's {}", named)};
  const auto node = hardware::node_with(*known);
  const bool all_here = placed.launcher == executor::Launcher::alone;  // started by this process
  const std::int64_t here =
      all_here ? ranks : std::min<std::int64_t>(placed.local_ranks.value_or(ranks), ranks);
  const std::int64_t nodes = (ranks + here - 1) / here;
  Home home;
  home.cluster = fmt::format("{} x {}", node.value_or("l40s-8x"), nodes);  // else a PCIe host
  if (!node) home.changes.emplace_back("/cluster/node/gpu", *known);
  home.changes.emplace_back("/cluster/node/gpus", here);
  home.reason = fmt::format("predicting for {} with {} GPUs a node: {} is {}", *home.cluster, here,
                            printable(gpu.name), *known);
  return home;
}

}  // namespace orrery::scenarios

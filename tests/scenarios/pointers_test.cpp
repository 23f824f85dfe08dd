// Every number with a JSON pointer moves a figure of a scenario, or nothing prices it and `show
// scenario` says so.

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>

#include "hardware/sources.hpp"
#include "scenarios/report/result.hpp"
#include "scenarios/scenario/unpriced.hpp"
#include "tests/scenarios/replacements.hpp"

namespace orrery::scenarios {

namespace {

using Changes = std::vector<std::pair<std::string, Json>>;

/// What a change may move: everything that is predicted but what is said about it.
Json figures_of(const Scenario& scenario) {
  const models::Question question = scenario.question();
  Json figures = to_json(question, models::predict(question));
  figures.erase("assumptions");
  return figures;
}

/// The scenarios in which a number may count: at other precisions, plans and stacks.
std::vector<Scenario> scenarios_of(const std::string& model) {
  const auto parsed = [&](const char* cluster, const char* software, const char* plan) {
    return Scenario::parse({{"model", model},
                            {"cluster", cluster},
                            {"software", software},
                            {"plan", Json::parse(plan)}},
                           "pointers.json");
  };
  std::vector<Scenario> all{
      parsed("dgx-h100 x 4", "megatron-core",
             R"({"tensor": 4, "pipeline": 2, "data": 4, "micro_batch": 2, "global_batch": 64,
                 "sequence": true, "zero": 1, "precision": "bf16", "recompute": "selective"})"),
      parsed("dgx-h100 x 4", "megatron-deepspeed",
             R"({"tensor": 2, "pipeline": 2, "data": 8, "micro_batch": 1, "global_batch": 64,
                 "virtual_stages": 2, "zero": 1, "precision": "fp16", "bucket": "25 MB"})"),
      parsed("dgx-h100 x 4", "pytorch-fsdp",
             R"({"data": 32, "micro_batch": 1, "global_batch": 32, "zero": 3,
                 "precision": "bf16", "cuda_graphs": true})"),
      parsed("dgx-h100", "generic",
             R"({"data": 8, "micro_batch": 2, "global_batch": 64, "precision": "fp8",
                 "compression": "top-k", "compression_share": 0.05})"),
      parsed("dgx-h100", "generic",
             R"({"data": 8, "micro_batch": 2, "global_batch": 64, "precision": "bf16",
                 "compression": "power-sgd", "compression_rank": 2})")};
  const Scenario base = all.front();
  for (const char* precision : {"fp64", "tf32", "fp32", "fp8"}) {
    all.push_back(base.replace({{"/plan/precision", precision}}));
  }
  const Json attention = base.json().at("cluster").at("node").at("gpu").at("attention");
  for (const auto& [kernel, curve] : attention.items()) {
    all.push_back(base.replace({{"/software/kernels/attention", {{"default", kernel}}}}));
  }
  return all;
}

bool moves(const Scenario& scenario, const Json& before, const std::string& pointer,
           const Json& value) {
  for (const Json& other : others(value)) {
    try {
      if (figures_of(scenario.replace({{pointer, other}})) != before) return true;
    } catch (const InputError&) {
      continue;  // no value that the reader takes, or no plan of this cluster
    }
  }
  return false;
}

constexpr const char* sections_with_numbers[] = {"model", "cluster", "software", "plan"};

/// Of all numbers of the scenarios those that move a figure of one of them.
std::map<std::string, bool> moved_pointers(const std::vector<Scenario>& scenarios) {
  std::map<std::string, bool> moved;
  for (const Scenario& scenario : scenarios) {
    const Json before = figures_of(scenario);
    for (const char* section : sections_with_numbers) {
      for (const hardware::SourcedNumber& number :
           hardware::sourced_numbers(scenario.json().at(section))) {
        const std::string pointer = std::string{"/"} + section + number.pointer;
        bool& done = moved[pointer];
        const Json& value = scenario.json().at(Json::json_pointer{pointer});
        if (!done) done = moves(scenario, before, pointer, value);
      }
    }
  }
  return moved;
}

/// Numbers that other scenarios are moved by: of degrees, nodes and GPUs whose product must stay,
/// of fabrics that nodes of several leaves share, of heads of 128, of memory that is nearly full,
/// of models with experts, scans and clamped gates, of plans that state no sharding, of another
/// generation of GPUs, of years before a stack's first runs.
bool counts_elsewhere(const std::string& pointer) {
  static const std::set<std::string> known = {"/plan/data",
                                              "/plan/tensor",
                                              "/plan/pipeline",
                                              "/cluster/nodes",
                                              "/cluster/node/gpus",
                                              "/cluster/node/gpu/memory",
                                              "/cluster/fabric/levels",
                                              "/cluster/fabric/oversubscription",
                                              "/cluster/fabric/switch/bandwidth",
                                              "/cluster/fabric/switch/ports",
                                              "/software/host/expert_launch",
                                              "/software/host/expert_layer",
                                              "/software/defaults/zero",
                                              "/software/kernels/clamped_backward_passes",
                                              "/software/kernels/clamped_forward_passes",
                                              "/software/kernels/fp4_derate/blackwell",
                                              "/software/kernels/gemm_derate/blackwell",
                                              "/software/kernels/scan_derate",
                                              "/software/uncertainty/p10",
                                              "/software/uncertainty/p90",
                                              "/software/uncertainty/years/0",
                                              "/software/uncertainty/years/1"};
  const bool of_heads = pointer.find("/attention/") != std::string::npos &&
                        pointer.rfind("/share_128") != std::string::npos;
  // Ranges of a curve widen the interval of questions beyond them.
  const bool of_range = pointer.find("/measured/") != std::string::npos;
  return of_heads || of_range || known.count(pointer) > 0;
}

}  // namespace

TEST_CASE("Every number with a pointer moves a figure, or is said to be priced by nothing",
          "[heavy]") {
  std::vector<std::string> deaf, unpriced_and_moving;
  for (const auto& [pointer, moved] : moved_pointers(scenarios_of("gpt2-medium"))) {
    const bool listed = why_unpriced(pointer).has_value();
    if (!moved && !listed && !counts_elsewhere(pointer)) deaf.push_back(pointer);
    if (moved && listed) unpriced_and_moving.push_back(pointer);
  }
  CHECK(deaf == std::vector<std::string>{});
  CHECK(unpriced_and_moving == std::vector<std::string>{});
}

TEST_CASE("A change of a number that nothing prices is an assumption, and moves nothing") {
  const Scenario scenario = Scenario::load("llama3-8b-8-h100");
  const Scenario changed = scenario.replace({{"/cluster/fabric/switch/purchase_price", "$1"}});
  const std::string note =
      "/cluster/fabric/switch/purchase_price: not priced: purchases are not priced; clusters are "
      "rented";
  const std::vector<std::string> assumptions = changed.question().assumptions;
  CHECK(std::count(assumptions.begin(), assumptions.end(), note) == 1);
  CHECK(figures_of(changed) == figures_of(scenario));
  CHECK(unpriced_in(scenario.json()).contains("/cluster/fabric/switch/purchase_price"));
}

TEST_CASE("Each row of the unpriced is a pointer of some scenario") {
  Json json = Scenario::load("llama3-70b-64-h100").json();
  json["cluster"]["node"]["host_adam"] = "100 GB/s";  // no node of the catalogue states it
  const Json found = unpriced_in(json);
  for (const UnpricedPointer& each : unpriced_pointers()) {
    INFO(each.pattern);
    CHECK(!each.reason.empty());
    if (each.pattern.find('*') == std::string_view::npos) {
      CHECK(found.contains(std::string{each.pattern}));
    }
  }
}

}  // namespace orrery::scenarios

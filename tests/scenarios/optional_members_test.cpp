// Every member that a cluster's readers accept has an effect, or a message says that it has none:
// those of the expansion are checked in pointers_test.cpp, those that it lacks here.

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>

#include "hardware/catalogue.hpp"
#include "scenarios/report/result.hpp"
#include "scenarios/scenario/unpriced.hpp"
#include "scenarios/topology/topology_facts.hpp"

namespace orrery::scenarios {

namespace {

Scenario base() {
  return Scenario::parse(
      {{"model", "gpt2-medium"},
       {"cluster", "dgx-h100 x 4"},
       {"software", "megatron-core"},
       {"plan", Json::parse(R"({"tensor": 8, "data": 4, "micro_batch": 2, "global_batch": 64})")}},
      "members.json");
}

/// What can be asked of a cluster: a step with and without shared links, and the topology.
Json outputs_of(const Scenario& scenario) {
  Json all = Json::array();
  for (const char* network : {"static", "events"}) {
    const models::Question question = scenario.replace({{"/network", network}}).question();
    Json figures = to_json(question, models::predict(question), 1e12);
    figures.erase("assumptions");
    all.push_back(std::move(figures));
    if (all.size() == 1) all.push_back(topology_facts(question.cluster));
  }
  return all;
}

/// The keys that the reader of the object at a pointer accepts, from its refusal of another one.
std::set<std::string> accepted_at(const Scenario& scenario, const std::string& object) {
  try {
    scenario.replace({{object + "/no-such-member", 1}}).question();
  } catch (const InputError& error) {
    const std::string words = error.what(), start = "accepted: ";
    const std::size_t at = words.find(start);
    REQUIRE(at != std::string::npos);
    std::set<std::string> keys;
    std::istringstream list{words.substr(at + start.size())};
    for (std::string key; std::getline(list >> std::ws, key, ',');) keys.insert(key);
    return keys;
  }
  FAIL("an unknown member was read");
  return {};
}

/// Members that are words, or that are made by `orrery calibrate` and tested there.
const std::set<std::string> words_and_tables = {
    "name",     "notes",   "sources",     "assumptions", "software",
    "aliases",  "vendor",  "curves_from", "measured",    "measured_collectives",
    "gpu_nics", "storage", "cables",      "group_rates", "fp8_along_k",
    "silicon",  "pcie",    "decoding"};

/// Members that the expansion moves elsewhere, or that only other kinds of fabric have.
const std::map<std::string, Json> moved = {
    {"/cluster/node/price_per_gpu_hour", "$1/h"},
    {"/cluster/node/nic_bandwidth", "100 Gb/s"},
    {"/cluster/node/fabric", {{"like", "infiniband-fat-tree-2"}, {"bandwidth", "100 Gb/s"}}},
    {"/cluster/fabric/latency_class", "roce"}};

const std::map<std::string, Json> samples = {
    {"/cluster/site", "jean-zay"},
    {"/cluster/fabric/spines", 7},
    {"/cluster/fabric/nodes_per_leaf", 2},
    {"/cluster/fabric/hop_latency", "9 us"},
    {"/cluster/fabric/ideal", true},
    {"/cluster/fabric/reduces", true},
    {"/cluster/fabric/pxn", false},
    {"/cluster/node/gpu/power_limit", "300 W"},
    {"/cluster/node/gpu/published_shares", {{"gemm", {{"bf16", 0.5}}}}},
    {"/cluster/fabric/routing", "ecmp"},
    {"/cluster/node/scale_up/bandwidth", "100 GB/s"}};

/// Whether a value has an effect, or a message says that it has none: a refusal names it, or a note
/// says that nothing prices it.
bool has_effect(const Scenario& scenario, const Json& before, const std::string& pointer,
                const Json& value) {
  const std::string key = pointer.substr(pointer.rfind('/') + 1);
  try {
    const Scenario changed = scenario.replace({{pointer, value}});
    return why_unpriced(pointer).has_value() || outputs_of(changed) != before;
  } catch (const InputError& error) {
    const std::string words = error.what();
    UNSCOPED_INFO(words);
    return words.find(key) != std::string::npos && words.find("expected") == std::string::npos;
  }
}

}  // namespace

TEST_CASE(
    "Every member of a cluster that is accepted has an effect, or it is said that it has none",
    "[heavy]") {
  const Scenario scenario = base();
  const Json before = outputs_of(scenario);
  for (const auto& [pointer, value] : moved) {
    INFO(pointer);
    CHECK(has_effect(scenario, before, pointer, value));
  }
  for (const char* object : {"/cluster", "/cluster/node", "/cluster/fabric", "/cluster/node/gpu",
                             "/cluster/node/scale_up", "/cluster/fabric/switch"}) {
    const Json& expansion = scenario.json().at(Json::json_pointer{object});
    for (const std::string& key : accepted_at(scenario, object)) {
      const std::string pointer = std::string{object} + "/" + key;
      if (expansion.contains(key) || words_and_tables.count(key) > 0) continue;
      INFO(pointer);
      const auto sample = samples.find(pointer);
      if (sample == samples.end()) {
        CHECK(has_effect(scenario, before, pointer,
                         moved.count(pointer) > 0 ? moved.at(pointer) : Json(3)));
      } else {
        CHECK(has_effect(scenario, before, pointer, sample->second));
      }
    }
  }
}

TEST_CASE("A NIC's name is refused where its rate is already known") {
  CHECK_THROWS_WITH(base().replace({{"/cluster/node/nic", "hdr"}}),
                    "--set /cluster/node/nic: the rate of a NIC is /cluster/fabric/bandwidth");
}

}  // namespace orrery::scenarios

// A source belongs to the number it was given for: a number that the user replaces is "given".

#include <catch2/catch.hpp>
#include <map>

#include "hardware/catalogue.hpp"
#include "hardware/sources.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "tests/scenarios/command.hpp"
#include "tests/scenarios/replacements.hpp"

namespace orrery::scenarios {

namespace {

std::map<std::string, std::string> sources_of(const Json& cluster) {
  std::map<std::string, std::string> sources;
  for (const hardware::SourcedNumber& each : hardware::sourced_numbers(cluster)) {
    sources[each.pointer] = each.source;
  }
  return sources;
}

}  // namespace

TEST_CASE("A number of a cluster that is replaced is given, and all others keep their sources") {
  const Scenario scenario = Scenario::load("llama3-70b-64-h100");
  const std::map<std::string, std::string> before = sources_of(scenario.json().at("cluster"));
  REQUIRE(before.size() > 50);
  for (const auto& [pointer, source] : before) {
    if (source.empty() || pointer == "/nodes") continue;  // another number of nodes, another price
    const std::string whole = "/cluster" + pointer;
    INFO(whole);
    const Json& value = scenario.json().at(Json::json_pointer{whole});
    CHECK(sources_of(scenario.replace({{whole, value}}).json().at("cluster")) == before);
    const Scenario changed = scenario.replace({{whole, others(value).front()}});
    std::map<std::string, std::string> expected = before;
    expected[pointer] = "given";
    if (pointer == "/node/gpus") {  // the host's power follows
      expected["/node/host_power"] = "as much for each GPU as 8 of them have";
    }
    CHECK(sources_of(changed.json().at("cluster")) == expected);
  }
}

TEST_CASE("A number that an object changes in what it is like is given, however deep") {
  const Json base = hardware::Catalogue::cluster("hgx-h100 x 2");
  Json object = {{"like", "dgx-h100"}, {"host_power", "1 kW"}};
  const Json node =
      hardware::expand_cluster(Node{Json{{"node", object}, {"nodes", 2}}, "mine", ""});
  CHECK(sources_of(node.at("node")).at("/host_power") == "given");
  Json root = {{"inner", {{"a", 1}, {"b", 2}, {"sources", {{"/a", "sheet"}, {"/b", "sheet"}}}}},
               {"sources", {{"", "other"}}}};
  hardware::set_source(root, "/inner/a", "given");
  CHECK(sources_of(root) ==
        std::map<std::string, std::string>{{"/inner/a", "given"}, {"/inner/b", "sheet"}});
}

TEST_CASE("A price that the user sets is his own, in the report and in JSON") {
  const std::string asked =
      "simulate --model gpt2 --cluster 'dgx-h200 x 2' --plan zero=1,global_batch=64 ";
  const Json listed = parsed(orrery(asked + "--json").out);
  CHECK(listed["price_source"].get<std::string>().starts_with("Nebius on demand"));
  for (const char* pointer : {"/cluster/price_per_gpu_hour", "/cluster/node/price_per_gpu_hour"}) {
    INFO(pointer);
    const std::string set = std::string{"--set '"} + pointer + "=$2.10/hour' ";
    const Json own = parsed(orrery(asked + set + "--json").out);
    CHECK(own["price_usd_per_gpu_hour"] == 2.1);
    CHECK(own["price_source"] == "given");
    CHECK(own["cost_usd_per_step"].get<double>() ==
          Approx(listed["cost_usd_per_step"].get<double>() * 2.1 /
                 listed["price_usd_per_gpu_hour"].get<double>()));
    const std::string text = orrery(asked + set).out;
    CHECK(text.find("at $2.10/h per GPU") != std::string::npos);
    CHECK(text.find("Nebius") == std::string::npos);
  }
}

TEST_CASE("Another GPU in a node has no listed price, another node type has its own") {
  const Scenario scenario = Scenario::load("llama3-8b-8-h100");
  const auto price = [&](const char* pointer, const char* value) {
    const Json cluster = scenario.replace({{pointer, value}}).json().at("cluster");
    return cluster.value("price_per_gpu_hour", Json{});
  };
  CHECK(price("/cluster/node/gpu", "h200-sxm-141gb").is_null());
  CHECK(price("/cluster/node", "p5") == "$6.88/h");
  CHECK(price("/cluster/node/gpu/memory", "120 GB") == price("/cluster/name", "mine"));
}

}  // namespace orrery::scenarios

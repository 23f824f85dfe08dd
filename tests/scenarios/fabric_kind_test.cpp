// Another kind of fabric by --set alone: its counts are defaults, whose source the report prints.

#include <catch2/catch.hpp>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

const std::string question =
    "simulate --model gpt-22b --cluster 'dgx-h100 x 16' --plan "
    "tensor=8,data=16,micro_batch=1,global_batch=64,seq_len=2048 ";

/// Its assumption that begins so; empty if there is none.
std::string assumption(const Json& answer, const std::string& begin) {
  for (const Json& each : answer.at("assumptions")) {
    const std::string text = each.get<std::string>();
    if (text.find(begin) == 0) return text;
  }
  return {};
}

Json answer_with(const std::string& flags) {
  const Ran ran = orrery(question + flags + " --json");
  INFO(ran.error);
  REQUIRE(ran.exit_code == 0);
  return parsed(ran.out);
}

TEST_CASE("A dragonfly needs no counts: a router's ports are divided as in a Slingshot group") {
  // 64 ports of a Quantum-2: 16 for the 8 NICs of two nodes, 31 to the rest of a group, 17 out.
  for (const char* network : {" --network static", " --network events"}) {
    const Json answer = answer_with(std::string{"--set /cluster/fabric/kind=dragonfly"} + network);
    CHECK(answer.at("step_time_s").get<double>() > 0);
    CHECK(assumption(answer, "/cluster: fabric: a dragonfly") ==
          "/cluster: fabric: a dragonfly of 32 routers per group, each with 16 NICs and 17 cables "
          "to other groups: the 64 ports of a router are divided as in a Slingshot group, 16 + 31 "
          "+ 17 of 64 (De Sensi et al. 2020)");
    CHECK(assumption(answer, "/cluster: fabric: levels") ==
          "/cluster: fabric: levels, oversubscription of the earlier kind were dropped");
  }
}

TEST_CASE("A torus needs no dimensions: the one nearest to a cube that has room for the nodes") {
  const Json answer = answer_with("--set /cluster/fabric/kind=torus --network events");
  CHECK(assumption(answer, "/cluster: fabric: a torus") ==
        "/cluster: fabric: a torus of 2 x 2 x 4 routers, the three-dimensional one nearest to a "
        "cube that has room for all nodes, as tori of TPU v4 (Jouppi et al. 2023)");
  CHECK(assumption(answer_with("--set /cluster/fabric/kind=mesh"), "/cluster: fabric: a mesh") !=
        "");
  const Json stated =
      answer_with("--set '/cluster/fabric/dimensions=[4, 4]' --set /cluster/fabric/kind=torus");
  CHECK(assumption(stated, "/cluster: fabric: a torus").empty());
}

TEST_CASE("Counts that a change states for another kind of fabric are refused, not dropped") {
  const Ran ran = orrery(
      question + "--set /cluster/fabric/oversubscription=2 --set /cluster/fabric/kind=torus");
  CHECK(ran.exit_code == 2);
  CHECK(ran.error.find("/cluster/fabric/oversubscription: does not apply to a fabric of kind "
                       "torus") != std::string::npos);
}

TEST_CASE("A fabric like a catalogue entry takes another kind, too, and back again") {
  const std::string like =
      "--set '/cluster/fabric={\"like\": \"infiniband-rails-3\", \"kind\": \"torus\"}'";
  CHECK(!assumption(answer_with(like + " --set '/cluster/fabric/bandwidth=400 Gb/s'"),
                    "/cluster: fabric: a torus")
             .empty());
  const Json tree = answer_with(
      "--set /cluster/fabric/kind=torus --set /cluster/fabric/kind=fat_tree --network events");
  CHECK(tree.at("step_time_s").get<double>() > 0);
}

}  // namespace
}  // namespace orrery::scenarios

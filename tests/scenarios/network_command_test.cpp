// What the command says of a step whose traffic shares links.

#include <catch2/catch.hpp>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

const std::string question = "simulate gpt3-175b-1024-a100 ";

Json network_of(const std::string& flags) {
  const Ran run = orrery(question + flags + " --json");
  INFO(run.error);
  REQUIRE(run.exit_code == 0);
  return parsed(run.out).at("network");
}

TEST_CASE("A step is static unless asked, and says why") {
  const Json network = network_of("");
  CHECK(network.at("evaluation") == "static");
  CHECK(network.at("contention_s") == 0.0);
}

TEST_CASE("--network events names the links over capacity and who lost time") {
  const Json network = network_of("--network events");
  CHECK(network.at("evaluation") == "events");
  CHECK(network.at("contention_s").get<double>() > 0);
  REQUIRE(!network.at("links").empty());
  CHECK(network.at("links")[0].at("over_capacity_s").get<double>() > 0);
  REQUIRE(!network.at("losses").empty());
  const std::string report = orrery(question + "--network events").out;
  CHECK(report.find("contention ") != std::string::npos);
  CHECK(report.find("over capacity: ") != std::string::npos);
}

TEST_CASE("Placement and perturbations have pointers") {
  const Ran usual = orrery(question + "--network events --json");
  const Ran slow = orrery(
      question + R"(--set '/perturbations=[{"kind": "node", "at": "node5", "rate": 0.5}]' --json)");
  const double step = parsed(usual.out).at("step_time_s");
  CHECK(parsed(slow.out).at("step_time_s").get<double>() > 1.2 * step);
  const Ran scattered = orrery(question + R"(--set '/placement={"scattered": 3}' --json)");
  CHECK(parsed(scattered.out).at("network").at("evaluation") == "events");
}

TEST_CASE("A part is named by its number or by its name") {
  const auto step_with = [](const std::string& kind, const std::string& at) {
    const Ran run = orrery(question + R"(--set '/perturbations=[{"kind": ")" + kind +
                           R"(", "at": )" + at + R"(, "rate": 0.5}]' --json)");
    INFO(run.error);
    REQUIRE(run.exit_code == 0);
    return parsed(run.out).at("step_time_s").get<double>();
  };
  CHECK(step_with("gpu", "17") == step_with("gpu", R"("node2/gpu1")"));
  CHECK(step_with("node", "4") == step_with("node", R"("node4")"));
  CHECK(step_with("nic", R"("3/1")") == step_with("nic", R"("node3/nic1")"));
}

TEST_CASE("A network that does not exist is refused") {
  const auto refused = [](const std::string& flags) {
    const Ran run = orrery(question + flags);
    CHECK(run.exit_code == 2);
    return run.error;
  };
  CHECK(refused("--network fast").find(R"(expected one of "auto", "static", "events")") !=
        std::string::npos);
  CHECK(
      refused("--set '/placement=[0, 0]'").find("/placement: 2 nodes for a plan that needs 128") !=
      std::string::npos);
  CHECK(refused(R"(--set '/perturbations=[{"kind": "nic", "at": "nic1", "rate": 0.5}]')")
            .find("expected a NIC from 0/0 to 127/7, or node0/nic0 to node127/nic7") !=
        std::string::npos);
  CHECK(refused(R"(--set '/perturbations=[{"kind": "gpu", "at": "node0/gpu0", "rate": 2}]')")
            .find("/perturbations/0/rate: expected a share from 1e-6 to 1") != std::string::npos);
}

}  // namespace
}  // namespace orrery::scenarios

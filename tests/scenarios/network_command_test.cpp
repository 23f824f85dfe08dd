// What the command says of a step whose traffic shares links.

#include <catch2/catch.hpp>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

const std::string gpt3_question = "simulate gpt3-175b-1024-a100 ";

Json network_of(const std::string& flags) {
  const Ran run = orrery(gpt3_question + flags + " --json");
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
  const std::string report = orrery(gpt3_question + "--network events").out;
  CHECK(report.find("contention ") != std::string::npos);
  CHECK(report.find("over capacity: ") != std::string::npos);
}

TEST_CASE("Placement and perturbations have pointers") {
  const Ran usual = orrery(gpt3_question + "--network events --json");
  const Ran slow =
      orrery(gpt3_question +
             R"(--set '/perturbations=[{"kind": "node", "at": "node5", "rate": 0.5}]' --json)");
  const double step = parsed(usual.out).at("step_time_s");
  CHECK(parsed(slow.out).at("step_time_s").get<double>() > 1.2 * step);
  const Ran scattered = orrery(gpt3_question + R"(--set '/placement={"scattered": 3}' --json)");
  CHECK(parsed(scattered.out).at("network").at("evaluation") == "events");
}

TEST_CASE("A part is named by its number or by its name") {
  const auto step_with = [](const std::string& kind, const std::string& at) {
    const Ran run = orrery(gpt3_question + R"(--set '/perturbations=[{"kind": ")" + kind +
                           R"(", "at": )" + at + R"(, "rate": 0.5}]' --json)");
    INFO(run.error);
    REQUIRE(run.exit_code == 0);
    return parsed(run.out).at("step_time_s").get<double>();
  };
  CHECK(step_with("gpu", "17") == step_with("gpu", R"("node2/gpu1")"));
  CHECK(step_with("node", "4") == step_with("node", R"("node4")"));
  CHECK(step_with("nic", R"("3/1")") == step_with("nic", R"("node3/nic1")"));
}

TEST_CASE("A step's collectives run as NCCL's tuner would, within what its environment allows") {
  const auto step_with = [](const std::string& flags) {
    const Ran run = orrery(gpt3_question + flags + " --json");
    INFO(run.error);
    REQUIRE(run.exit_code == 0);
    return parsed(run.out).at("step_time_s").get<double>();
  };
  const double usual = step_with("");
  // The fastest is a ring's LL128 or Simple; NCCL's LL carries half as much.
  CHECK(step_with("--set /collectives/NCCL_PROTO=LL") > usual);
  CHECK(step_with("--set /collectives/NCCL_PROTO=LL --network events") > usual);
  CHECK(step_with(R"(--set '/collectives={"NCCL_ALGO": "allreduce:Tree"}')") >= usual);
  CHECK(step_with(R"(--set '/collectives={"choice": "fastest"}')") == usual);
  const std::string report =
      orrery(gpt3_question + "--explain --set /collectives/NCCL_PROTO=LL").out;
  CHECK(report.find("ring/ll ") != std::string::npos);
  CHECK(report.find("ring/ll128") == std::string::npos);
  const auto refused = [](const std::string& flags) { return orrery(gpt3_question + flags).error; };
  CHECK(refused("--set /collectives/NCCL_ALGO=Tree").find("/collectives: no allowed algorithm") !=
        std::string::npos);
  CHECK(refused("--set /collectives/NCCL_DEBUG=1").find("/collectives/NCCL_DEBUG: unknown key") !=
        std::string::npos);
}

TEST_CASE("A network that does not exist is refused") {
  const auto refused = [](const std::string& flags) {
    const Ran run = orrery(gpt3_question + flags);
    CHECK(run.exit_code == 2);
    return run.error;
  };
  CHECK(refused("--network fast").find(R"(expected one of "auto", "static", "events")") !=
        std::string::npos);
  CHECK(refused("--set '/placement=[0, 0]'")
            .find("/placement: 2 nodes are listed, and the plan needs 128") != std::string::npos);
  CHECK(refused(R"(--set '/perturbations=[{"kind": "nic", "at": "nic1", "rate": 0.5}]')")
            .find("expected a NIC from 0/0 to 127/7, or node0/nic0 to node127/nic7") !=
        std::string::npos);
  CHECK(refused(R"(--set '/perturbations=[{"kind": "gpu", "at": "node0/gpu0", "rate": 2}]')")
            .find("/perturbations/0/rate: expected a share from 1e-6 to 1") != std::string::npos);
}

const std::string shape =
    "--plan tensor=8,pipeline=4,data=8,micro_batch=1,global_batch=64 "
    "--set /cluster/fabric/oversubscription=4 --set /cluster/fabric/nodes_per_leaf=4 ";
const std::string small = "simulate --model gpt-22b --cluster 'dgx-a100-80gb x 32' " + shape;
/// Of the same job, and eight nodes more.
const std::string larger = "simulate --model gpt-22b --cluster 'dgx-a100-80gb x 40' " + shape;

std::string job_of(const std::string& scenario, const std::string& nodes) {
  return R"(--set '/jobs=[{"scenario": )" + scenario + R"(, "nodes": )" + nodes + "}]' ";
}

const std::string gpt =
    R"({"name": "second", "model": "gpt-22b", "plan": {"tensor": 8, "pipeline": 4, )"
    R"("micro_batch": 1, "global_batch": 16}})";

TEST_CASE("A second job on the fabric is a scenario and nodes") {
  const Ran run = orrery(larger + job_of(gpt, "[1, 3, 5, 7, 9, 11, 13, 15]") + "--json");
  INFO(run.error);
  REQUIRE(run.exit_code == 0);
  const Json network = parsed(run.out).at("network");
  CHECK(network.at("jobs").size() == 1);
  CHECK(network.at("jobs")[0].at("name") == "second");
  CHECK(network.at("jobs")[0].at("gpus") == 64);
  CHECK(network.at("jobs")[0].at("alone_s").get<double>() > 0);
  CHECK(network.at("jobs")[0].at("shares_links") == true);
  CHECK(network.at("from_jobs_s").get<double>() != 0);
}

TEST_CASE("A job that cannot be is refused where it is written") {
  const auto refused = [](const std::string& scenario, const std::string& nodes) {
    const Ran run = orrery(larger + job_of(scenario, nodes));
    CHECK(run.exit_code == 2);
    return run.error;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(refused(R"("gpt-none")", "[39]"), "/jobs/0/scenario: unknown scenario 'gpt-none'; known:");
  has(refused(gpt, "[36, 37, 36, 38]"), "/jobs/0/nodes/2: node 36 is already used by /jobs/0");
  has(refused(gpt, "[36, 37, 38, 40]"), "/jobs/0/nodes/3: expected an integer from 0 to 39");
  has(refused(gpt, "[24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39]"),
      "is 256 GPUs, the cluster has 192");
  has(refused(gpt, "[]"), "/jobs/0/nodes: expected at least one node number");
  has(refused(R"({"model": "gpt-22b", "plan": {"tensor": 0}})", "[39]"),
      "/jobs/0/scenario/plan/tensor: ");
  has(refused(R"({"model": "gpt2", "jobs": []})", "[39]"),
      "/jobs/0/scenario: a job in /jobs cannot have its own jobs");
}

TEST_CASE("The order of axes is Megatron's, or refused") {
  const auto step = [](const std::string& order) {
    const Ran run = orrery(small + R"(--set '/placement={"order": ")" + order + R"("}' --json)");
    INFO(run.error);
    REQUIRE(run.exit_code == 0);
    return parsed(run.out).at("step_time_s").get<double>();
  };
  const double usual = parsed(orrery(small + "--json").out).at("step_time_s");
  CHECK(step("tp-cp-ep-dp-pp") == usual);
  CHECK(step("tp-cp-ep-pp-dp") != usual);
  // The order as a plan's own is the same placement.
  for (const char* mode : {" --network static", " --network events"}) {
    const std::string of_plan = "--set /plan/rank_order=tp-cp-ep-pp-dp";
    const std::string placed = R"(--set '/placement={"order": "tp-cp-ep-pp-dp"}')";
    const Json own = parsed(orrery(small + of_plan + mode + " --json").out);
    const Json asked = parsed(orrery(small + placed + mode + " --json").out);
    CHECK(own.at("step_time_s") == asked.at("step_time_s"));
  }
  const auto alone = [](const std::string& job) {  // how long another job's step takes
    const std::string flags = job_of(job, "[32,33,34,35,36,37,38,39]") + "--network events --json";
    return parsed(orrery(larger + flags).out).at("network").at("jobs")[0].at("alone_s");
  };
  const std::string job = R"({"model": "gpt-22b", "plan": {"tensor": 2, "pipeline": 8, "data": 4,)"
                          R"( "micro_batch": 1, "global_batch": 64)";
  CHECK(alone(job + "}}") != alone(job + R"(, "rank_order": "tp-cp-ep-pp-dp"}})"));
  const auto experts = [](const std::string& order) {
    return orrery(
        "simulate --model mixtral-8x7b --cluster 'dgx-h100 x 4' --json --plan "
        "pipeline=2,expert=8,data=16,global_batch=64,seq_len=1024 --network events --set "
        "'/placement={\"order\": \"" +
        order + "\"}'");
  };
  const double inside = parsed(experts("tp-cp-ep-dp-pp").out).at("step_time_s");
  const double across = parsed(experts("tp-cp-dp-ep-pp").out).at("step_time_s");
  CHECK(across < inside);  // all-to-alls leave the node, and experts' longer reductions stay there
  CHECK(experts("tp-cp-ep-pp-dp")
            .error.find("/placement/order: with experts over several ranks, pp must be last") !=
        std::string::npos);
  const Ran twice = orrery(small + R"(--set '/placement={"order": "tp-tp-ep-dp-pp"}')");
  CHECK(twice.exit_code == 2);
  CHECK(twice.error.find("/placement/order: expected each of tp, cp, ep, dp and pp once") !=
        std::string::npos);
}

TEST_CASE("Kernels that vary make a step longer, and the report says by how much") {
  const std::string flag =
      R"(--set '/perturbations=[{"kind": "jitter", "distribution": "exponential", "deviation": "3 us"}]' )";
  const Json usual = parsed(orrery(small + "--network static --json").out);
  const Json varied = parsed(orrery(small + flag + "--network static --json").out);
  const double jitter = varied.at("network").at("jitter_s");
  CHECK(jitter > 0);
  CHECK(varied.at("step_time_s").get<double>() ==
        Approx(usual.at("step_time_s").get<double>() + jitter));
  CHECK(varied.at("network").at("evaluation") == "static");
  CHECK(orrery(small + flag).out.find("kernel jitter ") != std::string::npos);
  const Ran none = orrery(small + R"(--set '/perturbations=[{"kind": "jitter"}]')");
  CHECK(none.exit_code == 2);
  CHECK(none.error.find("/perturbations/0/deviation: missing") != std::string::npos);
}

TEST_CASE("Jitter alone is evaluated on shared links, as every other perturbation is") {
  const std::string experts =
      "simulate --model mixtral-8x7b --cluster 'dgx-a100-80gb x 8' --json --plan tensor=4,data=16,"
      "micro_batch=1,global_batch=256,seq_len=4096,zero=3,precision=bf16,sequence=true,expert=8 ";
  const std::string jitter = R"(--set '/perturbations=[{"kind": "jitter", "deviation": "5 us"}]' )";
  const Json varied = parsed(orrery(experts + jitter).out);
  CHECK(varied.at("network").at("evaluation") == "events");
  const std::string why = varied.at("network").at("why");
  CHECK(why.find("links can be saturated") != std::string::npos);
  const Json steady = parsed(orrery(experts + "--network events").out);
  CHECK(varied.at("step_time_s") > steady.at("step_time_s"));
  CHECK(varied.at("step_time_s") ==
        parsed(orrery(experts + jitter + "--network events").out).at("step_time_s"));
}

TEST_CASE("Phases are asked for under /network, and their mean and spread are shown") {
  const std::string phases = "--set /network/phases=4 --set /network/seed=7 ";
  const Json answer = parsed(orrery(small + phases + "--json").out);
  const Json& found = answer.at("network").at("phases");
  CHECK(found.at("count") == 4);
  CHECK(found.at("seed") == 7);
  CHECK(found.at("launch_delay_s") == 49e-6);
  CHECK(found.at("step_times_s").size() == 4);
  CHECK(answer.at("step_time_s") ==
        found.at("step_times_s")[found.at("representative").get<std::size_t>()]);
  CHECK(answer.at("lower_bound_s") <= found.at("step_times_s")[0]);
  CHECK(orrery(small + phases + "--json").out == orrery(small + phases + "--json").out);
  CHECK(orrery(small + phases)
            .out.find("4 phases (seed 7, launches 49 us later on average): "
                      "mean ") != std::string::npos);
  CHECK(parsed(orrery(small + "--network events --json").out).at("network").at("phases") ==
        nullptr);
  const Ran fixed = orrery(small + phases + "--network static");
  CHECK(fixed.exit_code == 2);
  const Ran never = orrery(small + phases + "--set '/network/launch_delay=0 us'");
  CHECK(never.exit_code == 2);
  CHECK(never.error.find("/network/launch_delay: expected a time above 0 s and at most 1 s") !=
        std::string::npos);
}

TEST_CASE("What no number of the stack explains is in the bound of its step, too") {
  const std::string asked = "simulate llama3-8b-8-h100 --json ";
  const Json usual = parsed(orrery(asked).out);
  const Json slower = parsed(orrery(asked + "--set /software/unexplained=1.25").out);
  CHECK(usual.at("lower_bound_s").get<double>() <= usual.at("step_time_s").get<double>());
  CHECK(slower.at("lower_bound_s").get<double>() ==
        Approx(1.25 * usual.at("lower_bound_s").get<double>()).epsilon(1e-9));
  CHECK(slower.at("lower_bound_s").get<double>() <= slower.at("step_time_s").get<double>());
}

TEST_CASE("The step if nothing shared a link is reported, where it says something") {
  const Json fixed =
      parsed(orrery(gpt3_question + "--set /cluster/fabric/oversubscription=16 --json").out);
  const Json traffic = parsed(
      orrery(gpt3_question + "--set /cluster/fabric/oversubscription=16 --network events --json")
          .out);
  CHECK(traffic.at("step_time_s") < fixed.at("step_time_s"));
  CHECK(fixed.at("lower_bound_s") <= traffic.at("step_time_s"));
  CHECK(fixed.at("lower_bound_s") == traffic.at("lower_bound_s"));
  CHECK(orrery(gpt3_question + "--set /cluster/fabric/oversubscription=16")
            .out.find("lower bound ") != std::string::npos);
}

TEST_CASE("Kernels vary where no network joins nodes, and the report says why no link is shared") {
  const Ran ran = orrery(
      "simulate --model gpt2 --cluster 'cpu-host x 1' --plan micro_batch=1,global_batch=8,"
      "seq_len=128 --json --set /cluster/fabric=none --set '/perturbations=[{\"kind\": \"jitter\", "
      "\"deviation\": \"5 "
      "us\"}]'");
  INFO(ran.error);
  REQUIRE(ran.exit_code == 0);
  const Json network = parsed(ran.out).at("network");
  CHECK(network.at("evaluation") == "static");
  CHECK(network.at("why") ==
        "links are not shared, though kernels vary: the cluster has no network between nodes");
}

}  // namespace
}  // namespace orrery::scenarios

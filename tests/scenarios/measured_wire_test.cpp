// Whatever logs were imported, no step is shorter than its bytes take over its nodes' NICs, with
// links evaluated statically and as events. Bytes are counted here, not by the cost models.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <random>

#include "models/network/placement.hpp"
#include "models/program/opcodes.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "sim/errors.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

using models::Collective;

/// The least that N nodes of a group send over their NICs, in seconds; 0 where it is not counted:
/// other collectives, groups inside a node, and those with more ranks on one node than on another.
double least_seconds(Collective kind, Bytes size, const models::GroupShape& group,
                     const hardware::Cluster& cluster) {
  if (group.nodes == 1 || group.ranks != group.nodes * group.ranks_per_node) return 0;
  const double nodes = group.nodes, others = (nodes - 1) / nodes;
  double share = 0;
  if (kind == Collective::all_reduce) share = cluster.fabric.switch_reduces ? 1 : 2 * others;
  if (kind == Collective::all_gather || kind == Collective::reduce_scatter) share = others;
  if (kind == Collective::all_to_all) share = others * group.ranks_per_node;
  const double node = cluster.node_bandwidth().count();
  const double of_rank = std::max(cluster.nic_bandwidth().count(), node / cluster.node.gpus);
  const double rate = std::min(node / group.groups_per_node, group.ranks_per_node * of_rank);
  return share * static_cast<double>(size.count()) / rate;
}

/// Of all collectives of one rank in a step.
double least_seconds(const models::Question& asked, const models::Program& program,
                     const models::RankClass& ranks) {
  const auto of = [&](Collective kind, Bytes bytes, std::uint16_t communicator) {
    const models::GroupShape group = models::shape_of(
        program.mesh, program.communicators[communicator], asked.cluster.node.gpus);
    return least_seconds(kind, bytes, group, asked.cluster);
  };
  double sum = 0;
  for (const models::Instruction& each : ranks.instructions) {
    if (models::is_joint(each)) {
      const models::JointCollective& joint = program.collectives[each.target];
      sum += of(joint.kind, joint.bytes, joint.communicator);
    }
    if (!models::runs_phase(each)) continue;
    for (const auto& run : program.phases[each.target].invocations) {
      for (const models::Operation& op : program.blocks[run.block].operations) {
        // Deduplicated rows are fewer than the bytes that are stated.
        if (op.kind != models::OpKind::collective || op.exchange().deduplicated.each > 0) continue;
        sum += static_cast<double>(run.count) * of(op.collective(), op.bytes, op.communicator());
      }
    }
  }
  return sum;
}

constexpr Collective logged[] = {Collective::all_reduce, Collective::all_gather,
                                 Collective::reduce_scatter, Collective::all_to_all,
                                 Collective::send_receive};

/// Tables of `logged`, or of all-reduces alone, as groups of some shape had them at this rate.
std::vector<hardware::CollectiveTable> tables_of(int ranks, int nodes, double rate,
                                                 bool reductions_only) {
  std::vector<hardware::SizeTable::Point> points;
  for (std::int64_t size = 64; size <= std::int64_t{1} << 34; size *= 4) {
    points.push_back({Bytes{size}, 20_us + from_seconds(static_cast<double>(size) / rate)});
  }
  std::vector<hardware::CollectiveTable> tables;
  for (const Collective each : logged) {
    if (reductions_only && each != Collective::all_reduce) continue;
    tables.push_back({std::string{name(each)}, ranks, nodes, hardware::SizeTable{points}});
  }
  return tables;
}

}  // namespace

namespace {

/// Scenarios whose network can be evaluated as events: several nodes, one queue of collectives.
bool has_events(models::Question asked) {
  asked.network.mode = models::NetworkMode::events;
  try {
    models::predict(asked);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// Checks every rank class of a step; true if one spends a tenth of the step on the NICs at least.
bool check_step(const models::Question& asked) {
  const models::Prediction found = models::predict(asked);
  bool felt = false;
  for (const models::RankClass& each : found.program->classes) {
    const double least = least_seconds(asked, *found.program, each);
    CHECK(seconds(found.step) >= least);
    felt = felt || least > 0.1 * seconds(found.step);
  }
  return felt;
}

}  // namespace

TEST_CASE("No imported log makes a shipped scenario's step shorter than its bytes on the NICs") {
  using models::NetworkMode;
  int as_events = 0, felt = 0;
  for (const std::string& name : scenario_names()) {
    models::Question asked = Scenario::load(name).question();
    if (asked.cluster.nodes == 1) continue;
    // Slow NICs, so that the network counts in every step.
    asked.cluster.node.nic_bandwidth = asked.cluster.node.nic_bandwidth * 0.03;
    asked.cluster.fabric.bandwidth = asked.cluster.fabric.bandwidth * 0.03;
    std::vector modes{NetworkMode::fixed};
    if (has_events(asked)) modes.push_back(NetworkMode::events);
    as_events += static_cast<int>(modes.size()) - 1;
    const int gpus = asked.cluster.node.gpus, nodes = asked.cluster.nodes;
    const double nic = asked.cluster.nic_bandwidth().count();
    // Whole nodes, one rank a node, and two whole nodes; faster than any wire, and slow.
    for (const auto& [ranks, on] :
         {std::pair{gpus * nodes, nodes}, {nodes, nodes}, {2 * gpus, 2}}) {
      for (const double rate : {1000 * nic, 8 * nic, nic / 2}) {
        for (const bool reductions : {false, true}) {
          asked.cluster.measured_collectives = tables_of(ranks, on, rate, reductions);
          for (const NetworkMode mode : modes) {
            asked.network.mode = mode;
            INFO(fmt::format("{}, logs of {} ranks on {} nodes at {} GB/s{}, {}", name, ranks, on,
                             rate / 1e9, reductions ? " of all-reduces" : "",
                             word_of(models::network_mode_words, mode)));
            felt += check_step(asked) ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(as_events >= 5);
  CHECK(felt >= 10);
}

namespace {

/// A log of nccl-tests: every message takes `us` and its bus bytes over `bus` GB/s.
std::string log_text(const std::string& operation, int ranks, int per_node, double bus, double us) {
  std::string text;
  for (int r = 0; r < ranks; ++r) {
    text += fmt::format(
        "#  Rank {:2d} Group  0 Pid {} on node{:03d} device {:2d} [0x1b] NVIDIA H100 "
        "80GB HBM3\n",
        r, r, r / per_node, r % per_node);
  }
  text +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n";
  const double factor = (ranks - 1.0) / ranks * (operation == "all_reduce" ? 2 : 1);
  for (int i = 3; i < 34; ++i) {
    const double size = std::ldexp(1.0, i), taken = us + size * factor / bus / 1e3;
    const std::string columns = fmt::format("{:8.2f} {:7.2f} {:7.2f} 0", taken, size / taken / 1e3,
                                            size / taken / 1e3 * factor);
    text += fmt::format("{:13.0f} {:13.0f} float {:>8} -1 {} {}\n", size, size / 4,
                        operation == "all_gather" ? "none" : "sum", columns, columns);
  }
  return text;
}

/// dgx-h100 x 8 with imported logs of these operations, as a file.
std::string with_logs(const Scratch& scratch, const std::vector<std::string>& operations, int ranks,
                      int per_node, double bus) {
  std::string logs;
  for (const std::string& each : operations) {
    const std::string file = fmt::format("{}-{}-{}.log", each, ranks, bus);
    logs += " " + scratch.write(file, log_text(each, ranks, per_node, bus, 60));
  }
  const std::string cluster =
      scratch.path(fmt::format("c{}-{}-{}.json", operations.size(), ranks, bus));
  const Ran ran =
      orrery("calibrate --import" + logs + " --cluster 'dgx-h100 x 8' --out " + cluster);
  INFO(ran.error);
  REQUIRE(ran.exit_code == 0);
  return cluster;
}

Json simulated(const std::string& cluster, const std::string& plan, const std::string& network) {
  const Ran ran = orrery("simulate --json --model llama3-70b --software torchtitan --plan " + plan +
                         ",micro_batch=1,global_batch=128,seq_len=8192 --network " + network +
                         " --cluster '" + cluster + "'");
  INFO(ran.error);
  return Json::parse(ran.out);
}

double step_of(const Json& prediction) {
  return prediction["step_time_s"];
}

}  // namespace

TEST_CASE("An imported log of another number of ranks a node keeps to the NICs that are used") {
  const Scratch scratch;
  const std::vector<std::string> both{"all_gather", "reduce_scatter"};
  // The cost model has some 300 GB/s on 64 ranks, and 38 on one GPU a node.
  const std::string plain = "dgx-h100 x 8";
  const std::string slow = with_logs(scratch, both, 64, 8, 220);
  const std::string one_a_node = with_logs(scratch, both, 8, 1, 20);
  const std::string reductions = with_logs(scratch, {"all_reduce"}, 64, 8, 200);
  const std::string wide = "data=64,zero=3,recompute=full";
  const std::string narrow = "tensor=8,sequence=true,data=8,zero=3";
  for (const std::string network : {"static", "events"}) {
    for (const std::string& plan : {wide, narrow}) {
      INFO(plan << ", " << network);
      const double modelled = step_of(simulated(plain, plan, network));
      // All three logs are slower than the cost model, so is every step.
      for (const std::string& each : {slow, one_a_node, reductions}) {
        CHECK(step_of(simulated(each, plan, network)) > 1.002 * modelled);
      }
    }
  }
}

TEST_CASE("A plan's order does not turn on a log's number of ranks a node") {
  // Sharding over 8 nodes with one NIC a group, next to sharding over all GPUs: the first is slower
  // by the cost model, and a log of 64 ranks that is slower than the model is no reason to prefer
  // it.
  const Scratch scratch;
  const std::string slow = with_logs(scratch, {"all_gather", "reduce_scatter"}, 64, 8, 220);
  const std::string wide = "data=64,zero=3,recompute=full";
  const std::string narrow = "tensor=8,sequence=true,data=8,zero=3";
  for (const std::string& cluster : {std::string{"dgx-h100 x 8"}, slow}) {
    CHECK(step_of(simulated(cluster, narrow, "static")) >
          1.5 * step_of(simulated(cluster, wide, "static")));
  }
}

TEST_CASE("A log of a step's own collectives is what they take") {
  // FSDP over all 64 GPUs: 60 us more than the bytes over 150 GB/s.
  const Scratch scratch;
  const std::string cluster = with_logs(scratch, {"all_gather", "reduce_scatter"}, 64, 8, 150);
  const Ran answered = orrery(
      "simulate --explain --model llama3-70b --software torchtitan --plan data=64,zero=3,"
      "recompute=full,micro_batch=1,global_batch=128,seq_len=8192 --cluster " +
      cluster);
  CHECK(answered.out.find("149 GB/s") != std::string::npos);
  CHECK(answered.out.find("scaled from") == std::string::npos);
}

TEST_CASE("What all-reduces carry over to other collectives is among the assumptions") {
  const Scratch scratch;
  const std::string cluster = with_logs(scratch, {"all_reduce"}, 64, 8, 200);
  const Json found = simulated(cluster, "data=64,zero=3,recompute=full", "static");
  int said = 0;
  for (const Json& each : found["assumptions"]) {
    const auto text = each.get<std::string>();
    if (text.find("as the all_reduce table of 64 ranks, 8 a node shows (60 us, 200 GB/s") !=
        std::string::npos) {
      ++said;
      CHECK((text.rfind("all_gather of 64 ranks", 0) == 0 ||
             text.rfind("reduce_scatter of 64 ranks", 0) == 0));
    }
    CHECK(text.find("does not use") == std::string::npos);
  }
  CHECK(said == 2);
}

}  // namespace orrery::scenarios

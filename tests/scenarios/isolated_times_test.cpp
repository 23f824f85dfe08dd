// No step is faster than its wires: what a queue carries, each transfer alone on it, fits into the
// step, whatever a stack hides of it. Times are those of the collectives' laws.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <tuple>

#include "models/network/collectives/collective.hpp"
#include "models/network/placement.hpp"
#include "models/plan/conflicts.hpp"
#include "models/pricing/price.hpp"
#include "models/pricing/wire.hpp"
#include "models/program/opcodes.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "sim/errors.hpp"
#include "tests/models/questions.hpp"

namespace orrery::scenarios {
namespace {

using models::Collective;
using models::LinkTimes;
using models::Opcode;

/// What one rank's queues carry over a step, each transfer alone.
struct Isolated {
  Time tensor{}, data{}, sent{}, received{};
  Time collectives_nic{}, sent_nic{}, received_nic{};
};

class Laws {
 public:
  Laws(const models::Question& asked, const models::Program& program)
      : asked_{asked}, program_{program} {}

  Isolated of_class(const models::RankClass& ranks) {
    Isolated sum;
    for (const models::Instruction& each : ranks.instructions) {
      if (models::runs_phase(each)) {
        for (const auto& run : program_.phases[each.target].invocations) add_block(run, sum);
      } else if (models::is_joint(each)) {
        add_joint(program_.collectives[each.target], sum);
      } else {
        add_transfer(program_.channels[each.target], each.op == Opcode::send, sum);
      }
    }
    return sum;
  }

 private:
  const models::CollectiveTime& law(Collective kind, Bytes bytes, std::uint16_t communicator,
                                    const models::TokenCopies& copies = {}) {
    const auto [found, fresh] = laws_.try_emplace({kind, bytes, communicator, copies});
    if (fresh) {
      const models::GroupShape group = models::shape_of(
          program_.mesh, program_.communicators[communicator], asked_.cluster.node.gpus);
      found->second =
          models::price(kind, bytes, group, asked_.cluster, models::pricing_of(copies, group));
    }
    return found->second;
  }

  void add_block(const models::Invocation& run, Isolated& sum) {
    for (const models::Operation& op : program_.blocks[run.block].operations) {
      if (op.kind != models::OpKind::collective) continue;
      const models::CollectiveTime& one =
          law(op.collective(), op.bytes, op.communicator(), op.exchange().deduplicated);
      sum.tensor += one.time * run.count;
      sum.collectives_nic += one.links.nic * run.count;
    }
  }

  void add_joint(const models::JointCollective& joint, Isolated& sum) {
    const models::Overlap& overlap = asked_.software.overlap;
    const bool of_data = joint.communicator == models::data_group;
    // Owners that broadcast one after another have a measured time of their own.
    const bool measured =
        joint.kind == Collective::broadcast && overlap.broadcast_per_rank > Time{};
    if (of_data && measured) return;
    const double share = of_data ? overlap.data_efficiency : 1;
    const models::CollectiveTime& one = law(joint.kind, joint.bytes, joint.communicator);
    sum.data += scaled(one.time, 1 / share);
    sum.collectives_nic += scaled(one.links.nic, 1 / share);
  }

  void add_transfer(const models::Channel& channel, bool sends, Isolated& sum) {
    const auto pipe = channel.forward ? models::forward_pipe : models::backward_pipe;
    const models::CollectiveTime& one = law(Collective::send_receive, channel.bytes, pipe);
    // A stage's ranks sit on nodes of their own, or the transfer may stay inside one.
    const bool crosses = program_.mesh.stage_ranks() >= asked_.cluster.node.gpus;
    (sends ? sum.sent : sum.received) += one.time;
    if (crosses) (sends ? sum.sent_nic : sum.received_nic) += one.links.nic;
  }

  const models::Question& asked_;
  const models::Program& program_;
  std::map<std::tuple<Collective, Bytes, std::uint16_t, models::TokenCopies>,
           models::CollectiveTime>
      laws_;
};

/// The queues of every rank class and their NIC. Down and up the pipeline are two channels each.
void check_wires(const models::Question& asked, const models::Prediction& found) {
  Laws laws{asked, *found.program};
  const Time step = found.step;
  for (const models::RankClass& ranks : found.program->classes) {
    const Isolated sum = laws.of_class(ranks);
    INFO("stage " << ranks.stage << ": step " << seconds(step) << " s, tp " << seconds(sum.tensor)
                  << " s, dp " << seconds(sum.data) << " s");
    CHECK(sum.tensor <= step);
    CHECK(sum.data <= step);
    CHECK(sum.sent <= 2 * step);
    CHECK(sum.received <= 2 * step);
    CHECK(sum.collectives_nic + std::max(sum.sent_nic, sum.received_nic) <= step);
  }
  CHECK(found.busy.nic <= 1);
  CHECK(found.busy.sm <= 1);
}

/// Draws that are the same with every standard library.
class Draw {
 public:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  std::string one_of(const std::vector<std::string>& values) {
    return values[random_() % values.size()];
  }

 private:
  std::mt19937_64 random_{20};
};

std::optional<models::Question> drawn(Draw& draw) {
  const auto number = [&](std::initializer_list<int> values) { return draw.one_of(values); };
  const std::string plan = fmt::format(
      "tensor={},pipeline={},zero={},sequence={},micro_batch={},global_batch={},seq_len={}",
      number({1, 2, 4, 8, 16}), number({1, 1, 2, 4}), number({0, 1, 2, 3}),
      draw.one_of({"true", "false"}), number({1, 2}), number({64, 128, 256}),
      number({256, 1024, 2048}));
  const std::string model = draw.one_of({"gpt2-xl", "llama2-7b", "llama2-13b", "gpt-22b"});
  const std::string cluster = draw.one_of({"dgx-h100 x 2", "dgx-a100-80gb x 4", "hgx-h100 x 8"});
  const std::string software = draw.one_of(models::software_names());
  const double network = draw.one_of({1.0, 0.3, 0.05});
  try {
    models::Question asked = models::question(model, cluster, plan, software);
    asked.cluster.node.nic_bandwidth = asked.cluster.node.nic_bandwidth * network;
    asked.cluster.fabric.bandwidth = asked.cluster.fabric.bandwidth * network;
    if (models::conflicts(asked).empty()) return asked;
  } catch (const InputError&) {  // degrees that do not divide
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("In no shipped scenario is the step shorter than what a queue or a NIC carries") {
  for (const std::string& name : scenario_names()) {
    INFO(name);
    const models::Question asked = Scenario::load(name).question();
    if (asked.model.list) continue;  // exchanges with neighbours are no messages between two ends
    check_wires(asked, models::predict(asked));
  }
}

TEST_CASE("In no random plan is the step shorter than what a queue or a NIC carries") {
  Draw draw;
  int ran = 0, hidden = 0, bound = 0;
  for (int i = 0; i < 400 && ran < 100; ++i) {
    const std::optional<models::Question> asked = drawn(draw);
    if (!asked) continue;
    const models::Prediction found = models::predict(*asked);
    INFO(asked->software.name << ", " << asked->model.name << " on " << asked->cluster.name
                              << ", tensor " << asked->plan.tensor << ", pipeline "
                              << asked->plan.pipeline << ", data " << asked->plan.data << ", zero "
                              << static_cast<int>(asked->plan.sharding.zero));
    check_wires(*asked, found);
    ++ran;
    hidden += asked->software.overlap.data_exposed < 1 && asked->plan.data > 1 ? 1 : 0;
    bound += found.step > found.times.scheduled() ? 1 : 0;
  }
  CHECK(ran == 100);
  CHECK(hidden > 5);
  CHECK(bound > 0);
}

TEST_CASE("ZeRO-3 across nodes is no faster than its gathers and reductions") {
  for (const char* software : {"nemo", "megatron-core", "megatron-bridge"}) {
    const models::Question asked = models::question(
        "llama3-70b", "hgx-h100 x 32",
        "tensor=4,sequence=true,data=64,zero=3,micro_batch=1,global_batch=1024,seq_len=8192",
        software);
    const models::Prediction found = models::predict(asked);
    INFO(software);
    check_wires(asked, found);
    // 1,280 times a layer's two gathers and its reduction, at the rates of their laws: 30 s alone.
    CHECK(found.step > 30_s);
    CHECK(found.busy.nic > 0.85);
  }
}

}  // namespace orrery::scenarios

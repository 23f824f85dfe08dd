#include <fmt/format.h>

#include <map>

#include "models/network/placement.hpp"
#include "models/pricing/wire.hpp"
#include "models/program/walk.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using models::Collective;
using models::GroupShape;

/// Calls with the same communicator, collective and size: one row of the table.
struct ReportedCall {
  std::string communicator;
  Collective kind{};
  Bytes bytes{};
  models::TokenCopies copies{};
  auto operator<=>(const ReportedCall&) const = default;
};

/// The calls of one row in the slowest rank's step, and their group.
struct CollectiveTally {
  std::int64_t count = 0;
  GroupShape shape;
  Time queue{};  // time that the queue is busy with them, at the stack's efficiency
  Time shown{};  // the part that dependent work waits for
};

class Counter {
 public:
  Counter(const models::Prediction& prediction, const models::Question& question)
      : prediction_{prediction}, program_{*prediction.program}, question_{question} {}

  std::map<ReportedCall, CollectiveTally> run() {
    models::walk(program_, prediction_.slowest, *this);
    return calls_;
  }

  void phase(models::Token, const models::Instruction& each) {
    for (const models::Invocation& run : program_.phases[each.target].invocations) {
      const models::Block& block = program_.blocks[run.block];
      for (std::size_t i = 0; i < block.operations.size(); ++i) {
        const models::Operation& op = block.operations[i];
        if (op.kind != models::OpKind::collective) continue;
        add({op.communicator(), op.collective(), op.bytes, op.exchange().deduplicated},
            prediction_.priced.blocks[run.block][i], run.count);
      }
    }
  }

  void send(models::Token, const models::Instruction&) {}
  void receive(models::Token, const models::Instruction& each) {
    const models::Channel& channel = program_.channels[each.target];
    add({channel.communicator, Collective::send_receive, channel.bytes},
        {.duration = prediction_.priced.channels[each.target]}, 1);
  }
  void joint(models::Token, const models::Instruction& each) {
    const models::JointCollective& joint = program_.collectives[each.target];
    models::PricedOperation price = prediction_.priced.collectives[each.target];
    if (joint.hidden_in_next_step) price.trail = prediction_.priced.carried_by(prediction_.slowest);
    add({joint.communicator, joint.kind, joint.bytes}, price, 1);
  }

 private:
  struct Sent {
    std::uint16_t communicator = 0;
    Collective kind{};
    Bytes bytes{};
    models::TokenCopies copies{};
  };

  void add(const Sent& sent, const models::PricedOperation& each, std::int64_t count) {
    const models::Communicator& group = program_.communicators.at(sent.communicator);
    CollectiveTally& tally = calls_[{group.name, sent.kind, sent.bytes, sent.copies}];
    tally.count += count;
    tally.queue += each.occupied() * count;
    tally.shown += each.duration * count;
    tally.shape =
        models::shape_of(program_.mesh, group, sent.kind, question_.cluster.node.gpus,
                         models::order_of(question_.network.order.axes, program_.rank_order));
  }

  const models::Prediction& prediction_;
  const models::Program& program_;
  const models::Question& question_;
  std::map<ReportedCall, CollectiveTally> calls_;
};

}  // namespace

std::string collectives_section(const ReportInputs& in) {
  TextTable table{{"<group", "<collective", "ranks", "nodes", "size", "calls", "alone", "bus",
                   "queue", "of step", "shown", "<algorithm", "<limited by"}};
  const hardware::Cluster& cluster = in.question.cluster;
  for (const auto& [call, tally] : Counter{in.prediction, in.question}.run()) {
    const models::CollectiveTime one = models::price(
        call.kind, call.bytes, tally.shape, cluster,
        models::pricing_of(call.copies, tally.shape, {.nccl = in.question.network.tuner()}));
    const double bus = models::bus_factor(call.kind, tally.shape.ranks) *
                       static_cast<double>(call.bytes.count()) / seconds(one.time);
    const std::string protocol =
        one.protocol ? "/" + std::string{models::name(*one.protocol)} : std::string{};
    const bool took_time = one.time.count() > 0;
    table.add({call.communicator, std::string{models::name(call.kind)},
               fmt::format("{}", tally.shape.ranks), fmt::format("{}", tally.shape.nodes),
               format(call.bytes), fmt::format("{}", tally.count), format(one.time),
               took_time ? format(Bandwidth{bus}) : "", step_part(tally.queue, in.prediction.step),
               percent(ratio(tally.queue, in.prediction.step)),
               step_part(tally.shown, in.prediction.step),
               took_time ? std::string{one.algorithm} + protocol : "",
               took_time ? std::string{one.limited_by} : ""});
  }
  if (table.empty()) return {};
  return heading("Collectives and transfers of the slowest rank", in.options) +
         table.text(in.options.colour) +
         legend(
             "alone: one call by its cost model or table; bus: bus bandwidth as nccl-tests counts "
             "it; queue: all calls at the speed that the stack reaches, without contention (a "
             "lower bound); shown: the part of that which is exposed where the stack overlaps the "
             "rest piece by piece; limited by: the largest term of the model",
             in.options);
}

}  // namespace orrery::scenarios

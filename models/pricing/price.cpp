#include "models/pricing/price.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "models/network/collectives/measured.hpp"
#include "models/network/collectives/nccl_settings.hpp"
#include "models/pricing/beside_communication.hpp"
#include "models/pricing/calibrated.hpp"
#include "models/pricing/grouped.hpp"
#include "models/pricing/listed.hpp"
#include "models/pricing/notes.hpp"
#include "models/pricing/rank_load.hpp"
#include "models/pricing/wire.hpp"
#include "models/program/graph_segments.hpp"

namespace orrery::models {

namespace {

/// Prices one Program's parts.
class Pricer {
 public:
  Pricer(const Program& program, const hardware::Cluster& cluster, const Software& software,
         const WirePlaces& places)
      : program_{program},
        cluster_{cluster},
        software_{software},
        wires_{program, cluster, software, places} {}

  PricedProgram run() {
    PricedProgram priced;
    priced.program = &program_;
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      std::vector<PricedOperation>& prices = priced.blocks.emplace_back();
      prices = price_block(program_.blocks[b]);
      for (const GraphSegment& each : graph_segments(program_, b)) launch_at_once(each, prices);
    }
    for (const LayerKind& kind : program_.kinds) hide_behind_other(kind, priced);
    for (const Channel& channel : program_.channels) {
      const CollectiveTime one = wires_.channel(channel);
      priced.channels.push_back(one.time);
      priced.channel_links.push_back(one.links);
      priced.channel_flows.push_back(std::max(1, one.flows));
    }
    price_collectives(priced.collectives);
    slow_next_to_gathers(priced);
    carry_gathers(priced);
    slow_beside_communication(priced, beside_communication());
    priced.transfer_launch = software_.host.communication_launch;
    priced.step_launch = updates() ? software_.host.step : Time{};
    priced.synchronous = software_.host.synchronous;
    priced.blocking_receive = program_.awaits_transfers.value_or(software_.host.blocking_receive);
    priced.blocking_communication = software_.host.communication == Communication::blocking;
    return priced;
  }

 private:
  /// Most layers gather and reduce as much as the one before: each amount is priced once.
  void price_collectives(std::vector<PricedOperation>& prices) const {
    using Amount =
        std::tuple<Collective, std::uint16_t, hardware::DType, Bytes, Bytes, Bytes, bool>;
    std::map<Amount, PricedOperation> known;
    prices.reserve(program_.collectives.size());
    for (const JointCollective& joint : program_.collectives) {
      const auto [found, fresh] =
          known.try_emplace({joint.kind, joint.communicator, joint.dtype, joint.bytes,
                             joint.accumulate_traffic, joint.from_host, joint.gathers_parameters});
      PricedOperation& price = found->second;
      if (fresh) {
        price = wires_.joint(joint);
        price.launch = software_.host.communication_launch +
                       software_.host.jitter * wires_.ranks(joint.communicator);
      }
      prices.push_back(price);
    }
  }

  std::vector<PricedOperation> price_block(const Block& block) const {
    std::vector<PricedOperation> prices;
    prices.reserve(block.operations.size());
    for (const Operation& op : block.operations) {
      PricedOperation& price = prices.emplace_back();
      if (op.kind == OpKind::collective) {
        const bool copied = op.exchange().deduplicated.each > 0;
        price = copied ? wires_.in_block(with_probabilities(op, block)) : wires_.in_block(op);
      } else if (op.queue == Lane::host && op.kind == OpKind::adam) {
        price.duration = host_adam_time(op, cluster_.node, at_once());
      } else {
        price.duration = kernel_time(op, cluster_.gpu(), software_, at_once());
      }
      if (op.files() != FileUse::none) price.duration = through_files(op);
      price.launch = launch_time(op, software_, wires_.ranks(op.communicator())) +
                     software_.host.expert_launch * quantised_experts(op, block) +
                     software_.host.sharded_adapter * sharded_adapters(op);
    }
    return prices;
  }

  /// Number of adapters' matrices that an operation multiplies and that ZeRO-3 gathers alone; once
  /// in forward and once in backward, whose input gradient is not counted.
  std::int64_t sharded_adapters(const Operation& op) const {
    const bool alone = program_.sharding.parameters && op.module.adapter && is_gemm(op.kind);
    return alone && !op.gemm().transpose_b ? op.module.adapters : 0;
  }

  /// Time of a copy from or to files. It goes in pieces, as fast as the slower of host link and
  /// drives.
  Time through_files(const Operation& op) const {
    const Time drives = file_time(op.bytes, op.files(), program_, cluster_);
    if (op.queue == Lane::host) return drives;
    return std::max(drives, op.bytes / cluster_.gpu().host_link);
  }

  /// Where a dispatcher sends a token once to each rank, each copy brings its probability for every
  /// expert of the NVLink domain, in fp32, and in backward their gradients return with it: as many
  /// bytes as its hidden state where experts are many and latent (Nemotron 3 Super, 512 of width
  /// 1,024).
  /// Source  DeepEP, branch hybrid-ep, csrc/hybrid_ep/executor/executor.cu: dispatched_probs, a row
  ///         of num_of_experts_per_rank * num_of_ranks_per_node floats. DeepEP's own dispatcher
  ///         sends an index and a probability for each of a token's experts instead, a few bytes
  ///         more or less on its nodes of eight
  Operation with_probabilities(Operation op, const Block& block) const {
    if (op.collective() != Collective::all_to_all) return op;
    const Operand& rows = block.operands[op.reads[0]];
    const auto& cut = rows.sharding.cut(MeshAxis::expert);
    const bool sent = cut && cut->dimension == Dimension::rows;
    if (sent != (op.pass != Pass::backward)) return op;
    const std::int64_t ranks = std::max(1, wires_.ranks(op.communicator()));
    const std::int64_t near = std::min<std::int64_t>(ranks, cluster_.node.gpus);
    const double experts = static_cast<double>(rows.uncut[0] * near) / static_cast<double>(ranks);
    const double hidden = static_cast<double>(rows.shape[2]) * bits(rows.dtype) / 8;
    op.bytes =
        nearest_count<Bytes>(static_cast<double>(op.bytes.count()) * (1 + 4 * experts / hidden));
    return op;
  }

  /// Number of experts whose rows an operation quantises with block scales.
  static std::int64_t quantised_experts(const Operation& op, const Block& block) {
    if (op.kind != OpKind::quantise || op.writes.size() < 2) return 0;
    const std::int64_t matrices = block.operands[op.reads[0]].shape[0];
    return matrices > 1 ? matrices : 0;
  }

  /// All-to-alls that overlap with the other direction of another micro-batch: only the time by
  /// which they are longer than the kernels of both directions stays exposed.
  void hide_behind_other(const LayerKind& kind, PricedProgram& priced) const {
    Time computed{}, sent{};
    std::vector<std::uint32_t> both{kind.forward, kind.backward};
    if (kind.weight_gradient) both.push_back(*kind.weight_gradient);
    const auto each_of = [&](auto visit) {
      for (const std::uint32_t id : both) {
        for (std::size_t i = 0; i < priced.blocks[id].size(); ++i) {
          visit(program_.blocks[id].operations[i], priced.blocks[id][i]);
        }
      }
    };
    each_of([&](const Operation& op, const PricedOperation& price) {
      if (op.queue == Lane::compute) computed += price.duration;
      if (op.kind == OpKind::collective && op.exchange().overlaps_micro_batch)
        sent += price.duration;
    });
    if (sent == Time{}) return;
    const double shown = std::max(0.0, ratio(sent - computed, sent));
    const double longer = computed == Time{} ? 1
                                             : 1 + (beside_communication() - 1) *
                                                       ratio(std::min(computed, sent), computed);
    each_of([&](const Operation& op, PricedOperation& price) {
      if (op.queue == Lane::compute && longer > 1) price.duration = scaled(price.duration, longer);
      if (op.kind != OpKind::collective || !op.exchange().overlaps_micro_batch) return;
      price.duration = scaled(price.duration, shown);
    });
  }

  /// A segment is one CUDA graph: all of it is launched with its first operation.
  void launch_at_once(GraphSegment segment, std::vector<PricedOperation>& prices) const {
    for (std::size_t i = segment.first; i < segment.end; ++i) prices[i].launch = Time{};
    prices[segment.first].launch = graph_launch_time(segment.end - segment.first, software_);
  }

  /// Slows a unit's kernels, which run concurrently with the gather of another unit like it, and in
  /// backward also with a reduction.
  void slow_next_to_gathers(PricedProgram& priced) const {
    const bool concurrent = program_.sharding.parameters && program_.sharding.ahead;
    if (contention() == 0 || !concurrent) return;
    for (std::uint32_t id = 0; id < program_.kinds.size(); ++id) {
      const LayerKind& kind = program_.kinds[id];
      const Time gather = time_of_units(priced, id, Collective::all_gather);
      const Time reduction = time_of_units(priced, id, Collective::reduce_scatter);
      slow(priced.blocks[kind.forward], program_.blocks[kind.forward], gather);
      slow(priced.blocks[kind.backward], program_.blocks[kind.backward], gather + reduction);
    }
  }

  /// Queue time of the first collectives of this sort that move a unit of that kind: of its dense
  /// parameters and of its experts.
  Time time_of_units(const PricedProgram& priced, std::uint32_t kind, Collective sort) const {
    const Time dense = time_of_units(priced, kind, sort, MeshView::dense);
    if (program_.kinds[kind].expert_parameters == 0) return dense;
    return dense + time_of_units(priced, kind, sort, MeshView::experts);
  }
  Time time_of_units(const PricedProgram& priced, std::uint32_t kind, Collective sort,
                     MeshView view) const {
    for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
      const JointCollective& joint = program_.collectives[j];
      if (joint.units == 0 || joint.kind != sort) continue;
      const Unit& unit = program_.units[joint.first_unit];
      if (unit.kinds.front() == kind && unit.view == view) return priced.collectives[j].occupied();
    }
    return Time{};
  }

  void slow(std::vector<PricedOperation>& prices, const Block& block, Time next_to) const {
    Time kernels{};
    for (std::size_t i = 0; i < prices.size(); ++i) {
      if (block.operations[i].queue == Lane::compute) kernels += prices[i].duration;
    }
    if (kernels == Time{}) return;
    const Time more = scaled(std::min(kernels, next_to), contention());
    lengthen_kernels(block, more, prices);
  }

  /// How many times as long kernels take next to communication, as this GPU's calibration measured;
  /// 1 if none did.
  double beside_communication() const {
    const auto& measured = cluster_.gpu().calibration.beside_communication;
    return measured ? measured->compute : 1;
  }

  /// By which share kernels take longer next to gathers of other units: measured on this GPU, or
  /// else the stack's.
  double contention() const {
    const auto& measured = cluster_.gpu().calibration.beside_communication;
    return measured ? measured->compute - 1 : software_.overlap.contention;
  }

  /// Does the step end with an update of weights? A loop without training has no framework around
  /// its steps.
  bool updates() const {
    return std::ranges::any_of(program_.classes, [](const RankClass& ranks) {
      return std::ranges::any_of(
          ranks.instructions, [](const Instruction& each) { return each.op == Opcode::optimizer; });
    });
  }

  /// Ranks of one machine that compute at the same time.
  int at_once() const {
    return static_cast<int>(std::min<std::int64_t>(program_.mesh.ranks(), cluster_.node.gpus));
  }

  const Program& program_;
  const hardware::Cluster& cluster_;
  const Software& software_;
  WirePricer wires_;
};

/// The stack as it accumulates in the Program's format of gradients, which a plan may state.
Software with_gradient(Software stack, const Formats& formats) {
  if (stack.gradient_dtype_for(formats.storage) == formats.gradient) return stack;
  stack.gradient = formats.gradient;
  stack.gradient_of_fp16.reset();
  return stack;
}

}  // namespace

PricedProgram price_program(const Program& program, const hardware::Cluster& cluster,
                            const Software& stack, std::vector<std::string>& assumptions,
                            const WirePlaces& asked, const std::vector<TargetCounts>* counts) {
  WirePlaces places = asked;
  places.order = order_of(asked.order, program.rank_order);
  const Software software = with_attention(
      at_site(with_gradient(stack, program.formats), cluster.site), program.attention);
  PricedProgram priced = Pricer{program, cluster, software, places}.run();
  priced.counts = counts != nullptr ? *counts : counts_of(program);
  priced.bound = with_ahead(bound_of(loads_of(priced)), program, cluster);
  priced.fallback_curves = note_fallbacks(cluster.gpu(), program, software, assumptions);
  note_attention_kernel(cluster.gpu(), program, software, assumptions);
  note_listed(program, cluster, assumptions);
  note_shapes(cluster.gpu(), program, software, assumptions);
  const bool tables_answer = !places.nccl || !places.nccl->any();
  if (tables_answer) note_tables(program, cluster, assumptions, places.order);
  if (places.sharing == LinkSharing::with_siblings) {
    note_oversubscription(program, cluster, assumptions, places);
  }
  note_concurrent_slowdown(cluster.gpu(), program, assumptions);
  note_stored_fp8(cluster.gpu(), program, assumptions);
  if (program.graphs && !software.host.graph_launch) {
    assumptions.push_back(
        "/software/host/graph_launch: not stated; 2.5 us and 1 ns per operation assumed, NVIDIA's "
        "figures for graphs without branches (CUDA 12.6)");
  }
  return priced;
}

}  // namespace orrery::models

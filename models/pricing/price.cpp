#include "models/pricing/price.hpp"

#include <algorithm>
#include <cmath>

#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

Bytes scaled_bytes(Bytes bytes, double factor) {
  return Bytes{std::llround(static_cast<double>(bytes.count()) * factor)};
}

hardware::AttentionCall call_of(const Operation& op) {
  return {.work = op.flops,
          .seq = op.attention.seq,
          .head_dim = static_cast<int>(op.attention.head_dim),
          .causal = op.attention.causal,
          .pass = op.kind == OpKind::attention ? hardware::Pass::forward
                                               : hardware::Pass::backward};
}

/// Prices one Program's parts.
class Pricer {
 public:
  Pricer(const Program& program, const hardware::Cluster& cluster, const Software& software)
      : program_{program}, cluster_{cluster}, software_{software} {
    for (const Communicator& each : program.communicators) {
      groups_.push_back(shape_of(program.mesh, each, cluster.node.gpus));
    }
  }

  PricedProgram run() {
    PricedProgram priced;
    priced.program = &program_;
    for (const Block& block : program_.blocks) priced.blocks.push_back(price_block(block));
    for (const Channel& channel : program_.channels) {
      const std::uint16_t pipe = channel.forward ? forward_pipe : backward_pipe;
      priced.channels.push_back(
          price(Collective::send_receive, channel.bytes, groups_[pipe], cluster_).time);
    }
    for (const JointCollective& joint : program_.collectives) {
      priced.collectives.push_back(joint_time(joint));
      priced.collective_launch.push_back(software_.host.communication_launch +
                                         software_.host.jitter * groups_[joint.communicator].ranks);
    }
    priced.transfer_launch = software_.host.communication_launch;
    priced.step_launch = software_.host.step;
    priced.synchronous = software_.host.synchronous;
    priced.blocking_receive = software_.host.blocking_receive;
    return priced;
  }

 private:
  std::vector<PricedOperation> price_block(const Block& block) const {
    std::vector<PricedOperation> prices;
    prices.reserve(block.operations.size());
    for (const Operation& op : block.operations) {
      const int ranks = groups_[op.communicator].ranks;
      const Time duration = op.kind == OpKind::collective
                                ? tensor_time(op)
                                : kernel_time(op, cluster_.gpu(), software_);
      prices.push_back({launch_time(op, software_, ranks), duration});
    }
    return prices;
  }

  Time tensor_time(const Operation& op) const {
    const Time whole = price(op.collective, op.bytes, groups_[op.communicator], cluster_).time;
    return scaled(whole, software_.overlap.tensor_exposed);
  }

  /// Data-parallel traffic runs at the share of the law that the stack reaches.
  Time joint_time(const JointCollective& joint) const {
    const Time whole = price(joint.kind, joint.bytes, groups_[joint.communicator], cluster_).time;
    if (joint.communicator != data_group) return whole;
    return scaled(whole, software_.overlap.data_exposed / software_.overlap.data_efficiency);
  }

  const Program& program_;
  const hardware::Cluster& cluster_;
  const Software& software_;
  std::vector<GroupShape> groups_;
};

void note_borrowed(const hardware::Gpu& gpu, const Program& program, const Software& software,
                   std::vector<std::string>& assumptions) {
  const auto note = [&](const std::string& what, const hardware::CurveOrigin& origin) {
    if (origin.borrowed.empty()) return;
    const std::string text = what + " curve of " + gpu.name + " borrowed from " + origin.borrowed;
    if (std::find(assumptions.begin(), assumptions.end(), text) == assumptions.end()) {
      assumptions.push_back(text);
    }
  };
  const auto gemm = gpu.gemm.find(compute_dtype(program.plan.precision));
  if (gemm != gpu.gemm.end()) {
    note("gemm " + std::string{hardware::name(gemm->first)}, gemm->second.origin);
  }
  const auto attention = gpu.attention.find(std::string{software.attention(gpu.generation)});
  if (attention != gpu.attention.end()) {
    note("attention " + attention->first, attention->second.origin);
  }
  note("memory-bound", gpu.memory_bound.origin);
}

}  // namespace

Time kernel_time(const Operation& op, const hardware::Gpu& gpu, const Software& software) {
  const auto generation = gpu.generation;
  switch (op.kind) {
    case OpKind::gemm:
    case OpKind::batched_gemm:
      return scaled(gpu.gemm_time(op.dtype, op.flops, op.bytes),
                    software.gemm_derate(generation) / gpu.sustained_share);
    case OpKind::attention:
    case OpKind::attention_backward:
      return scaled(gpu.attention_time(software.attention(generation), op.dtype, call_of(op)),
                    software.kernels.attention_derate);
    default:
      return gpu.memory_time(scaled_bytes(op.bytes, software.kernels.memory_derate));
  }
}

Time launch_time(const Operation& op, const Software& software, int ranks) {
  const HostCosts& host = software.host;
  if (op.kind == OpKind::collective) return host.communication_launch + host.jitter * ranks;
  const bool python = op.pass == Pass::forward || op.pass == Pass::recompute;
  return python ? host.forward_launch : host.backward_launch;
}

PricedProgram price_program(const Program& program, const hardware::Cluster& cluster,
                            const Software& software, std::vector<std::string>& assumptions) {
  note_borrowed(cluster.gpu(), program, software, assumptions);
  return Pricer{program, cluster, software}.run();
}

}  // namespace orrery::models

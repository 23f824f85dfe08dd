#include "models/prediction/error/extrapolation.hpp"

#include <cmath>
#include <map>
#include <string>

#include "models/network/collectives/measured.hpp"
#include "models/network/placement.hpp"
#include "models/pricing/beyond_range.hpp"
#include "models/pricing/price.hpp"
#include "models/program/counts.hpp"

namespace orrery::models {

namespace {

/// Adds up, by curve, the time of the slowest rank's calls beyond its range.
class BeyondRange {
 public:
  BeyondRange(const Question& question, const Prediction& prediction)
      : cluster_{question.cluster},
        gpu_{question.cluster.gpu()},
        program_{*prediction.program},
        prediction_{prediction},
        order_{order_of(question.network.order.axes, program_.rank_order)},
        kernel_{
            with_attention(question.software, program_.attention).attention(gpu_.generation.name)} {
  }

  double spread(const TargetCounts& counts) {
    for (std::size_t p = 0; p < counts.phases.size(); ++p) {
      for (const Invocation& run : program_.phases[p].invocations) {
        if (counts.phases[p] > 0) add_block(run.block, run.count * counts.phases[p]);
      }
    }
    for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
      const JointCollective& joint = program_.collectives[j];
      add_message(joint.kind, joint.bytes, joint.communicator,
                  prediction_.priced.collectives[j].duration, counts.collectives[j]);
    }
    for (std::size_t c = 0; c < program_.channels.size(); ++c) {
      const Channel& channel = program_.channels[c];
      add_message(Collective::send_receive, channel.bytes, channel.communicator,
                  prediction_.priced.channels[c], counts.receives[c]);
    }
    double sum = 0;
    for (const auto& [curve, error] : errors_) sum += error * error;
    return std::sqrt(sum);
  }

 private:
  void add_block(std::uint32_t block, std::int64_t times) {
    const std::vector<Operation>& operations = program_.blocks[block].operations;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Operation& op = operations[i];
      const Time time = prediction_.priced.blocks[block][i].duration;
      if (op.kind == OpKind::gemm) add_gemm(op, time, times);
      if (op.kind == OpKind::attention) add_attention(op, time, times);
      if (op.kind == OpKind::collective) {
        add_message(op.collective(), op.bytes, op.communicator(), time, times);
      }
    }
  }

  void add_gemm(const Operation& op, Time time, std::int64_t times) {
    const auto curve = gpu_.gemm.find(op.dtype);
    if (curve == gpu_.gemm.end() || !curve->second.measured) return;
    add("gemm " + std::string{hardware::name(op.dtype)}, ErrorBeyond::gemm,
        beyond(*curve->second.measured, {op.gemm().m, op.gemm().n, op.gemm().k}), time, times);
  }

  void add_attention(const Operation& op, Time time, std::int64_t times) {
    const auto curve = gpu_.attention.find(attention_curve(kernel_, op.dtype));
    if (curve == gpu_.attention.end() || !curve->second.measured) return;
    add("attention", ErrorBeyond::attention, beyond(*curve->second.measured, program_.step.seq_len),
        time, times);
  }

  void add_message(Collective kind, Bytes bytes, std::uint16_t communicator, Time time,
                   std::int64_t times) {
    if (cluster_.measured_collectives.empty() || bytes == Bytes{0}) return;
    const GroupShape group = shape_of(program_.mesh, program_.communicators[communicator], kind,
                                      cluster_.node.gpus, order_);
    if (group.ranks < 2) return;
    const hardware::CollectiveTable* table = table_of(kind, group, cluster_);
    if (table == nullptr) return;
    add(std::string{name(kind)} + (group.nodes > 1 ? " across nodes" : " inside a node"),
        ErrorBeyond::collective, beyond(table->times, bytes), time, times);
  }

  void add(const std::string& curve, double error, double factor, Time time, std::int64_t times) {
    if (factor <= 1) return;
    const double share = ratio(time, prediction_.step) * static_cast<double>(times);
    errors_[curve] += error * std::log(factor) * share;
  }

  const hardware::Cluster& cluster_;
  const hardware::Gpu& gpu_;
  const Program& program_;
  const Prediction& prediction_;
  AxisOrder order_;
  std::string kernel_;
  std::map<std::string, double> errors_;  // by curve: standard deviation of ln(step)
};

}  // namespace

double spread_beyond_range(const Question& question, const Prediction& prediction) {
  return spread_beyond_range(question, prediction, prediction.priced.counts[prediction.slowest]);
}

double spread_beyond_range(const Question& question, const Prediction& prediction,
                           const TargetCounts& counts) {
  return BeyondRange{question, prediction}.spread(counts);
}

}  // namespace orrery::models

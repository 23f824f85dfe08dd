#include "models/prediction/power.hpp"

#include <algorithm>

#include "hardware/gpu/gpu_power.hpp"
#include "models/program/counts.hpp"
#include "models/program/program.hpp"

namespace orrery::models {

namespace {

void add(KernelTimes& sum, const KernelTimes& part, std::int64_t count) {
  sum.math += part.math * count;
  sum.memory_bound += part.memory_bound * count;
}

/// The kernels of a block; copies and collectives take no power beyond waiting.
KernelTimes times_of_block(const PricedProgram& priced, std::uint32_t block) {
  KernelTimes times;
  const std::vector<Operation>& operations = priced.program->blocks[block].operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    const bool kernel =
        op.queue == Lane::compute && op.kind != OpKind::collective && op.kind != OpKind::copy;
    if (!kernel) continue;
    const bool math = op.time_class == TimeClass::gemm || op.time_class == TimeClass::attention;
    (math ? times.math : times.memory_bound) += priced.blocks[block][i].duration;
  }
  return times;
}

std::vector<KernelTimes> times_of_phases(const PricedProgram& priced) {
  std::vector<KernelTimes> blocks, phases;
  for (std::uint32_t b = 0; b < priced.blocks.size(); ++b) {
    blocks.push_back(times_of_block(priced, b));
  }
  for (const Phase& phase : priced.program->phases) {
    KernelTimes times;
    for (const Invocation& run : phase.invocations) add(times, blocks[run.block], run.count);
    phases.push_back(times);
  }
  return phases;
}

/// Nodes that have a rank.
std::int64_t nodes_used(const hardware::Cluster& cluster, std::int64_t gpus) {
  return (gpus + cluster.node.gpus - 1) / cluster.node.gpus;
}

/// All that does not depend on kernels: GPUs without a rank, and the hosts.
Power around_ranks(const hardware::Cluster& cluster, std::int64_t gpus) {
  const std::int64_t nodes = nodes_used(cluster, gpus);
  const auto unused = static_cast<double>(nodes * cluster.node.gpus - gpus);
  return hardware::power_draw(cluster.gpu()).idle * unused +
         hardware::host_share(cluster.node) * static_cast<double>(nodes * cluster.node.gpus);
}

}  // namespace

std::vector<KernelTimes> kernel_times(const PricedProgram& priced,
                                      const std::vector<TargetCounts>& counts) {
  const std::vector<KernelTimes> phases = times_of_phases(priced);
  std::vector<KernelTimes> classes;
  for (const TargetCounts& of_class : counts) {
    KernelTimes times;
    for (std::size_t p = 0; p < phases.size(); ++p) add(times, phases[p], of_class.phases[p]);
    classes.push_back(times);
  }
  return classes;
}

std::vector<KernelTimes> kernel_times(const PricedProgram& priced) {
  return kernel_times(priced, priced.counts);
}

Energy energy_of(const PricedProgram& priced, const hardware::Cluster& cluster, std::int64_t gpus,
                 Time step) {
  return energy_of(priced, cluster, gpus, step, priced.counts);
}

Energy energy_of(const PricedProgram& priced, const hardware::Cluster& cluster, std::int64_t gpus,
                 Time step, const std::vector<TargetCounts>& counts) {
  const hardware::PowerDraw draw = hardware::power_draw(cluster.gpu());
  const std::vector<KernelTimes> classes = kernel_times(priced, counts);
  // Classes are pipeline stages, which have equally many ranks.
  const double ranks = static_cast<double>(gpus) / static_cast<double>(classes.size());
  Energy sum = around_ranks(cluster, gpus) * step;
  for (const KernelTimes& times : classes) {
    sum = sum + (draw.waiting * step + (draw.math - draw.waiting) * times.math +
                 (draw.memory_bound - draw.waiting) * times.memory_bound) *
                    ranks;
  }
  return sum;
}

Power gpu_power(const hardware::Cluster& cluster, std::int64_t gpus, Energy energy, Time step) {
  const double around = around_ranks(cluster, gpus).count();
  return Power{(energy.count() / seconds(step) - around) / static_cast<double>(gpus)};
}

}  // namespace orrery::models

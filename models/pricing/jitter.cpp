#include "models/pricing/jitter.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "models/program/opcodes.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x * std::sqrt(0.5));
}

/// Mean and variance of a distribution between two bounds.
template <class Cdf>
LargestOf moments_of(Cdf cdf, double low, double high) {
  constexpr int cells = 8000;
  const double width = (high - low) / cells;
  double before = 0, mean = 0, square = 0;
  for (int i = 0; i < cells; ++i) {
    const double at = low + (i + 0.5) * width, after = i + 1 < cells ? cdf(at + width / 2) : 1;
    mean += at * (after - before);
    square += at * at * (after - before);
    before = after;
  }
  return {mean, square - mean * mean};
}

LargestOf largest_normal(std::int64_t n) {
  const auto of = static_cast<double>(n);
  return moments_of([&](double x) { return std::pow(normal_cdf(x), of); }, -9, 9);
}

/// A sum of k exponentials is a Gamma variable, of density x^(k-1) e^-x / (k-1)!. Its distribution
/// function is integrated from cell to cell by Simpson's rule.
LargestOf largest_gamma(std::int64_t n, std::int64_t k) {
  const auto of = static_cast<double>(n), shape = static_cast<double>(k);
  const double spread = 10 * std::sqrt(shape), tail = 30 + std::log(of);
  const double low = std::max(0.0, shape - spread), high = shape + spread + tail;
  const double scale = std::lgamma(shape);
  const auto density = [&](double x) {
    return k == 1 ? std::exp(-x) : std::exp((shape - 1) * std::log(x) - x - scale);
  };
  double from = low, density_from = density(low), below = 0;
  const auto cdf = [&](double x) {
    const double density_here = density(x);
    below += (x - from) / 6 * (density_from + 4 * density((from + x) / 2) + density_here);
    from = x;
    density_from = density_here;
    return below;
  };
  LargestOf found = moments_of([&](double x) { return std::pow(cdf(x), of); }, low, high);
  found.mean -= shape;
  return found;
}

/// What varies on one rank between two joint collectives, for a standard deviation of 1.
struct SinceMeeting {
  std::int64_t kernels = 0;  // in blocks without a collective
  double variance = 0;       // of the waits at collectives inside blocks
  bool met = false;
};

class JitterPricer {
 public:
  JitterPricer(PricedProgram& priced, const KernelJitter& jitter)
      : priced_{priced}, program_{*priced.program}, jitter_{jitter} {
    for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) of_blocks_.push_back(block(b));
    for (const Phase& phase : program_.phases) of_phases_.push_back(gathered_in(phase));
  }

  void run() {
    std::vector<Time> waits(program_.collectives.size());
    for (const RankClass& each : program_.classes) {
      SinceMeeting so_far;
      for (const Instruction& at : each.instructions) {
        if (runs_phase(at)) add(so_far, of_phases_[at.target]);
        if (!is_joint(at)) continue;
        waits[at.target] = std::max(waits[at.target], joint_wait(at.target, so_far));
        so_far = {};
      }
    }
    for (std::size_t j = 0; j < waits.size(); ++j) priced_.collectives[j].duration += waits[j];
  }

 private:
  static bool is_kernel(const Operation& op) {
    return op.kind != OpKind::collective && op.queue == Lane::compute;
  }
  std::int64_t ranks_of(const Operation& op) const {
    return op.kind == OpKind::collective
               ? program_.mesh.degree(program_.communicators.at(op.communicator()).axes)
               : 1;
  }

  const LargestOf& largest(std::int64_t n, std::int64_t k) {
    const std::int64_t sums = jitter_.distribution == JitterKind::normal ? 1 : k;
    const auto [at, fresh] = known_.try_emplace({n, sums});
    if (fresh) at->second = largest_of(jitter_.distribution, n, sums);
    return at->second;
  }
  /// As largest_of; for the normal distribution, scaled from that of k = 1.
  LargestOf largest_sum(std::int64_t n, std::int64_t k) {
    if (k == 0) return {};
    LargestOf found = largest(n, k);
    if (jitter_.distribution != JitterKind::normal) return found;
    found.mean *= std::sqrt(static_cast<double>(k));
    found.variance *= static_cast<double>(k);
    return found;
  }
  Time time_of(double deviations) const { return scaled(jitter_.deviation, deviations); }

  /// Adds waits to the collectives of a block. Equal layers follow one another, so kernels after a
  /// block's last collective count before its first.
  SinceMeeting block(std::uint32_t id) {
    const std::vector<Operation>& operations = program_.blocks[id].operations;
    SinceMeeting found;
    std::int64_t since = 0;
    const auto last = std::find_if(operations.rbegin(), operations.rend(),
                                   [&](const Operation& op) { return ranks_of(op) > 1; });
    found.met = last != operations.rend();
    if (found.met) since = std::count_if(last.base(), operations.end(), is_kernel);
    for (std::size_t i = 0; i < operations.size(); ++i) {
      since += is_kernel(operations[i]) ? 1 : 0;
      const std::int64_t ranks = ranks_of(operations[i]);
      if (ranks < 2) continue;
      const LargestOf most = largest_sum(ranks, since);
      priced_.blocks[id][i].duration += time_of(most.mean);
      found.variance += most.variance;
      since = 0;
    }
    if (!found.met) found.kernels = since;
    return found;
  }

  SinceMeeting gathered_in(const Phase& phase) const {
    SinceMeeting found;
    for (const Invocation& run : phase.invocations) {
      SinceMeeting all = of_blocks_[run.block];
      all.kernels *= run.count;
      all.variance *= static_cast<double>(run.count);
      add(found, all);
    }
    return found;
  }

  static void add(SinceMeeting& to, const SinceMeeting& more) {
    to.kernels += more.kernels;
    to.variance += more.variance;
    to.met = to.met || more.met;
  }

  /// Mean wait at a joint collective. Ranks of a tensor group with collectives inside layers arrive
  /// together.
  Time joint_wait(std::uint32_t joint, const SinceMeeting& since) {
    const AxisSet along = program_.communicators.at(program_.collectives[joint].communicator).axes;
    const AxisSet apart = since.met ? along.without(MeshAxis::tensor) : along;
    const std::int64_t ranks = program_.mesh.degree(apart);
    if (ranks < 2 || (since.kernels == 0 && since.variance == 0)) return Time{};
    if (!since.met) return time_of(largest_sum(ranks, since.kernels).mean);
    const double variance = since.variance + static_cast<double>(since.kernels);
    return time_of(std::sqrt(variance) * normal_mean(ranks));
  }

  double normal_mean(std::int64_t n) {
    const auto [at, fresh] = normal_means_.try_emplace(n);
    if (fresh) at->second = largest_normal(n).mean;
    return at->second;
  }

  PricedProgram& priced_;
  const Program& program_;
  const KernelJitter& jitter_;
  std::vector<SinceMeeting> of_blocks_, of_phases_;
  std::map<std::pair<std::int64_t, std::int64_t>, LargestOf> known_;
  std::map<std::int64_t, double> normal_means_;
};

}  // namespace

LargestOf largest_of(JitterKind distribution, std::int64_t n, std::int64_t k) {
  ensure(n >= 1 && k >= 1, "a maximum needs at least one value");
  if (distribution == JitterKind::exponential) return largest_gamma(n, k);
  LargestOf found = largest_normal(n);
  found.mean *= std::sqrt(static_cast<double>(k));
  found.variance *= static_cast<double>(k);
  return found;
}

void add_jitter(PricedProgram& priced, const KernelJitter& jitter) {
  JitterPricer{priced, jitter}.run();
}

}  // namespace orrery::models

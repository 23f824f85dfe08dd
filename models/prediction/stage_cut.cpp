#include "models/prediction/stage_cut.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/chain_times.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "models/pricing/price.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Splits a list of layer times into contiguous parts.
class StagePartition {
 public:
  StagePartition(std::span<const Time> layers, std::int64_t parts, Time first, Time last)
      : count_{static_cast<std::int64_t>(layers.size())},
        parts_{parts},
        first_{first},
        last_{last} {
    sums_.push_back(0);
    for (const Time each : layers) sums_.push_back(sums_.back() + seconds(each));
  }

  std::vector<std::int64_t> run() {
    const double longest = solve([](double a, double b) { return std::max(a, b); }, unlimited);
    solve([](double a, double b) { return a + b * b; }, longest * (1 + 1e-12));
    std::vector<std::int64_t> layers(static_cast<std::size_t>(parts_));
    std::int64_t end = count_;
    for (std::int64_t part = parts_; part-- > 0;) {
      const std::int64_t begin = begins_[index(part, end)];
      layers[static_cast<std::size_t>(part)] = end - begin;
      end = begin;
    }
    return layers;
  }

 private:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  std::size_t index(std::int64_t part, std::int64_t end) const {
    return static_cast<std::size_t>(part * (count_ + 1) + end);
  }
  double time_of(std::int64_t part, std::int64_t begin, std::int64_t end) const {
    double sum = sums_[static_cast<std::size_t>(end)] - sums_[static_cast<std::size_t>(begin)];
    if (part == 0) sum += seconds(first_);
    if (part + 1 == parts_) sum += seconds(last_);
    return sum;
  }

  /// Minimises `join` over the parts, none longer than `most`; sets `begins_` to where each begins.
  template <class Join>
  double solve(Join join, double most) {
    std::vector<double> best(static_cast<std::size_t>(parts_ * (count_ + 1)), unlimited);
    begins_.assign(best.size(), 0);
    for (std::int64_t part = 0; part < parts_; ++part) {
      for (std::int64_t end = part + 1; end <= count_ - (parts_ - 1 - part); ++end) {
        for (std::int64_t begin = end; begin-- > part;) {
          const double own = time_of(part, begin, end);
          if (own > most) break;
          if (part == 0 && begin > 0) continue;
          const double before = part == 0 ? 0 : best[index(part - 1, begin)];
          const double all = join(before, own);
          double& least = best[index(part, end)];
          if (all >= least) continue;
          least = all;
          begins_[index(part, end)] = begin;
        }
      }
    }
    return best[index(parts_ - 1, count_)];
  }

  std::int64_t count_, parts_;
  Time first_, last_;
  std::vector<double> sums_;  // of the layers before each
  std::vector<std::int64_t> begins_;
};

/// What one more run of a block adds to a rank's compute lane.
Time time_of_block(const PricedProgram& priced, std::uint32_t id) {
  const ChainBlock block{priced, id};
  Chain<NumberTime> state{};
  std::vector<NumberTime> ends;
  std::int64_t before = 0;
  for (int run = 0; run < 2; ++run) {
    before = std::max(state[state_host].value, state[state_compute].value);
    run_block(block, state, ends, [](auto&&...) {});
  }
  return Time{std::max(state[state_host].value, state[state_compute].value) - before};
}

Time time_of_kind(const PricedProgram& priced, const LayerKind& kind) {
  Time sum = time_of_block(priced, kind.forward) + time_of_block(priced, kind.backward);
  if (kind.weight_gradient) sum = sum + time_of_block(priced, *kind.weight_gradient);
  return sum;
}

Time longest_of(std::span<const Time> layers, const std::vector<std::int64_t>& cut, Time first,
                Time last) {
  Time longest{};
  std::size_t at = 0;
  for (std::size_t part = 0; part < cut.size(); ++part) {
    Time sum = part == 0 ? first : Time{};
    if (part + 1 == cut.size()) sum = sum + last;
    for (std::int64_t i = 0; i < cut[part]; ++i) sum = sum + layers[at++];
    longest = std::max(longest, sum);
  }
  return longest;
}

}  // namespace

std::vector<std::int64_t> cut_by_time(std::span<const Time> layers, std::int64_t parts, Time first,
                                      Time last) {
  ensure(parts >= 1 && parts <= static_cast<std::int64_t>(layers.size()),
         "every stage needs a layer");
  return StagePartition{layers, parts, first, last}.run();
}

StageCut cut_stages(const Question& question) {
  Question even = question;
  even.plan.stages.by_time = false;
  const Program program = lower(even);
  std::vector<std::string> notes;
  const PricedProgram priced = price_program(program, question.cluster, question.software, notes,
                                             {.nccl = question.network.tuner()});
  std::vector<Time> kinds, layers;
  for (const LayerKind& each : program.kinds) kinds.push_back(time_of_kind(priced, each));
  for (const std::uint32_t kind : program.kind_of_layer) layers.push_back(kinds[kind]);
  const Time first = time_of_kind(priced, program.kind(ModelPart::embedding));
  const Time last = time_of_kind(priced, program.kind(ModelPart::head));
  StageCut cut;
  cut.layers = cut_by_time(layers, question.plan.chunks(), first, last);
  cut.longest = longest_of(layers, cut.layers, first, last);
  cut.even = longest_of(layers, layers_per_chunk(even.plan, question.model), first, last);
  return cut;
}

}  // namespace orrery::models

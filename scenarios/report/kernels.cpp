#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "models/program/counts.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t longest_list = 16;

/// All calls of one operation of one block on one rank.
struct KernelCalls {
  std::string name;
  models::TimeClass part{};
  std::int64_t count = 0;
  Time total{};
  Flops flops{};
};

std::vector<KernelCalls> calls_of(const models::Prediction& prediction) {
  const models::Program& program = *prediction.program;
  const std::vector<std::int64_t> runs = models::block_runs(program, prediction.slowest);
  std::vector<KernelCalls> all;
  for (std::size_t b = 0; b < runs.size(); ++b) {
    const models::Block& block = program.blocks[b];
    for (std::size_t i = 0; i < block.operations.size() && runs[b] > 0; ++i) {
      const models::Operation& op = block.operations[i];
      all.push_back({.name = block.name + "/" + op.name,
                     .part = op.time_class,
                     .count = runs[b],
                     .total = prediction.priced.blocks[b][i].duration * runs[b],
                     .flops = op.flops * runs[b]});
    }
  }
  std::ranges::stable_sort(all, std::greater{}, &KernelCalls::total);
  return all;
}

std::string rate_of(const KernelCalls& calls) {
  if (calls.flops.count() == 0 || calls.total.count() == 0) return "";
  const double rate = static_cast<double>(calls.flops.count()) / seconds(calls.total);
  return fmt::format("{:.0f} TFLOP/s", rate / 1e12);
}

}  // namespace

std::string kernels_section(const ReportInputs& in) {
  const models::Prediction& p = in.prediction;
  TextTable table{{"<operation", "<class", "calls", "each", "total", "of step", "rate"}};
  const std::vector<KernelCalls> all = calls_of(p);
  Time rest{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const KernelCalls& each = all[i];
    if (i >= longest_list) {
      rest += each.total;
      continue;
    }
    table.add({each.name, std::string{models::name(each.part)}, fmt::format("{}", each.count),
               format(Time{each.total.count() / each.count}), step_part(each.total, p.step),
               percent(ratio(each.total, p.step)), rate_of(each)});
  }
  if (all.size() > longest_list) {
    table.add({fmt::format("{} others", all.size() - longest_list), "", "", "",
               step_part(rest, p.step), percent(ratio(rest, p.step)), ""});
  }
  const std::string title = fmt::format(
      "Operations of the slowest rank (stage {}); queues overlap, so they may add up to "
      "more than the step",
      p.program->classes[p.slowest].stage);
  return heading(title, in.options) + table.text(in.options.colour) +
         legend(
             "class: its part in 'From the ideal machine to this step'; calls: of this rank in one "
             "step; each: one call; total: all calls, including those that another queue hides; "
             "rate: FLOPs over time",
             in.options);
}

}  // namespace orrery::scenarios

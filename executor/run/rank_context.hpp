#pragma once
// What the parts of a run (weights, reducer, blocks, optimizer, pipe) share: what the rank runs and
// where its memory lies, which none of them changes; and how calls of the fabric are made and times
// are recorded.

#include <array>
#include <span>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/device/token_map.hpp"
#include "executor/layout/layout.hpp"
#include "executor/layout/memory_plan.hpp"
#include "executor/run/calls.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

struct RankContext {
  const models::Program& program;
  std::int64_t rank;
  const models::RankClass& ranks;  // that do what this one does
  const Layout& layout;
  const MemoryPlan& plan;
  const TokenMap& tokens;  // where its tokens stand
  const RunSettings& settings;
  std::byte* arena;  // that the plan divides
  Device& device;
  Calls& calls;
  Recording& recording;

  const models::Instruction& instruction(models::Token i) const { return ranks.instructions[i]; }
  /// What an instruction reduces, gathers or sums.
  const models::JointCollective& joint(models::Token i) const {
    return program.collectives[instruction(i).target];
  }
  const std::vector<models::Invocation>& invocations(models::Token i) const {
    return program.phases[instruction(i).target].invocations;
  }
};

/// Elements in a row.
inline View row_of(std::byte* data, models::DType type, std::int64_t count) {
  return {data, type, {1, 1, count}};
}

/// Runs an operation on operands, which are listed in its order
inline void run_on(Device& device, const models::Operation& operation, std::span<const View> reads,
                   std::span<const View> writes, const Place& place = {}) {
  Kernel kernel;
  kernel.operation = &operation;
  kernel.reads = reads;
  kernel.writes = writes;
  kernel.place = place;
  device.run(kernel);
}
/// ... as its block has them.
inline void run_on(Device& device, const models::Operation& operation,
                   const std::vector<View>& operands, const Place& place = {}) {
  std::array<View, 8> reads, writes;
  for (std::size_t r = 0; r < operation.reads.size(); ++r) reads[r] = operands[operation.reads[r]];
  for (std::size_t w = 0; w < operation.writes.size(); ++w)
    writes[w] = operands[operation.writes[w]];
  run_on(device, operation, {reads.data(), operation.reads.size()},
         {writes.data(), operation.writes.size()}, place);
}

}  // namespace orrery::executor

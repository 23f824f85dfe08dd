#pragma once
// What the parts of a run (weights, reducer, blocks, optimizer, pipe) share: the rank's program and
// memory plan, which none of them changes, and the objects that make fabric calls and record times.

#include <array>
#include <span>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/device/token_map.hpp"
#include "executor/layout/layout.hpp"
#include "executor/layout/memory_plan.hpp"
#include "executor/run/reducer/fabric_calls.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// One rank's shared context. All that it refers to outlives the parts.
struct RankContext {
  const models::Program& program;
  std::int64_t rank;
  const models::RankClass& ranks;  // this rank's class
  const Layout& layout;
  const MemoryPlan& plan;
  const TokenMap& tokens;  // positions of its tokens
  const RunSettings& settings;
  std::byte* arena;  // memory that `plan` divides
  Device& device;
  FabricCalls& calls;
  Recording& recording;

  const models::Instruction& instruction(models::Token i) const { return ranks.instructions[i]; }
  /// The collective of an instruction that reduces, gathers or sums.
  const models::JointCollective& joint(models::Token i) const {
    return program.collectives[instruction(i).target];
  }
  const std::vector<models::Invocation>& invocations(models::Token i) const {
    return program.phases[instruction(i).target].invocations;
  }
};

/// `count` contiguous elements as a [1, 1, count] view.
inline View row_of(std::byte* data, models::DType type, std::int64_t count) {
  return {data, type, {1, 1, count}};
}

/// Runs an operation on operands that are listed in the order of its reads and writes.
inline void run_on(Device& device, const models::Operation& operation, std::span<const View> reads,
                   std::span<const View> writes, const Place& place = {}) {
  Kernel kernel;
  kernel.operation = &operation;
  kernel.reads = reads;
  kernel.writes = writes;
  kernel.place = place;
  device.run(kernel);
}
/// The place of an operation: the rank's own, or with sequences of another length that of whole
/// sequences in order.
inline Place place_of(const models::Operation& operation, const Place& own,
                      std::int64_t first_source_row) {
  if (operation.seq_len == 0) return own;
  Place place = own;
  place.first_row = first_source_row;
  place.sequence = operation.seq_len;
  place.tokens = nullptr;
  return place;
}
/// Runs an operation on the operands of its block, which are listed by OperandId.
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

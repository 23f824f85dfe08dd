#pragma once
// Programs small enough for evaluations to be checked by hand, and the parts that random ones are
// made of too. Schedules and transfers are those of the library.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/evaluation/events.hpp"
#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/evaluation/verify.hpp"
#include "models/lowering/lower.hpp"
#include "models/schedules/schedule.hpp"
#include "tests/models/indices.hpp"

namespace orrery::models {

/// A Program with its prices, which point to it.
struct Case {
  std::unique_ptr<Program> program = std::make_unique<Program>();
  PricedProgram priced;
};

/// What `block_of` and the hand-written programs call a block's operands.
enum FormalOperand : OperandId { formal_input, formal_output, formal_temporary };

/// A block with an input, an output "y" and one temporary, and no operations yet.
Block block_of(std::string name);

/// An operation that writes the output or the temporary.
Operation operation_on(Lane queue, std::vector<OpId> after, bool writes_output);

/// Meshes, communicators and compute slots of a schedule; chunk c runs phases 2c and 2c + 1.
void add_schedule(Program& program, const std::string& schedule, const PipelineShape& shape,
                  Mesh::Degrees degrees = {});

/// A pipeline whose forwards and backwards are one kernel each. All other costs are zero.
Case simple_pipeline(const std::string& schedule, const PipelineShape& shape, Time forward,
                     Time backward);

/// Appends a joint collective to the lists of its classes, after their last phase.
void append_joint(Case& made, Opcode op, JointCollective joint, Time launch, Time duration);

/// What a folded run says, once for every replica: the order of evaluate_all_ranks.
StepTimes unfolded(const StepTimes& folded, std::int64_t replicas);

}  // namespace orrery::models

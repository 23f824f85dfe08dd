#pragma once
// Replays one rank's step, operation by operation, with the transfer ends and collective starts
// that an evaluation found. Reports, traces and critical paths are made from its records. Other
// ranks are not replayed: only their times enter.

#include <functional>
#include <string>

#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"

namespace orrery::models {

/// What an operation waited for last before it started.
enum class Cause : std::uint8_t { queue, host, input, dependency, joint };

/// One instruction of one rank, with the rank's lane times before and after it.
struct InstructionRecord {
  std::size_t index = 0;  // in the class's list
  const Instruction* instruction = nullptr;
  Chain<NumberTime> before{}, after{};
  Time start{}, end{};  // of a transfer or joint collective; of a phase, of its kernels
  Time lead{};          // of a joint collective: how long before `start` it is on the wire
};

/// One operation of one phase.
struct OperationRecord {
  std::size_t index = 0;  // of the instruction, in the class's list
  std::uint32_t block = 0;
  std::int64_t layer = -1;
  std::uint32_t operation = 0;
  Time launched{}, start{}, end{};
  Time free{};  // from when its queue could start it
  Cause cause = Cause::queue;
  std::uint32_t waited_for = 0;  // operation of the block, where the cause is a dependency
};

/// Callbacks of a replay; both are optional.
struct ReplayObserver {
  std::function<void(const InstructionRecord&)> instruction;
  std::function<void(const OperationRecord&)> operation;
};

/// Replays a rank of this class and reports each instruction and operation to `observer`.
/// Errors  `times` is not of this program: ContractError
void replay(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class,
            const ReplayObserver& observer);

}  // namespace orrery::models

#pragma once
// One rank's step again, operation by operation, once an evaluation has said when transfers ended
// and collectives started. What reports, traces and critical paths are made of.

#include <functional>
#include <string>

#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"

namespace orrery::models {

/// What an operation's start was waiting for last.
enum class Cause : std::uint8_t { queue, host, input, dependency, joint };

/// One instruction of one rank: where its queues stood before and after it.
struct InstructionRecord {
  std::size_t index = 0;  // in the class's list
  const Instruction* instruction = nullptr;
  Chain<NumberTime> before{}, after{};
  Time start{}, end{};  // of a transfer or joint collective; of a phase, of its kernels
  Time lead{};          // of a joint collective: before `start` it is on the wire so long
};

/// One operation of one phase.
struct OperationRecord {
  std::size_t index = 0;  // of the instruction
  std::uint32_t block = 0;
  std::int64_t layer = -1;
  std::uint32_t operation = 0;
  Time launched{}, start{}, end{};
  Time free{};  // when its queue let it start
  Cause cause = Cause::queue;
  std::uint32_t waited_for = 0;  // the operation, where the cause is a dependency
};

/// Who watches a replay. Both are optional.
struct ReplayObserver {
  std::function<void(const InstructionRecord&)> instruction;
  std::function<void(const OperationRecord&)> operation;
};

/// Errors  `times` is not of this program: ContractError
void replay(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class,
            const ReplayObserver& observer);

}  // namespace orrery::models

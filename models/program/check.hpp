#pragma once
// The parts of `check`: what they promise together is written at its declaration. Each throws
// ContractError at the first broken promise.

#include <string>

#include "models/program/program.hpp"

namespace orrery::models {

/// "stage 1 i7 receive c1 mb0"; joint collectives and optimizer have no micro-batch.
std::string place(const Program& program, std::uint32_t rank_class, std::size_t instruction);

/// Operations read what exists and wait for what is earlier; backward reads what forward saved.
void check_blocks(const Program& program);
/// Every index that an instruction or a phase holds leads to something of its own stage.
void check_targets(const Program& program);
/// Each chunk and micro-batch runs forward once, then backward once, over every layer of the model;
/// where backward is split its weight gradients after it, and all before the optimizer.
void check_coverage(const Program& program);
/// Each class's list by itself. What an instruction awaits was made earlier by the right kind of
/// instruction; what a receive makes is consumed once, by the same micro-batch. A buffer is bound,
/// used by the same micro-batch and freed, once each; a layer runs with its gathered weights.
void check_lists(const Program& program);
/// All lists together. The k-th send of a channel meets its k-th receive: neighbours in chunk,
/// equal in micro-batch. A joint collective is reached once by each of its classes and by no other.
/// No deadlock: every class reaches the end of its list.
void check_meetings(const Program& program);
/// With data parallelism each parameter's gradient is reduced once, when it is complete; where
/// gradients are sharded once in each micro-batch.
void check_reductions(const Program& program);

}  // namespace orrery::models

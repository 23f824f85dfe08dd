#pragma once
// The parts of `check`: what they promise together is written at its declaration. Each throws
// ContractError at the first broken promise.

#include <string>

#include "models/program/program.hpp"

namespace orrery::models {

/// "stage 1 i7 receive c1 mb0"; joint collectives and optimizer have no micro-batch.
std::string place(const Program& program, std::uint32_t rank_class, std::size_t instruction);

/// Every index that an instruction or a phase holds leads to something of its own stage.
void check_targets(const Program& program);
/// Operations read what exists and wait for what is earlier; backward reads what forward saved.
void check_blocks(const Program& program);
/// Each chunk and micro-batch runs forward once, then backward once, over every layer of the model.
void check_compute(const Program& program);
/// Bound before use, by the same micro-batch, freed exactly once.
void check_buffers(const Program& program);
/// The k-th send of a channel meets its k-th receive: neighbours in chunk, equal in micro-batch.
void check_transfers(const Program& program);
/// Joint collectives are reached once by each of their classes and by nobody else, in one order
/// per communicator.
void check_collectives(const Program& program);
/// With data parallelism each parameter's gradient is reduced once, when it is complete; under
/// ZeRO-2 and 3 once in each micro-batch.
void check_reductions(const Program& program);
/// A phase awaits what is earlier in its list; under ZeRO-3 the gather of all that it runs, whose
/// weights are freed exactly once and not before.
void check_shards(const Program& program);
/// Every class comes to the end of its list: nobody waits for somebody who waits for him.
void check_progress(const Program& program);

}  // namespace orrery::models

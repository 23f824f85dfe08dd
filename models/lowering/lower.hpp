#pragma once
// From a plan to a Program, pass by pass. Each pass is a pure function Program -> Program with
// tests of its own; their order is `lower` and nothing else.

#include "models/operations/blocks.hpp"
#include "models/program/program.hpp"

namespace orrery::models {

/// Parameters (elements) that a rank holds for all that a phase runs.
std::int64_t owned_parameters(const Program& program, const Phase& phase);
/// What the frozen ones among them take.
Bytes frozen_parameters(const Program& program, const Phase& phase);

/// What of model, plan and stack the blocks price without stating it exactly; empty: nothing.
std::string approximated(const BlockInputs& inputs);

/// What remains of a backward block when its weight gradients are moved to `weights`.
void split_block(const Block& forward, Block& backward, Block& weights);

/// All passes in order. The plan has no conflicts.
Program lower(const BlockInputs& inputs);

/// 0. Mesh, communicators, blocks as one rank would run them, phases, compute slots.
Program schedule_slots(const BlockInputs& inputs);
/// A copy of a kind, blocks and all, named "WORD KIND" and "WORD_BLOCK". Returns its index.
std::uint32_t copy_kind(Program& program, std::uint32_t of, const std::string& word);
/// Which kinds of layers recompute; some layers may become kinds of their own.
void mark_recomputed(Program& program, const BlockInputs& inputs);
/// 1. Forward operations that backward repeats, and what is then not saved.
Program insert_recompute(Program program, const Plan& plan);
/// 1b. The frozen reference of DPO, which goes forward next to the model.
Program insert_reference(Program program, Task task);
/// 2. Collectives inside blocks, between layouts (reshard.hpp). `overlap`: the weight gradient does
/// not wait for the input gradient's sum.
Program insert_collectives(Program program, bool overlap, Gathered gathered = Gathered::again);
/// 2b. Where the stack's tensor collectives bring hosts together, each host goes on after those of
/// forward and recomputation; backward is launched from another thread, far ahead.
Program insert_host_waits(Program program, const Software& software);
/// Which kinds of layers leave to the host what backward needs; some layers may become kinds of
/// their own.
void mark_offloaded(Program& program, const BlockInputs& inputs);
/// 2b'. What forward saved of those goes to the host, or its files, and comes back before backward.
Program offload_activations(Program program, const Plan& plan);
/// All kinds of layers, or the head alone.
enum class SplitKinds : std::uint8_t { all, head };
/// 2c. Where there are slots for weight gradients, backward blocks are cut in two.
Program split_backward(Program program, SplitKinds which = SplitKinds::all);
/// 3. Sends and receives between stages: a receive stands right before the slot that it feeds, a
/// send right after the slot whose output it takes.
Program insert_transfers(Program program);
/// 4. Gradient buckets over the data axis, in the last backward of each chunk when overlapped: as
/// the stack does, but not where tensor groups of several nodes keep the same NICs busy. What
/// undoes a bucket's compression comes after them all.
/// Source  nanotron with 16 tensor ranks on nodes of 8: steps with all gradients reduced next to
///         backward are as long as those that reduce them afterwards (runs up-1345 and up-1346,
///         up-1449 and up-1448 of scenarios/validation/runs.csv)
Program insert_gradient_reduction(Program program, const BlockInputs& inputs);
/// 4b. ZeRO-2 and 3 instead: buckets after every backward, weights gathered before they are used.
Program insert_shards(Program program, const BlockInputs& inputs);
/// 5. Tied embeddings, gradient norm, optimizer, and ZeRO-1's parameter gather.
Program insert_optimizer(Program program, const BlockInputs& inputs);
/// 6. Buffers: which, how large, bound where, freed where.
Program bind_buffers(Program program, const BlockInputs& inputs);
/// 6b. Passes that no other direction of another micro-batch stands next to: their all-to-alls are
/// sent with nothing computed meanwhile, in blocks of their own.
Program leave_alone(Program program, const BlockInputs& inputs);
/// 7. Tokens: what each instruction awaits, by its place in the finished list. Until then `awaits`
/// is the index of a joint collective, which no insertion moves.
Program name_tokens(Program program);

}  // namespace orrery::models

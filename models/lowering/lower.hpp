#pragma once
// Lowering: from a plan to a finished Program, pass by pass. Each pass is a pure function from
// Program to Program with tests of its own; only `lower` states their order. What a layer computes
// comes from the block builders (models/operations/blocks.hpp). A slot is one forward, backward or
// weight gradient of a chunk and micro-batch; their order comes from the schedules
// (models/schedules/schedule.hpp). Left out: how long anything takes.

#include <functional>
#include <map>
#include <string>

#include "models/operations/blocks.hpp"
#include "models/program/program.hpp"

namespace orrery::models {

/// A feature of model, plan or stack that the blocks only approximate; empty: none.
std::string inexact_feature(const BlockInputs& inputs);

/// Moves the weight gradients of a backward block into `weights`; the input gradient remains.
void split_block(const Block& forward, Block& backward, Block& weights);

/// Runs all passes in order. The plan must have no conflicts (models/plan/conflicts.hpp).
Program lower(const BlockInputs& inputs);

/// 0. Starts the Program: mesh, communicators, kinds of layers with blocks for one rank, units,
/// phases, and each stage's compute instructions in the order of its schedule.
Program schedule_slots(const BlockInputs& inputs);
/// Which layers become kinds of their own, and how these differ.
struct ChosenLayers {
  std::string word;                         // before their names: "WORD KIND", "WORD_BLOCK"
  std::function<bool(std::int64_t)> among;  // by index in the chunk
  void (*mark)(LayerKind& copy);
};
/// Returns the copy of each kind that has chosen layers.
std::map<std::uint32_t, std::uint32_t> copy_kinds(Program& program, const BlockInputs& inputs,
                                                  const ChosenLayers& chosen);
/// Marks the kinds of layers that recompute. Where only some layers do, they become kinds of their
/// own; where only some micro-batches recompute in part, so do the other layers, for the rest of
/// the micro-batches. Called by pass 0.
void mark_recomputed(Program& program, const BlockInputs& inputs);
/// 1. Recomputation: backward blocks repeat forward operations, whose outputs are then not saved.
Program insert_recompute(Program program, const Plan& plan);
/// 1b. DPO: a frozen reference model, which runs forward layer by layer next to the model.
Program insert_reference(Program program, Task task);
/// 2. Collectives inside blocks, where an operation needs another layout than an operand has
/// (reshard.hpp).
/// overlap   the weight gradient does not wait for the reduction of the input gradient
/// gathered  whether inputs gathered in forward are kept for backward or gathered again
Program insert_collectives(Program program, bool overlap,
                           Gathered gathered = Gathered::in_backward);
/// 2b. Where a stack's tensor-parallel collectives synchronise the hosts, the host waits for those
/// of forward and recomputation, which Python launches. It does not wait in backward, which
/// autograd's own thread launches far ahead. Where layers of experts cost the host, it also waits
/// for their numbers of rows, unless those are known before or the Program has graphs.
Program insert_host_waits(Program program, const BlockInputs& inputs);
/// Marks the kinds of layers whose saved activations are offloaded. Where only some layers do, they
/// become kinds of their own. Called by pass 0.
void mark_offloaded(Program& program, const BlockInputs& inputs);
/// 2c. Copies the activations of those kinds to the host, or to its files, and back before their
/// backward.
Program offload_activations(Program program, const Plan& plan);
/// The kinds of layers whose backward is split: all, or only the head.
enum class SplitKinds : std::uint8_t { all, head };
/// 2d. Where the schedule has slots for weight gradients, splits backward blocks into input
/// gradient and weight gradients.
Program split_backward(Program program, SplitKinds which = SplitKinds::all);
/// 3. Sends and receives between stages: a receive right before the slot that reads what arrives, a
/// send right after the slot that makes what is sent.
Program insert_transfers(Program program);
/// 4. Gradient buckets, reduced over the data axis. They overlap with the last backward of each
/// chunk if plan and stack overlap them, on some stacks not where tensor groups span several nodes
/// and keep the same NICs busy; otherwise they come after it. Decompression of the buckets comes
/// after all reductions.
Program insert_gradient_reduction(Program program, const BlockInputs& inputs);
/// 4b. ZeRO-2 and 3, instead of 4: reduces buckets after every backward, and gathers parameters
/// before they are used.
Program insert_shards(Program program, const BlockInputs& inputs);
/// 5. The end of the step: sums of tied and replicated gradients, gradient norm, optimizer, and the
/// parameter gather of ZeRO-1 and 2.
Program insert_optimizer(Program program, const BlockInputs& inputs);
/// 5b. Where micro-batches differ in what they recompute: those that recompute all layers run
/// phases of their own.
Program recompute_by_micro_batch(Program program, const Plan& plan);
/// The phase as such a micro-batch runs it.
Phase recomputing(const Program& program, const Phase& phase);
/// 6. Buffers: their types and sizes, and which instruction binds and frees each.
Program bind_buffers(Program program, const BlockInputs& inputs);
/// 6b. Where experts' all-to-alls overlap with another micro-batch: forwards and backwards next to
/// which there is none, as while the pipeline fills, run variants of their blocks without overlap.
Program mark_unpaired_passes(Program program, const BlockInputs& inputs);
/// 7. Tokens: which earlier instructions each one waits for, by index in the finished list. Until
/// then `awaits` is the index of a joint collective, which insertions do not change.
Program name_tokens(Program program);

}  // namespace orrery::models

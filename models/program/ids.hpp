#pragma once
// Words that a whole Program shares: lanes, collectives, parts of a step's time. Numbers only.

#include <cstdint>
#include <string_view>

#include "sim/words.hpp"

namespace orrery::models {

/// In-order queues of one rank. The host launches; the others run what was launched: kernels,
/// copies, and one lane for each kind of communicator that runs concurrently with them.
enum class Lane : std::uint8_t { host, compute, tensor, context, data, copy };
inline constexpr int lane_count = 6;
static_assert(lane_count <= 8, "a block's map is a small fixed matrix");
std::string_view name(Lane lane);  // "host", "compute", "comm:tp", "comm:dp", "copy"

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_receive,
  all_to_all_v,  // of distinct sizes
  gather,
  scatter
};
/// As files, tables and flags write them.
inline constexpr Words<Collective, 10> collective_words{
    {{Collective::all_reduce, "all_reduce"},
     {Collective::all_gather, "all_gather"},
     {Collective::reduce_scatter, "reduce_scatter"},
     {Collective::broadcast, "broadcast"},
     {Collective::reduce, "reduce"},
     {Collective::gather, "gather"},
     {Collective::scatter, "scatter"},
     {Collective::all_to_all, "all_to_all"},
     {Collective::all_to_all_v, "all_to_all_v"},
     {Collective::send_receive, "send_receive"}}};
std::string_view name(Collective collective);

/// What a step's time is spent on: the parts of a report.
enum class TimeClass : std::uint8_t {
  gemm,
  attention,
  memory_bound,
  tp,
  cp,
  dp,
  pp,
  other_comm,
  bubble,
  optimizer,
  host,
  other
};
inline constexpr int time_class_count = 12;
std::string_view name(TimeClass part);

/// What a communicator is for. Consumers ask for a role, never for an index.
enum class CommunicatorRole : std::uint8_t {
  tensor,         // inside blocks
  context,        // inside attention: parts of the sequence
  context_heads,  // inside attention: the sequence against heads
  data,           // gradients, and state where it is sharded
  replica,        // copies of what is sharded among fewer than all replicas
  pipe_forward,   // activations to the next stage
  pipe_backward,  // gradients to the stage before
  model,          // all ranks of one replica
  world,
  tie,            // the two stages that hold a tied table
  expert,         // inside blocks: ranks that share a layer's experts
  expert_tensor,  // inside blocks: ranks that cut each expert
  expert_data,    // replicas of experts: their gradients and sharded state
  mirror,         // two stages that hold the same chunks, where micro-batches enter at both ends
};
inline constexpr int communicator_role_count = 14;
/// Whose ranks are replicas, and share the state of what they replicate.
constexpr bool of_replicas(CommunicatorRole role) {
  return role == CommunicatorRole::data || role == CommunicatorRole::replica ||
         role == CommunicatorRole::expert_data;
}

}  // namespace orrery::models

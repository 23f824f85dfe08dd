#pragma once
// Enums shared by a whole Program: lanes, collectives, classes of time and roles of communicators,
// with their names. They carry no sizes or costs.

#include <cstdint>
#include <string_view>

#include "sim/words.hpp"

namespace orrery::models {

/// In-order queues of one rank. The host launches work; the other lanes run it: kernels, copies
/// between device and host, and collectives, with one lane for each kind of communicator.
enum class Lane : std::uint8_t { host, compute, tensor, context, data, copy };
inline constexpr int lane_count = 6;
static_assert(lane_count <= 8, "a block's map is a small fixed matrix");
std::string_view name(Lane lane);  // "host", "compute", "comm:tp", "comm:cp", "comm:dp", "copy"

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_receive,
  all_to_all_v,  // sizes differ between pairs of ranks
  gather,
  scatter
};
/// Names in files, tables and flags.
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

/// Copies of a token among the rows of an all-to-all, for dispatchers that send a token once to
/// each node with any of its experts (DeepEP, HybridEP).
struct TokenCopies {
  std::int64_t each = 0;              // experts of a token; 0: no two rows are alike
  std::int64_t groups = 1, kept = 1;  // of experts: a token's are all in `kept` of `groups` groups

  friend auto operator<=>(const TokenCopies&, const TokenCopies&) = default;
};

/// What a step's time is spent on: the categories of a report.
enum class TimeClass : std::uint8_t {
  gemm,
  attention,
  memory_bound,
  tp,
  cp,
  ep,
  dp,
  pp,
  other_comm,
  bubble,
  optimizer,
  host,
  other
};
inline constexpr int time_class_count = 13;
std::string_view name(TimeClass part);

/// What a communicator is for. Consumers look communicators up by role, never by index.
enum class CommunicatorRole : std::uint8_t {
  tensor,         // collectives of tensor parallelism inside blocks
  context,        // keys and values inside attention: all-gather or ring
  context_heads,  // all-to-all inside attention: sequence cut to head cut (Ulysses)
  data,           // gradient reduction, and gathers of sharded parameters
  replica,        // HSDP: between the copies of what is sharded over fewer ranks
  pipe_forward,   // activations to the next stage
  pipe_backward,  // gradients to the previous stage
  model,          // all ranks of one replica
  world,
  tie,            // first and last stage, which both hold a tied embedding table
  expert,         // inside blocks: ranks over which a layer's experts are distributed
  expert_tensor,  // inside blocks: ranks over which each expert is cut
  expert_data,    // replicas of the same experts: gradient reduction and sharded state
  mirror,         // DualPipe: the two stages that hold copies of the same chunks
};
inline constexpr int communicator_role_count = 14;
/// Are its ranks data-parallel replicas, which reduce gradients and may shard their state?
constexpr bool of_replicas(CommunicatorRole role) {
  return role == CommunicatorRole::data || role == CommunicatorRole::replica ||
         role == CommunicatorRole::expert_data;
}

}  // namespace orrery::models

#pragma once
// Constants of the collective cost model that all machines share: what the protocols and schemes
// of a library take beyond what a machine's own constants say. Each is explained next to its
// formula in models/network/collectives/.

#include <limits>

#include "sim/quantity.hpp"

namespace orrery::hardware {

/// Source  fits to public nccl-tests runs; which, and how well: ring.cpp, tree.cpp, nvls.cpp and
///         pairwise.cpp of models/network/collectives/
struct ProtocolConstants {
  // Ring inside a node. Rates are parts of the link rate, or of the ring's for Simple.
  double ll_rate = 0.282;        // on bus bytes: half of what LL sends is flags
  double ll_ramp_rate = 0.021;   // until the ramp is ...
  double ll_ramp_limit = 0.108;  // ... this part of the latency
  double ll128_rate = 0.715;
  double ll128_latency = 2.43;  // over LL's: a step waits for a whole line of 128 bytes
  double simple_rate = 0.976;
  double simple_latency = 2.92;  // over LL's: a step ends with a fence
  double own_shard_rate = 1.49;  // of the link rate: copying a rank's own shard
  double scale_up_share = 0.8;   // of the link rate, of a ring whose rate is not known
  double tree_scale_up = 0.9;    // of the rate inside a node, while it feeds the network
  Time switch_base{27'000'000};  // NVLS: setting up and fencing the multicast
  double switch_root = 6.7e-9;   // seconds, times the root of the bus bytes of 8 ranks
  // Pairs: all-to-alls and messages.
  Time pair_base{2'800'000};       // beyond a ring's base
  double pair_root = 0.15e-6;      // seconds, times the root of bytes over the link rate in ns
  double pair_efficiency = 0.8;    // across nodes, next to the network's efficiency
  double pairs_ring_share = 1.05;  // inside a node, all to all: of the ring's rate, on bus bytes
  double pairs_own_rate = 2.4;     // ... of the link rate, of a rank's own shard
  double message_rate = 0.92;      // inside a node: of the ring's rate, of one message

  /// None of them costs anything: every efficiency is 1, every time 0, by definition.
  static ProtocolConstants ideal() {
    constexpr double free = std::numeric_limits<double>::infinity();
    return {.ll_rate = 1,
            .ll_ramp_rate = free,
            .ll_ramp_limit = 0,
            .ll128_rate = 1,
            .ll128_latency = 1,
            .simple_rate = 1,
            .simple_latency = 1,
            .own_shard_rate = free,
            .scale_up_share = 1,
            .tree_scale_up = 1,
            .switch_base = {},
            .switch_root = 0,
            .pair_base = {},
            .pair_root = 0,
            .pair_efficiency = 1,
            .pairs_ring_share = 1,
            .pairs_own_rate = free,
            .message_rate = 1};
  }
};

}  // namespace orrery::hardware

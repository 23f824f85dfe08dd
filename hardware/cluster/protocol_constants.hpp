#pragma once
// Constants of the collective cost model that are the same on all machines: the costs of a
// library's protocols and algorithms relative to a machine's own constants. Each is explained next
// to its formula in models/network/collectives/.

#include <limits>

#include "sim/quantity.hpp"

namespace orrery::hardware {

/// Source  fits to public nccl-tests runs; data and errors: ring.cpp, tree.cpp, nvls.cpp and
///         pairwise.cpp of models/network/collectives/
struct ProtocolConstants {
  // Ring inside a node. Rates are shares of the link rate, or of the ring's for Simple.
  double ll_rate = 0.282;        // on bus bytes: half of what LL sends is flags
  double ll_ramp_rate = 0.021;   // rate of the ramp, until it takes ...
  double ll_ramp_limit = 0.108;  // ... this share of the latency
  double ll128_rate = 0.715;
  double ll128_latency = 2.43;  // times LL's: a step waits for a whole line of 128 bytes
  double simple_rate = 0.976;
  double simple_latency = 2.92;  // times LL's: a step ends with a fence
  double own_shard_rate = 1.49;  // of the link rate: copying a rank's own shard
  double scale_up_share = 0.8;   // of the link rate, for a ring whose rate is not known
  double tree_scale_up = 0.9;    // of the rate inside a node, while it feeds the network
  Time switch_base{27'000'000};  // NVLS: setting up and fencing the multicast
  double switch_root = 6.7e-9;   // seconds, times the root of the bus bytes of 8 ranks
  // Point-to-point pairs: all-to-alls and single messages.
  Time pair_base{2'800'000};       // added to a ring's base
  double pair_root = 0.15e-6;      // seconds, times sqrt(bytes / link rate in ns)
  double pair_efficiency = 0.8;    // across nodes, times the network's efficiency
  double pairs_ring_share = 1.05;  // all-to-all inside a node: of the ring's rate, on bus bytes
  double pairs_own_rate = 2.4;     // ... of the link rate, for a rank's own shard
  double message_rate = 0.92;      // one message inside a node: of the ring's rate

  /// Constants without any cost: every efficiency is 1, every time 0, by definition.
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

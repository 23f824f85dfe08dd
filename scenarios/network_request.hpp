#pragma once
// What a scenario says of the network beyond its cluster: how it is evaluated, where ranks are, and
// what is slower than its kind.
//   /network        "auto" (default), "static" or "events"
//   /placement      "contiguous" (default), {"scattered": SEED}, or the cluster's nodes in the
//   order
//                   in which ranks fill them
//   /perturbations  [{kind, at, rate, from, to}]: kind gpu, node, nic, link or switch; at
//                   "node3/gpu1", "node3", "node3/nic1", or a link or switch of `show topology`;
//                   rate its share of the usual rate; from and to times in the step, of links

#include "models/prediction/network.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Errors  InputError with file and pointer
models::NetworkRequest read_network(const Node& root);

}  // namespace orrery::scenarios

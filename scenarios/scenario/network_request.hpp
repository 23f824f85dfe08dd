#pragma once
// Members of a scenario on its network besides the cluster: how traffic is evaluated, where ranks
// are placed, which parts are slower than usual, and which other jobs share the fabric.
//   /network        "auto" (default), "static" or "events", or {mode, phases, first_phase, seed,
//                   launch_delay}: one of these, and so many samples of the step with events; in
//                   each, transfers and collectives are launched later by random delays, 49 us on
//                   average
//   /placement      "contiguous" (default), {"scattered": SEED}, {"order": "tp-cp-ep-dp-pp"}, both
//                   of these, or the cluster's nodes in the order in which ranks fill them
//   /perturbations  [{kind, at, rate, from, to}]: kind gpu, node, nic, link or switch; at
//                   "node3/gpu1", "node3", "node3/nic1", or a link or switch of `show topology`;
//                   rate its share of the usual rate; from and to times in the step, of links
//                   {kind: "jitter", distribution, deviation}: of every kernel, "normal" (default)
//                   or "exponential", with a standard deviation such as "2 us"
//   /collectives    {choice, NCCL_ALGO, NCCL_PROTO, NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS}: "fastest"
//                   (default) of the algorithms by their cost models, or "nccl", what NCCL's tuner
//                   would run, of what its environment allows
//   /jobs           [{scenario, nodes}]: other jobs on the cluster's nodes of these numbers; a
//                   scenario's name, path or document, evaluated on this cluster

#include <string>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "models/prediction/network/network.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// settings  "NCCL_ALGO=Ring,Tree", "NCCL_PROTO=^LL128", each name once
/// place     where they are written: "--env"
/// Errors    as read_nccl_variable, a name twice: InputError
models::NcclSettings nccl_settings_of(const std::vector<std::string>& settings,
                                      const std::string& place);

/// All but the jobs. Errors: InputError with file and pointer.
models::NetworkRequest read_network(const Node& root);

/// cluster  of the question whose jobs they are, as written and as read
/// Errors   a scenario that is unknown, wrong or has jobs of its own, more than 64 jobs: InputError
std::vector<models::JobRequest> read_jobs(const Node& root, const Json& cluster,
                                          const hardware::Cluster& read);

}  // namespace orrery::scenarios

#pragma once
// How long one collective takes on a cluster, next to its siblings: the same operation that all
// groups of its axis run at once. A cost model per algorithm (one file each), the smallest wins.
// Leaves out: SHARP in the network (CollNet), PAT, symmetric-memory kernels, launch time on the
// host, the slowdown of kernels that share the GPU, collisions of flows inside the fabric, siblings
// on one PCIe tree, and racks of 72 by the dozen, which reach 8 NICs' worth of their 72.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hardware/cluster.hpp"
#include "models/network/collectives/group.hpp"
#include "models/program/ids.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

enum class Algorithm : std::uint8_t { ring, tree, nvls, nvls_tree, direct };
enum class Protocol : std::uint8_t { ll, ll128, simple };

/// "nvls_tree", "ll128": as files and tables write them.
std::string_view name(Algorithm algorithm);
std::string_view name(Protocol protocol);

/// How long a transfer keeps links full, at the rate that it reaches on them: its bytes, without
/// latencies and ramps. Never longer than the transfer itself.
struct LinkTimes {
  Time nic{};     // of a node's NICs, the part that a group gets of them
  Time nvlink{};  // a GPU's links inside its node, whatever they are
};

struct CollectiveTime {
  Time time{};
  LinkTimes links{};
  Algorithm algorithm = Algorithm::direct;
  std::optional<Protocol> protocol;  // nothing where one cost model covers all of them
  std::string_view limited_by;       // the largest term: latency, ramp, scale-up or network
};

/// Every algorithm and protocol that could run here, with its time; never empty.
/// size    as nccl-tests prints it. all_reduce, broadcast, reduce: one rank's buffer. all_gather,
///         reduce_scatter: the whole, ranks x shard. all_to_all: what one rank sends in total, its
///         own share included. send_receive: the message.
/// group   its shape; send_receive takes the two ends, on one node or two.
/// One rank, or no byte, takes no time: the library returns at once, a local copy is a kernel's.
/// Errors  size < 0, an impossible shape, no link between the ranks of a node, or no network
///         between nodes: ContractError
std::vector<CollectiveTime> candidates(Collective collective, Bytes size, const GroupShape& group,
                                       const hardware::Cluster& cluster);

/// The cluster's own measured table where it has one (measured.hpp, limited by "measured"), else
/// the fastest candidate, the first of equals. Never decreases with size or with siblings.
CollectiveTime price(Collective collective, Bytes size, const GroupShape& group,
                     const hardware::Cluster& cluster);

/// Bus bandwidth of nccl-tests: what each link would carry if all did their fair part.
///   busbw = factor * size / time;  factor = 2(n-1)/n all-reduce, (n-1)/n all-gather,
///   reduce-scatter and all-to-all, 1 for the others
/// Source  nccl-tests, doc/PERFORMANCE.md
double bus_factor(Collective collective, int ranks);

}  // namespace orrery::models

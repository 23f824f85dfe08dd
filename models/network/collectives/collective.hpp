#pragma once
// The time of one collective on a cluster, while its siblings (the other groups of its axis) run
// the same operation. Each algorithm has a cost model (one file each); the fastest is taken. Leaves
// out: symmetric-memory kernels, launch time on the host, the slowdown of kernels that share the
// GPU, collisions of flows inside the fabric, siblings on one PCIe tree, and dozens of racks of 72,
// which reach the rate of 8 of their 72 NICs.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "models/network/collectives/algorithm.hpp"
#include "models/network/collectives/group.hpp"
#include "models/program/ids.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

enum class Protocol : std::uint8_t { ll, ll128, simple };
/// Their names in files, tables and flags.
inline constexpr Words<Protocol, 3> protocol_words{
    {{Protocol::ll, "ll"}, {Protocol::ll128, "ll128"}, {Protocol::simple, "simple"}}};
inline std::string_view name(Protocol protocol) {
  return word_of(protocol_words, protocol);
}

/// How long a transfer occupies links with its bytes, at the rate that it reaches on them, without
/// latencies and ramps. Never longer than the transfer itself.
struct LinkTimes {
  Time nic{};     // the group's share of a node's NICs
  Time nvlink{};  // a GPU's links inside its node, of any kind (NVLink, xGMI, PCIe)

  /// Time of the bytes between nodes at full rate, which links inside a node may limit.
  Time fluid() const { return nic > Time{} ? std::max(nic, nvlink) : Time{}; }
};

/// The time of a collective and its use of links.
struct CollectiveTime {
  Time time{};     // latency + fluid
  Time latency{};  // hops, fixed costs and the ramp, during which links are idle
  Time fluid{};    // transfer of the bytes at a constant rate
  LinkTimes links{};
  std::string_view algorithm{};        // its name in the table; empty if no algorithm priced it
  std::optional<Protocol> protocol{};  // nothing where one cost model covers all protocols
  std::string_view limited_by{};       // the largest term: latency, ramp, scale-up or network

  TrafficPattern pattern = TrafficPattern::none;
  /// Rate at which one flow occupies its NIC during `fluid`. If the network is the bottleneck, the
  /// flows of a NIC fill its line rate together, whatever the efficiency; otherwise less.
  Bandwidth wire{};
  /// Ring or tree: flows on each NIC that the group uses. Pairs: flows from one rank to another.
  /// Both are channels times queue pairs.
  int flows = 0;
  int channels = 0;  // of the group on one node; 0: not known
};

/// The other traffic that a price assumes: the siblings of the group and a leaf's oversubscription,
/// as the group's shape states; or none, for callers that evaluate shared links themselves.
enum class LinkSharing : std::uint8_t { with_siblings, alone };

/// Restrictions by the user, as with NCCL_ALGO and NCCL_PROTO. By default all usual algorithms.
struct CollectiveChoice {
  std::string_view algorithm{};  // a name of the table
  std::optional<Protocol> protocol{};
  std::optional<int> channels{};  // at most so many: NCCL_MAX_NCHANNELS
};

struct NcclSettings;

/// How a collective is to be priced.
struct CollectivePricing {
  LinkSharing sharing = LinkSharing::with_siblings;
  CollectiveChoice choice{};
  /// Settings of NCCL's tuner, which chooses among what `choice` leaves open (nccl_settings.hpp);
  /// null: the fastest algorithm is taken.
  const NcclSettings* nccl = nullptr;
  TokenCopies copies{};  // in an all-to-all, for algorithms that send a token once per node
  const Registry<CollectiveAlgorithm>* algorithms = &builtin_algorithms();
};

/// Every algorithm and protocol that could run here, with its time. Empty only where the choice
/// asks for one that cannot run here. size    as nccl-tests prints it. all_reduce, broadcast,
/// reduce: one rank's buffer. all_gather,
///         reduce_scatter, gather, scatter: the whole, ranks x shard. all_to_all: what one rank
///         sends in total, its own share included; all_to_all_v: the most that one sends or
///         receives. send_receive: the message.
/// group   its shape; for send_receive the sender and the receiver, on one node or two.
/// One rank, or no byte, takes no time: the library returns at once, and a local copy is a kernel.
/// Errors  size < 0, an impossible shape, no link between the ranks of a node, or no network
///         between nodes: ContractError. A name that the table lacks: InputError
std::vector<CollectiveTime> candidates(Collective collective, Bytes size, const GroupShape& group,
                                       const hardware::Cluster& cluster,
                                       const CollectivePricing& pricing = {});

/// The time of a collective: from the cluster's measured table if it has one and nothing restricts
/// the choice (measured.hpp, limited_by "measured"); otherwise of the fastest candidate, the first
/// of equals, or of the one that NCCL's tuner expects to be fastest, corrected by a measured
/// all-reduce if there is one (carried.hpp). It never decreases with more siblings, nor, except
/// with the tuner, with size; and no table makes it faster than the wire (wire_bound.hpp). Errors
/// as above; a choice that does not run here: InputError
CollectiveTime price(Collective collective, Bytes size, const GroupShape& group,
                     const hardware::Cluster& cluster, const CollectivePricing& pricing = {});

/// Factor of the bus bandwidth of nccl-tests, the rate of each link if all carry an equal part.
///   busbw = factor * size / time;  factor = 2(n-1)/n all-reduce, (n-1)/n all-gather,
///   reduce-scatter, all-to-all, gather and scatter, 1 for the others
/// Source  nccl-tests, doc/PERFORMANCE.md, src/gather.cu, src/scatter.cu
double bus_factor(Collective collective, int ranks);

}  // namespace orrery::models

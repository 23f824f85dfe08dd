#pragma once
// How long one collective takes on a cluster, next to its siblings: the same operation that all
// groups of its axis run at once. A cost model per algorithm (one file each), the smallest wins.
// Leaves out: symmetric-memory kernels, launch time on the host, the slowdown of kernels that share
// the GPU, collisions of flows inside the fabric, siblings on one PCIe tree, and racks of 72 by the
// dozen, which reach 8 NICs' worth of their 72.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hardware/cluster.hpp"
#include "models/network/collectives/algorithm.hpp"
#include "models/network/collectives/group.hpp"
#include "models/program/ids.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

enum class Protocol : std::uint8_t { ll, ll128, simple };
/// As files, tables and flags write them.
inline constexpr Words<Protocol, 3> protocol_words{
    {{Protocol::ll, "ll"}, {Protocol::ll128, "ll128"}, {Protocol::simple, "simple"}}};
inline std::string_view name(Protocol protocol) {
  return word_of(protocol_words, protocol);
}

/// How long a transfer keeps links full, at the rate that it reaches on them: its bytes, without
/// latencies and ramps. Never longer than the transfer itself.
struct LinkTimes {
  Time nic{};     // of a node's NICs, the part that a group gets of them
  Time nvlink{};  // a GPU's links inside its node, whatever they are
};

struct CollectiveTime {
  Time time{};     // latency + fluid
  Time latency{};  // hops, fixed costs and the ramp: no link is busy with it
  Time fluid{};    // bytes at a constant rate
  LinkTimes links{};
  std::string_view algorithm{};        // its name in the table; of what no algorithm prices, empty
  std::optional<Protocol> protocol{};  // nothing where one cost model covers all of them
  std::string_view limited_by{};       // the largest term: latency, ramp, scale-up or network

  TrafficPattern pattern = TrafficPattern::none;
  /// What one flow occupies of its NIC while `fluid`: all that leave by a NIC fill it together
  /// where the network limits, at whatever efficiency; less where links inside the node do.
  Bandwidth wire{};
  /// Flows of a ring or tree on each NIC that its group uses, of pairs from one rank to another:
  /// channels times queue pairs.
  int flows = 0;
  int channels = 0;  // of the group on one node; 0: not known
};

/// Whom a price has on the wire: the siblings of its group and a leaf's oversubscription, as the
/// shape says, or no other traffic at all, for those who evaluate links themselves.
enum class LinkSharing : std::uint8_t { with_siblings, alone };

/// What a user, like NCCL_ALGO and NCCL_PROTO, allows. Nothing given: all that is usual.
struct CollectiveChoice {
  std::string_view algorithm{};  // a name of the table
  std::optional<Protocol> protocol{};
  std::optional<int> channels{};  // at most so many: NCCL_MAX_NCHANNELS
};

struct NcclSettings;

struct CollectivePricing {
  LinkSharing sharing = LinkSharing::with_siblings;
  CollectiveChoice choice{};
  /// NCCL's tuner decides what the choice leaves open (nccl_settings.hpp); null: the fastest does.
  const NcclSettings* nccl = nullptr;
  int copies = 0;  // of a token among an all-to-all's rows, for what sends it once per node
  const Registry<CollectiveAlgorithm>* algorithms = &builtin_algorithms();
};

/// Every algorithm and protocol that could run here, with its time. Empty only where a choice asks
/// for what does not run here.
/// size    as nccl-tests prints it. all_reduce, broadcast, reduce: one rank's buffer. all_gather,
///         reduce_scatter, gather, scatter: the whole, ranks x shard. all_to_all: what one rank
///         sends in total, its own share included; all_to_all_v: the most that one sends or
///         receives. send_receive: the message.
/// group   its shape; send_receive takes the two ends, on one node or two.
/// One rank, or no byte, takes no time: the library returns at once, a local copy is a kernel's.
/// Errors  size < 0, an impossible shape, no link between the ranks of a node, or no network
///         between nodes: ContractError. A name that the table lacks: InputError
std::vector<CollectiveTime> candidates(Collective collective, Bytes size, const GroupShape& group,
                                       const hardware::Cluster& cluster,
                                       const CollectivePricing& pricing = {});

/// The cluster's own measured table where it has one and nothing is chosen (measured.hpp, limited
/// by "measured"), else the fastest candidate, the first of equals, or the one that NCCL's tuner
/// expects to be fastest. Never decreases with siblings, nor, but for the tuner, with size.
/// Errors  as above; a choice that does not run here: InputError
CollectiveTime price(Collective collective, Bytes size, const GroupShape& group,
                     const hardware::Cluster& cluster, const CollectivePricing& pricing = {});

/// Bus bandwidth of nccl-tests: what each link would carry if all did their fair part.
///   busbw = factor * size / time;  factor = 2(n-1)/n all-reduce, (n-1)/n all-gather,
///   reduce-scatter, all-to-all, gather and scatter, 1 for the others
/// Source  nccl-tests, doc/PERFORMANCE.md, src/gather.cu, src/scatter.cu
double bus_factor(Collective collective, int ranks);

}  // namespace orrery::models

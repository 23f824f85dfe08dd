#include "models/network/collectives/nccl_tuner.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "sim/errors.hpp"

namespace orrery::models {

namespace {

using ByProtocol = std::array<double, 3>;  // ll, ll128, simple
using ByNodes = std::array<double, 3>;     // one node, two nodes, more (NCCL: four or more)

// Latencies in microseconds: base, and per hop by kind of link.
constexpr ByProtocol ring_base{6.6, 14, 8.4}, tree_base{6.8, 14, 8.4};
constexpr ByProtocol ring_nvlink{0.6, 1.9, 3.4}, tree_nvlink{0.6, 1.25, 4.0};
constexpr ByProtocol ring_pcie{1.0, 2.5, 5.7}, tree_pcie{1.0, 1.9, 4.0};
constexpr ByProtocol ring_network{2.7, 4.0, 14}, tree_network{5.0, 8.5, 14};
constexpr double nvls_nvlink = 25, nvls_tree_network = 20.9;
constexpr double post = 1;  // to post a message on an Intel host; Simple posts three

/// Bandwidth limits in GB/s by GPU generation: `ll` of all channels, the others of one channel.
struct TunedGeneration {
  ByNodes ll{}, ring_ll128{}, tree_ll128{}, tree_simple{}, nvls_tree{};
  double nvls_efficiency = 0;
};
constexpr TunedGeneration volta{{39, 39, 20.4},   {20, 20, 20}, {20, 20, 20},
                                {26.5, 18.5, 10}, {},           0};
constexpr TunedGeneration ampere{{87.7, 39, 20.4}, {20, 20, 20}, {20, 20, 20},
                                 {24, 23.6, 17.8}, {},           0};
constexpr TunedGeneration hopper{{141, 39, 20.4},  {36.7, 36.7, 36.7}, {36.7, 36.7, 29},
                                 {38.7, 41.4, 36}, {0, 57.7, 45.5},    0.85};
constexpr TunedGeneration blackwell{{282, 39, 20.4}, {40, 40, 40}, {55.6, 31.67, 20},
                                    {70, 42.8, 24},  {0, 96, 80},  0.74};

/// Correction factors of a tree's bandwidth, by protocol and log2(bytes / 64).
constexpr std::size_t corrections = 23;
constexpr std::array<std::array<double, corrections>, 3> tree_correction{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9, .9}}};

constexpr std::array ampere_speeds{48., 30., 28., 24., 20., 18., 15., 12., 10., 9.,
                                   7.,  6.,  5.,  4.,  3.,  2.4, 1.2, .24, .12};
constexpr std::array hopper_speeds{48., 45., 42., 40., 30., 24., 22., 20., 17.5,
                                   15., 12., 6.,  3.,  2.4, 1.2, .24, .12};
constexpr std::array blackwell_speeds{96., 86.,  80., 48., 45.1, 42., 40., 30., 24., 22.,
                                      20., 17.5, 15., 12., 6.,   3.,  2.4, 1.2, .24, .12};

class Tuner {
 public:
  Tuner(Collective collective, Bytes size, const GroupShape& group,
        const hardware::Cluster& cluster)
      : collective_{collective},
        bytes_{static_cast<double>(size.count())},
        cluster_{cluster},
        ranks_{static_cast<double>(group.ranks)},
        nodes_{static_cast<double>(group.nodes)},
        capability_{cluster.gpu().generation.compute_capability} {
    ensure(group.ranks > 1, "NCCL tunes what several ranks do");
    find_graph(group);
  }

  std::vector<TunedChoice> run() {
    const bool whole = collective_ == Collective::all_reduce;
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      if (protocol == Protocol::ll128 && !has_ll128()) continue;
      add("ring", protocol, ring_latency(protocol), ring_rate(protocol));
      if (whole) add("tree", protocol, tree_latency(protocol), tree_rate(protocol));
    }
    if (whole && generation().nvls_efficiency > 0 && has_switch()) add_nvls();
    std::ranges::stable_sort(
        found_, [](const TunedChoice& a, const TunedChoice& b) { return a.expected < b.expected; });
    return found_;
  }

 private:
  const TunedGeneration& generation() const {
    if (capability_ >= 100) return blackwell;
    if (capability_ >= 90) return hopper;
    return capability_ >= 80 ? ampere : volta;
  }
  double at_nodes(const ByNodes& of) const { return of[nodes_ <= 1 ? 0 : nodes_ <= 2 ? 1 : 2]; }
  bool has_switch() const { return cluster_.node.scale_up == hardware::ScaleUp::nvswitch; }
  bool has_ll128() const {
    return cluster_.node.scale_up != hardware::ScaleUp::pcie && capability_ >= 70;
  }
  double local() const { return std::ceil(ranks_ / nodes_); }
  double steps() const {
    if (collective_ == Collective::all_reduce) return 2 * (ranks_ - 1);
    const bool cut =
        collective_ == Collective::all_gather || collective_ == Collective::reduce_scatter;
    return cut ? ranks_ - 1 : ranks_;
  }

  /// Channels and the speed of one in GB/s, as NCCL's graph search finds them.
  void find_graph(const GroupShape& group) {
    const double inside = cluster_.node.scale_up_bandwidth.count() / 1e9;
    if (nodes_ <= 1) {
      // 12 x 20 of 300 GB/s, 12 x 30 of 450, 16 x 45 of 900.
      channels_ = capability_ >= 100 ? 16 : 12;
      speed_ = capability_ >= 100 ? inside / 20 : inside / 15;
      return;
    }
    const double nic = cluster_.nic_bandwidth().count() / 1e9;
    const double nics = std::clamp<double>(
        cluster_.node.nics * group.ranks_per_node / cluster_.node.gpus, 1.0, cluster_.node.nics);
    speed_ = speed_below(nic);
    channels_ = nics;
    const bool kept = capability_ > 80 && speed_ < 50 && channels_ > 4;
    if (speed_ >= 25 && !kept) {
      channels_ *= 2;
      speed_ /= 2;
    }
  }

  double speed_below(double rate) const {
    const std::span<const double> speeds =
        capability_ >= 100  ? std::span<const double>{blackwell_speeds}
        : capability_ >= 90 ? std::span<const double>{hopper_speeds}
                            : std::span<const double>{ampere_speeds};
    for (const double each : speeds) {
      if (each <= rate * 1.001) return each;
    }
    return speeds.back();
  }

  double hop_inside(const ByProtocol& nvlink, const ByProtocol& pcie, Protocol protocol) const {
    const bool links = cluster_.node.scale_up != hardware::ScaleUp::pcie;
    return (links ? nvlink : pcie)[static_cast<std::size_t>(protocol)];
  }

  double ring_latency(Protocol protocol) const {
    const auto p = static_cast<std::size_t>(protocol);
    const double inside = hop_inside(ring_nvlink, ring_pcie, protocol);
    const double across = (local() <= 1 ? tree_network : ring_network)[p];
    if (collective_ == Collective::broadcast || collective_ == Collective::reduce) {
      return ring_base[p] + (nodes_ > 1 ? across : inside);
    }
    const double rounds = collective_ == Collective::all_reduce ? 2 : 1;
    const double crossing = nodes_ > 1 ? rounds * (nodes_ - 1) : 0;
    const double posting = nodes_ > 1 ? post * (protocol == Protocol::simple ? 3 : 1) : 0;
    double latency =
        ring_base[p] + (steps() - crossing) * std::max(inside, posting) + crossing * across;
    const bool large = bytes_ / (channels_ * ranks_) >= 64;
    if (collective_ == Collective::all_reduce && nodes_ > 1 && protocol == Protocol::simple &&
        large) {
      latency *= capability_ < 80 ? 1.9 : 1.4;
    }
    return latency;
  }

  double tree_latency(Protocol protocol) const {
    const auto p = static_cast<std::size_t>(protocol);
    return tree_base[p] + 2 * ((local() - 1) * hop_inside(tree_nvlink, tree_pcie, protocol) +
                               log2_nodes() * tree_network[p]);
  }
  double log2_nodes() const { return std::bit_width(static_cast<std::uint64_t>(nodes_)) - 1; }

  /// Rate in GB/s over the size as nccl-tests counts it.
  double ring_rate(Protocol protocol) const {
    double bus = channels_ * speed_;
    if (protocol == Protocol::ll) bus = std::min(at_nodes(generation().ll), bus / 2);
    if (protocol == Protocol::ll128) {
      bus = std::min(0.92 * bus, channels_ * at_nodes(generation().ring_ll128));
    }
    return bus * ranks_ / steps();
  }

  double tree_rate(Protocol protocol) const {
    const TunedGeneration& of = generation();
    double bus = std::min(0.92 * channels_ * speed_, channels_ * at_nodes(of.tree_simple));
    if (protocol == Protocol::ll) bus = std::min(bus / 3.8, at_nodes(of.ll));
    if (protocol == Protocol::ll128) {
      bus = std::min(bus * (nodes_ <= 1 ? 7.0 / 9 : 120.0 / 128),
                     channels_ * at_nodes(of.tree_ll128));
    }
    const double doublings = std::log2(std::max(1.0, bytes_ / 64));
    const auto index = std::min(corrections - 1, static_cast<std::size_t>(doublings));
    return 0.5 * bus * tree_correction[static_cast<std::size_t>(protocol)][index];
  }

  /// 8 channels of 40 GB/s on H100, of 80 on B200.
  void add_nvls() {
    const double channels = nodes_ > 1 ? channels_ : 8;
    const double inside = cluster_.node.scale_up_bandwidth.count() / 1e9 / 11.25;
    const double own = inside * generation().nvls_efficiency * (channels - 1) / channels * 2;
    if (channels < 2) return;
    const double factor = ranks_ / steps();
    if (nodes_ <= 1) {
      add("nvls", Protocol::simple, nvls_nvlink, channels * own * factor);
      return;
    }
    const double across = speed_ * (nodes_ <= 2 ? 2 : 1);
    const double each = std::min({own, across, at_nodes(generation().nvls_tree)});
    add("nvls_tree", Protocol::simple, nvls_nvlink + 2 * log2_nodes() * nvls_tree_network,
        channels * each * factor);
  }

  void add(std::string_view algorithm, Protocol protocol, double microseconds, double rate) {
    if (rate <= 0) return;
    found_.push_back({algorithm, protocol, 1e-6 * microseconds + bytes_ / (1e9 * rate)});
  }

  Collective collective_;
  double bytes_;
  const hardware::Cluster& cluster_;
  double ranks_, nodes_;
  int capability_;
  double channels_ = 1, speed_ = 0;
  std::vector<TunedChoice> found_;
};

}  // namespace

std::vector<TunedChoice> nccl_choices(Collective collective, Bytes size, const GroupShape& group,
                                      const hardware::Cluster& cluster) {
  switch (collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::broadcast:
    case Collective::reduce:
      return Tuner{collective, size, group, cluster}.run();
    default:
      return {};
  }
}

}  // namespace orrery::models

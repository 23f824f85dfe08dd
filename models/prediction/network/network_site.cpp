#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <memory>
#include <numeric>

#include "models/network/fabric/fabric_graph.hpp"
#include "models/network/fabric/inside_links.hpp"
#include "models/network/scattered.hpp"
#include "models/operations/layouts.hpp"
#include "models/prediction/prediction.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {

namespace {

/// Numbers between and after these words, the words left out or not: "node3/nic1" and "3/1" by
/// {"node", "/", "nic"}. Nothing if the text is of another form.
std::vector<std::int64_t> numbers_in(std::string_view text,
                                     std::initializer_list<std::string_view> words) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view word : words) {
    const bool here = text.substr(0, word.size()) == word;
    if (here) text.remove_prefix(word.size());
    if (word == "/" && !here) return {};
    if (word == "/") continue;
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    numbers.push_back(value);
  }
  return text.empty() ? numbers : std::vector<std::int64_t>{};
}

constexpr const char* ours = "this job";

class SiteMaker {
 public:
  SiteMaker(const Question& question, std::shared_ptr<const FabricGraph> fabric)
      : question_{question},
        cluster_{question.cluster},
        fabric_{std::move(fabric)},
        inside_{cluster_, fabric_->links()} {}

  NetworkSite run() {
    const std::vector<JobRequest>& jobs = question_.network.jobs;
    add_links();
    owner_of_node_.resize(static_cast<std::size_t>(cluster_.nodes));
    const bool listed = !question_.network.order.nodes.empty();
    if (listed) place();
    for (std::size_t job = 0; job < jobs.size(); ++job) take_nodes(job);
    if (!listed) place();
    for (const JobRequest& job : jobs) place_job(job);
    for (const Perturbation& each : question_.network.perturbations) perturb(each);
    return std::move(site_);
  }

 private:
  void add_links() {
    for (std::uint32_t link = 0; link < fabric_->links(); ++link) {
      site_.links.push_back(fabric_->capacity(LinkId{link}));
    }
    for (std::size_t link = 0; link < inside_.links(); ++link) {
      site_.links.push_back(inside_.capacity(fabric_->links() + link));
    }
    site_.inside = inside_.paths();
    site_.ports_per_node = static_cast<std::uint32_t>(cluster_.node.nics);
    site_.port = cluster_.nic_bandwidth();
    site_.rails_alike = fabric_->rails_alike();
    for (const std::vector<int>& each : cluster_.node.gpu_nics) {
      if (!each.empty()) site_.nearest.push_back(static_cast<std::uint32_t>(each.front()));
    }
    if (site_.nearest.size() != static_cast<std::size_t>(cluster_.node.gpus)) site_.nearest.clear();
    // With PXN, what goes to another rail crosses NVLink first and leaves by that rail's NIC.
    const bool by_rail = hardware::has_rails(cluster_.fabric.kind) && cluster_.fabric.pxn;
    const std::size_t nics = site_.ports_per_node;
    site_.by_rail = by_rail;
    site_.route = [fabric = fabric_, by_rail, nics](std::size_t from, std::size_t to,
                                                    std::uint64_t flow, Route& route) {
      const std::size_t out = by_rail ? from - from % nics + to % nics : from;
      fabric->route({.from = out, .to = to, .flow = flow}, route);
    };
  }

  /// Ranks fill nodes in the order asked for, or else in the plan's.
  RankPlacement ordered(const Plan& plan, const AxisOrder& asked) const {
    const Mesh mesh = mesh_of(plan);
    RankPlacement placement = contiguous(static_cast<std::size_t>(plan.gpus()),
                                         static_cast<std::uint32_t>(cluster_.node.gpus));
    placement.order = order_of(asked, plan.own_rank_order());
    for (std::size_t r = 0; r < placement.devices.size(); ++r) {
      const std::int64_t at = placement.order.place(mesh, static_cast<std::int64_t>(r));
      placement.devices[r] = static_cast<std::uint32_t>(at);
    }
    return placement;
  }

  void place() {
    const std::int64_t gpus = cluster_.node.gpus, ranks = question_.plan.gpus();
    const std::int64_t used = (ranks + gpus - 1) / gpus;
    const std::vector<std::int64_t> order = nodes_of_ours();
    check(order, used);
    site_.placement = ordered(question_.plan, question_.network.order.axes);
    onto(order, site_.placement);
    for (std::int64_t i = 0; i < used; ++i)
      owner_of_node_[static_cast<std::size_t>(order[i])] = ours;
  }

  /// The nodes of our job: as listed, or those that other jobs leave, in random order or as
  /// numbered.
  std::vector<std::int64_t> nodes_of_ours() const {
    const NodeOrder& asked = question_.network.order;
    if (!asked.nodes.empty()) return asked.nodes;
    std::vector<std::int64_t> order(static_cast<std::size_t>(cluster_.nodes));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    if (asked.scattered) order = scattered_nodes(cluster_.nodes, *asked.scattered);
    std::erase_if(order, [&](std::int64_t node) {
      return !owner_of_node_[static_cast<std::size_t>(node)].empty();
    });
    return order;
  }

  /// Moves ranks that fill nodes in order onto these nodes.
  void onto(const std::vector<std::int64_t>& order, RankPlacement& placement) const {
    const std::int64_t gpus = cluster_.node.gpus;
    for (std::uint32_t& device : placement.devices) {
      const auto node = static_cast<std::size_t>(device / gpus);
      device = static_cast<std::uint32_t>(order[node] * gpus + device % gpus);
    }
  }

  void place_job(const JobRequest& job) {
    const std::int64_t gpus = cluster_.node.gpus, ranks = job.question->plan.gpus();
    const std::int64_t used = (ranks + gpus - 1) / gpus;
    require_enough(job.nodes, used, job.pointer + "/nodes");
    ConcurrentJob& placed = site_.others.emplace_back();
    placed.placement = ordered(job.question->plan, {});
    onto(job.nodes, placed.placement);
  }

  void take_nodes(std::size_t number) {
    const JobRequest& job = question_.network.jobs[number];
    for (std::size_t i = 0; i < job.nodes.size(); ++i) {
      const std::string pointer = fmt::format("{}/nodes/{}", job.pointer, i);
      const std::int64_t node = job.nodes[i];
      require_node(node, pointer);
      std::string& owner = owner_of_node_[static_cast<std::size_t>(node)];
      if (!owner.empty())
        throw InputError{place_of(pointer),
                         fmt::format("node {} is already used by {}", node, owner)};
      owner = fmt::format("/jobs/{}", number);
    }
  }

  void check(const std::vector<std::int64_t>& order, std::int64_t used) const {
    require_enough(order, used, "/placement");
    std::vector<char> taken(static_cast<std::size_t>(cluster_.nodes), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::string pointer = fmt::format("/placement/{}", i);
      require_node(order[i], pointer);
      if (taken[static_cast<std::size_t>(order[i])]++ > 0) {
        throw InputError{place_of(pointer), fmt::format("node {} is listed twice", order[i])};
      }
    }
  }

  void require_enough(const std::vector<std::int64_t>& nodes, std::int64_t used,
                      const std::string& pointer) const {
    if (std::ssize(nodes) >= used) return;
    throw InputError{place_of(pointer),
                     fmt::format("{} nodes are listed, and the plan needs {}", nodes.size(), used)};
  }
  void require_node(std::int64_t node, const std::string& pointer) const {
    if (node >= 0 && node < cluster_.nodes) return;
    throw InputError{place_of(pointer), fmt::format("expected a node from 0 to {}, found {}",
                                                    cluster_.nodes - 1, node)};
  }

  std::string place_of(const std::string& pointer) const {
    return question_.network.place(pointer);
  }

  [[noreturn]] void refuse(const Perturbation& each, std::string_view accepted) const {
    throw InputError{place_of(each.pointer + "/at"),
                     fmt::format("expected {}, found '{}'", accepted, printable(each.at, 60))};
  }

  void perturb(const Perturbation& each) {
    switch (each.kind) {
      case PerturbedPart::gpu:
      case PerturbedPart::node:
        return slow(each);
      case PerturbedPart::nic: {
        const std::vector<std::int64_t> found = numbers_in(each.at, {"node", "/", "nic"});
        const std::int64_t nics = site_.ports_per_node;
        if (found.empty() || found[0] >= cluster_.nodes || found[1] >= nics) {
          refuse(each, fmt::format("a NIC from 0/0 to {0}/{1}, or node0/nic0 to node{0}/nic{1}",
                                   cluster_.nodes - 1, nics - 1));
        }
        const auto port = static_cast<std::size_t>(found[0] * nics + found[1]);
        narrow(each, fabric_->out_of(port));
        return narrow(each, fabric_->into(port));
      }
      case PerturbedPart::link: {
        if (const auto link = fabric_->link_named(each.at)) return narrow(each, *link);
        const auto within = inside_.named(each.at);
        if (!within) refuse(each, "a link such as '" + fabric_->name(LinkId{0}) + "'");
        return narrow(each, LinkId{static_cast<std::uint32_t>(*within)});
      }
      case PerturbedPart::packet_switch: {
        const auto found = fabric_->switch_named(each.at);
        if (!found) refuse(each, "a switch such as '" + a_switch() + "'");
        for (const LinkId link : fabric_->links_of(*found)) narrow(each, link);
      }
    }
  }

  std::string a_switch() const { return fabric_->name(fabric_->topology().links().at(0).to); }

  /// The node and the GPU of it that are slow; of a whole node GPU 0.
  std::pair<std::int64_t, std::int64_t> slow_part(const Perturbation& each) const {
    const std::int64_t gpus = cluster_.node.gpus, all = cluster_.nodes * gpus;
    if (each.kind == PerturbedPart::node) {
      const std::vector<std::int64_t> found = numbers_in(each.at, {"node"});
      if (!found.empty() && found[0] < cluster_.nodes) return {found[0], 0};
      refuse(each, fmt::format("a node from 0 to {0}, or node0 to node{0}", cluster_.nodes - 1));
    }
    const std::vector<std::int64_t> number = numbers_in(each.at, {"gpu"});
    if (!number.empty() && number[0] < all) return {number[0] / gpus, number[0] % gpus};
    const std::vector<std::int64_t> found = numbers_in(each.at, {"node", "/", "gpu"});
    if (!found.empty() && found[0] < cluster_.nodes && found[1] < gpus) {
      return {found[0], found[1]};
    }
    refuse(each, fmt::format("a GPU from 0 to {}, or node0/gpu0 to node{}/gpu{}", all - 1,
                             cluster_.nodes - 1, gpus - 1));
  }

  void slow(const Perturbation& each) {
    const bool whole = each.kind == PerturbedPart::node;
    const std::pair<std::int64_t, std::int64_t> part = slow_part(each);
    const std::int64_t node = part.first, gpu = part.second;
    const auto slow_ranks = [&](const RankPlacement& placement, std::vector<double>& speeds) {
      speeds.resize(placement.devices.size(), 1);
      for (std::size_t r = 0; r < speeds.size(); ++r) {
        const bool there = placement.node(r) == node && (whole || placement.gpu(r) == gpu);
        if (there) speeds[r] *= each.rate;
      }
    };
    slow_ranks(site_.placement, site_.speeds);
    for (ConcurrentJob& job : site_.others) slow_ranks(job.placement, job.speeds);
  }

  void narrow(const Perturbation& each, LinkId link) {
    site_.rails_alike = false;
    Bandwidth& whole = site_.links[index(link)];
    const Bandwidth less{std::max(1.0, whole.count() * each.rate)};
    const auto id = static_cast<std::uint32_t>(index(link));
    if (each.to) site_.changes.push_back({id, *each.to, whole});
    if (each.from > Time{}) {
      site_.changes.push_back({id, each.from, less});
    } else {
      whole = less;
    }
  }

  const Question& question_;
  const hardware::Cluster& cluster_;
  std::shared_ptr<const FabricGraph> fabric_;
  InsideLinks inside_;
  NetworkSite site_;
  std::vector<std::string> owner_of_node_;  // empty: free
};

}  // namespace

std::int64_t free_gpus(const hardware::Cluster& cluster, const NetworkRequest& network) {
  std::int64_t nodes = cluster.nodes;
  if (!network.order.nodes.empty()) {
    nodes = std::min<std::int64_t>(nodes, std::ssize(network.order.nodes));
  } else {
    for (const JobRequest& job : network.jobs) nodes -= std::ssize(job.nodes);
  }
  return std::max<std::int64_t>(0, nodes) * cluster.node.gpus;
}

NetworkSite site_of(const Question& question, std::shared_ptr<const FabricGraph> fabric) {
  return SiteMaker{question, std::move(fabric)}.run();
}

}  // namespace orrery::models

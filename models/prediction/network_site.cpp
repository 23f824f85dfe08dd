#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <memory>
#include <random>

#include "models/network/fabric/fabric_graph.hpp"
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

/// Fisher and Yates: the same order everywhere.
std::vector<std::int64_t> shuffled(std::int64_t nodes, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(nodes));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::mt19937_64 random{seed};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

class SiteMaker {
 public:
  SiteMaker(const Question& question, std::shared_ptr<const FabricGraph> fabric)
      : question_{question}, cluster_{question.cluster}, fabric_{std::move(fabric)} {}

  NetworkSite run() {
    add_links();
    place();
    for (const Perturbation& each : question_.network.perturbations) perturb(each);
    return std::move(site_);
  }

 private:
  void add_links() {
    for (std::uint32_t link = 0; link < fabric_->links(); ++link) {
      site_.links.push_back(fabric_->capacity(LinkId{link}));
    }
    site_.ports_per_node = static_cast<std::uint32_t>(cluster_.node.nics);
    site_.port = cluster_.nic_bandwidth();
    site_.rails_alike = fabric_->rails_alike();
    for (const std::vector<int>& each : cluster_.node.gpu_nics) {
      if (!each.empty()) site_.nearest.push_back(static_cast<std::uint32_t>(each.front()));
    }
    if (site_.nearest.size() != static_cast<std::size_t>(cluster_.node.gpus)) site_.nearest.clear();
    // On rails what goes to another rail crosses NVLink first and leaves by that rail's NIC.
    const bool by_rail = hardware::has_rails(cluster_.fabric.kind) && cluster_.fabric.pxn;
    const std::size_t nics = site_.ports_per_node;
    site_.by_rail = by_rail;
    site_.route = [fabric = fabric_, by_rail, nics](std::size_t from, std::size_t to,
                                                    std::uint64_t flow, Route& route) {
      const std::size_t out = by_rail ? from - from % nics + to % nics : from;
      fabric->route({.from = out, .to = to, .flow = flow}, route);
    };
  }

  void place() {
    const std::int64_t gpus = cluster_.node.gpus, ranks = question_.plan.gpus();
    const std::int64_t used = (ranks + gpus - 1) / gpus;
    std::vector<std::int64_t> order = question_.network.order.nodes;
    if (question_.network.order.scattered) {
      order = shuffled(cluster_.nodes, *question_.network.order.scattered);
    }
    check(order, used);
    site_.placement = contiguous(static_cast<std::size_t>(ranks), static_cast<std::uint32_t>(gpus));
    if (order.empty()) return;
    for (std::uint32_t& device : site_.placement.devices) {
      const auto node = static_cast<std::size_t>(device / gpus);
      device = static_cast<std::uint32_t>(order[node] * gpus + device % gpus);
    }
  }

  void check(const std::vector<std::int64_t>& order, std::int64_t used) const {
    if (order.empty()) return;
    if (std::ssize(order) < used) {
      throw InputError{"/placement",
                       fmt::format("{} nodes for a plan that needs {}", order.size(), used)};
    }
    std::vector<char> taken(static_cast<std::size_t>(cluster_.nodes), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::string pointer = fmt::format("/placement/{}", i);
      if (order[i] < 0 || order[i] >= cluster_.nodes) {
        throw InputError{pointer, fmt::format("expected a node from 0 to {}, found {}",
                                              cluster_.nodes - 1, order[i])};
      }
      if (taken[static_cast<std::size_t>(order[i])]++ > 0) {
        throw InputError{pointer, fmt::format("node {} is taken twice", order[i])};
      }
    }
  }

  [[noreturn]] void refuse(const Perturbation& each, std::string_view accepted) const {
    throw InputError{each.pointer + "/at",
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
        const auto link = fabric_->link_named(each.at);
        if (!link) refuse(each, "a link such as '" + fabric_->name(LinkId{0}) + "'");
        return narrow(each, *link);
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
    const auto [node, gpu] = slow_part(each);
    const std::vector<std::uint32_t>& devices = site_.placement.devices;
    site_.speeds.resize(devices.size(), 1);
    for (std::size_t r = 0; r < devices.size(); ++r) {
      const bool there =
          site_.placement.node(r) == node && (whole || site_.placement.gpu(r) == gpu);
      if (there) site_.speeds[r] *= each.rate;
    }
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
  NetworkSite site_;
};

}  // namespace

NetworkSite site_of(const Question& question, std::shared_ptr<const FabricGraph> fabric) {
  return SiteMaker{question, std::move(fabric)}.run();
}

}  // namespace orrery::models

#include "tests/models/evaluation/traffic/random_site.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>

#include "models/network/fabric/fabric_graph.hpp"
#include "models/network/fabric/inside_links.hpp"
#include "tests/models/evaluation/random_program.hpp"

namespace orrery::models {
namespace {

class WorldMaker {
 public:
  explicit WorldMaker(std::uint64_t seed) : random_{seed} {
    experts_ = seed % 5 == 0;
    world_.made = experts_ ? random_program_with_experts(seed) : random_program(seed);
    if (seed % 3 == 1) add_others(seed);
  }

  NetworkWorld make() {
    if (!experts_ && percent(25)) add_all_to_alls();
    split_ = world_.made.program->mesh.degree(MeshAxis::tensor) > 1 && percent(15);
    find_met();
    straighten();
    place();
    build();
    price();
    prepare_others();
    perturb();
    return std::move(world_);
  }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::int64_t from(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool percent(std::int64_t chance) { return below(100) < chance; }

  /// One or two more jobs; mostly of tensor groups as large, so that rails may be alike.
  void add_others(std::uint64_t seed) {
    const auto tensor = [](const Case& job) { return job.program->mesh.degree(MeshAxis::tensor); };
    for (std::int64_t jobs = from(1, 2); jobs > 0; --jobs) {
      Case other = random_program(seed + 1'000'003);
      for (int tries = 0; tries < 12 && tensor(other) != tensor(world_.made); ++tries) {
        other = random_program(random_() % 1'000'000'000);
      }
      world_.others.push_back(std::move(other));
    }
  }

  /// What was done for ours, for each of the others.
  void prepare_others() {
    const std::int64_t gpus = site_.placement.gpus_per_node;
    for (std::size_t i = 0; i < world_.others.size(); ++i) {
      std::swap(world_.made, world_.others[i]);
      met_in_.reset();
      all_to_alls_.reset();
      experts_ = false;
      if (percent(25)) add_all_to_alls();
      split_ = gpus % world_.made.program->mesh.degree(MeshAxis::tensor) != 0;
      find_met();
      straighten();
      price();
      std::swap(world_.made, world_.others[i]);
      // The oracle is naive: a few steps of it during ours.
      PricedProgram& priced = world_.others[i].priced;
      const Time ours = evaluate_maps(world_.made.priced).step;
      for (int slower = 0; slower < 12 && evaluate_maps(priced).step * 3 < ours; ++slower) {
        priced = at_speed(priced, 0.5);
      }
      site_.others[i].priced = &world_.others[i].priced;
      if (percent(80)) continue;
      site_.others[i].speeds.assign(site_.others[i].placement.devices.size(), 1);
      site_.others[i].speeds.back() = 0.5;
    }
  }

  /// Collectives along the data axis inside blocks, as all-to-alls of experts are.
  void add_all_to_alls() {
    Program& program = *world_.made.program;
    if (program.mesh.degree(MeshAxis::data) == 1) return;
    Communicator along = program.communicators[data_group];
    along.role = CommunicatorRole::model;
    along.lane = Lane::tensor;
    const auto group = static_cast<std::uint16_t>(program.communicators.size());
    program.communicators.push_back(along);
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      for (Operation& op : program.blocks[b].operations) {
        if (op.kind == OpKind::collective || op.queue == Lane::host || percent(50)) continue;
        op.kind = OpKind::collective;
        op.mutable_collective() = Collective::all_to_all;
        op.mutable_communicator() = group;
        op.queue = Lane::tensor;
      }
    }
    all_to_alls_ = group;
  }

  void find_met() {
    const Program& program = *world_.made.program;
    if (!split_ && !all_to_alls_ && !experts_) return;
    for (std::size_t c = 0; c < program.communicators.size() && !met_in_; ++c) {
      const AxisSet axes = program.communicators[c].axes;
      const auto group = static_cast<std::uint16_t>(c);
      const bool within = group == tensor_group || group > tie_group;
      if (within && program.mesh.degree(axes) > 1) met_in_ = group;
    }
  }

  /// Blocks as lowering makes them: nothing on comm:dp, and what a block makes comes after its
  /// input and after all its operations.
  void straighten() {
    Program& program = *world_.made.program;
    bool waits = false;  // some host anywhere: then it waits for what each block makes
    for (const Block& block : program.blocks) {
      for (const Operation& op : block.operations) {
        waits = waits || op.host_waits || op.queue == Lane::host;
      }
    }
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      Block& block = program.blocks[b];
      for (Operation& op : block.operations) {
        if (op.queue == Lane::data) op.queue = Lane::copy;
        if (op.kind == OpKind::collective) op.queue = Lane::tensor;
      }
      for (Operation& op : block.operations) op.after.push_back(block_input);
      close(block, waits);
      std::vector<PricedOperation>& prices = world_.made.priced.blocks[b];
      while (prices.size() < block.operations.size()) {
        prices.push_back({Time{below(3) * 100}, Time{below(2000)}});
      }
    }
    for (Phase& phase : program.phases) {
      if (phase.invocations.empty()) phase.invocations.push_back({0, -1, 1});
    }
  }

  /// A kernel that waits for all, the tensor group where the block has met it, a kernel.
  void close(Block& block, bool waits) const {
    std::vector<OpId> all{block_input};
    bool met = met_in_.has_value();  // no phase without one, as lowering has them
    for (OpId i = 0; i < block.operations.size(); ++i) {
      all.push_back(i);
      met = met || block.operations[i].kind == OpKind::collective;
    }
    const auto add = [&](Lane queue, std::vector<OpId> after) {
      block.operations.push_back(operation_on(queue, std::move(after), true));
      block.operations.back().host_waits = waits;
      return static_cast<OpId>(block.operations.size() - 1);
    };
    OpId last = add(Lane::compute, all);
    if (!met) return;
    last = add(Lane::tensor, {last});
    block.operations.back().kind = OpKind::collective;
    block.operations.back().mutable_communicator() = met_in_.value_or(tensor_group);
    add(Lane::compute, {last});
  }

  void place() {
    const Mesh& mesh = world_.made.program->mesh;
    const auto tensor = static_cast<std::uint32_t>(mesh.degree(MeshAxis::tensor));
    const auto ranks = static_cast<std::size_t>(mesh.ranks());
    whole_rails_ = tensor > 1 && !split_ && percent(35);  // a rail for each rank of a tensor group
    const std::int64_t groups = whole_rails_ ? 1 : from(1, 4);
    const auto whole = tensor * static_cast<std::uint32_t>(groups);
    site_.placement = contiguous(ranks, split_ ? std::max(1U, tensor - 1) : whole);
    const std::uint32_t gpus = site_.placement.gpus_per_node;
    nodes_ = (ranks + gpus - 1) / gpus;
    for (const Case& other : world_.others) {
      ConcurrentJob& job = site_.others.emplace_back();
      job.placement = contiguous(static_cast<std::size_t>(other.program->mesh.ranks()), gpus);
      for (std::uint32_t& device : job.placement.devices) {
        device += static_cast<std::uint32_t>(nodes_) * gpus;
      }
      nodes_ += (job.placement.devices.size() + gpus - 1) / gpus;
    }
    nodes_ += static_cast<std::size_t>(below(4));
    const bool every = whole_rails_ || percent(40);
    site_.ports_per_node = every ? gpus : static_cast<std::uint32_t>(from(1, gpus));
    if (percent(40)) return;
    std::vector<std::uint32_t> order(nodes_);
    for (std::uint32_t i = 0; i < nodes_; ++i) order[i] = i;
    for (std::size_t i = nodes_; i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
    const auto shuffle = [&](RankPlacement& placement) {
      for (std::uint32_t& device : placement.devices) {
        device = order[device / gpus] * gpus + device % gpus;
      }
    };
    shuffle(site_.placement);
    for (ConcurrentJob& each : site_.others) shuffle(each.placement);
  }

  void build() {
    site_.port = Bandwidth{1e9 * static_cast<double>(from(1, 50))};
    hardware::Cluster cluster;
    cluster.nodes = static_cast<int>(nodes_);
    cluster.node.nics = static_cast<int>(site_.ports_per_node);
    cluster.node.nic_bandwidth = site_.port;
    hardware::ClusterFabric& fabric = cluster.fabric;
    fabric.kind = whole_rails_ || percent(35) ? hardware::FabricKind::rail_optimised
                                              : hardware::FabricKind::fat_tree;
    fabric.nodes_per_leaf = static_cast<int>(from(1, 4));
    fabric.oversubscription = static_cast<double>(from(1, 4)) / (percent(20) ? 2 : 1);
    fabric.tree.levels = percent(35) ? 3 : 2;
    fabric.tree.leaves_per_pod = static_cast<int>(from(1, 3));
    if (percent(35)) {
      fabric.routing = percent(50) ? hardware::Routing::spray : hardware::Routing::ecmp;
    }
    const auto graph = std::make_shared<const FabricGraph>(cluster);
    site_.rails_alike = graph->rails_alike();
    for (std::uint32_t link = 0; link < graph->links(); ++link) {
      site_.links.push_back(graph->capacity(LinkId{link}));
    }
    if (percent(25)) cable_nodes(cluster, graph->links());
    site_.route = [graph](std::size_t out, std::size_t in, std::uint64_t flow, Route& route) {
      graph->route({.from = out, .to = in, .flow = flow}, route);
    };
  }

  /// Two GPUs on each PCIe switch, NICs on any, all switches on one socket.
  void cable_nodes(hardware::Cluster& cluster, std::size_t links) {
    const auto lanes = [&] { return site_.port * (static_cast<double>(from(1, 8)) / 4); };
    const Bandwidth of_gpus = lanes(), of_switches = lanes(), of_nics = lanes();
    cluster.node.gpus = static_cast<int>(site_.placement.gpus_per_node);
    const auto bridge = [](std::int64_t number) { return "pcie" + std::to_string(number); };
    const std::int64_t switches = (cluster.node.gpus + 1) / 2;
    std::vector<hardware::NodeCable>& cables = cluster.node.cables;
    for (int gpu = 0; gpu < cluster.node.gpus; ++gpu) {
      cables.push_back({"gpu" + std::to_string(gpu), bridge(gpu / 2), of_gpus});
    }
    for (std::int64_t each = 0; each < switches; ++each) {
      cables.push_back({bridge(each), "cpu0", of_switches});
    }
    for (int nic = 0; nic < cluster.node.nics; ++nic) {
      cables.push_back({"nic" + std::to_string(nic), bridge(below(switches)), of_nics});
    }
    const InsideLinks inside{cluster, links};
    for (std::size_t link = links; link < links + inside.links(); ++link) {
      site_.links.push_back(inside.capacity(link));
    }
    site_.inside = inside.paths();
  }

  LinkTimes split(Time whole, Time& fluid) {
    fluid = percent(15) ? Time{} : Time{whole.count() * from(1, 4) / 4};
    const bool inside = percent(20);
    return {.nic = inside ? Time{fluid.count() / 2} : fluid, .nvlink = inside ? fluid : Time{}};
  }

  void price() {
    PricedProgram& priced = world_.made.priced;
    for (std::size_t c = 0; c < priced.channels.size(); ++c) {
      Time fluid{};
      priced.channels[c] += Time{below(3) * 1500};
      priced.channel_links.push_back(split(priced.channels[c], fluid));
    }
    for (PricedOperation& each : priced.collectives) price_one(each, TrafficPattern::ring);
    for (std::size_t b = 0; b < priced.blocks.size(); ++b) {
      for (std::size_t i = 0; i < priced.blocks[b].size(); ++i) {
        const Operation& op = world_.made.program->blocks[b].operations[i];
        if (op.kind != OpKind::collective) continue;
        const bool pairs = op.communicator() > tie_group;
        price_one(priced.blocks[b][i], pairs ? TrafficPattern::all_pairs : TrafficPattern::ring);
      }
    }
    if (percent(50)) priced.channel_flows.assign(priced.channels.size(), 1);
    for (int& flows : priced.channel_flows) flows = static_cast<int>(from(1, 4));
    priced.bound = {};
  }

  void price_one(PricedOperation& each, TrafficPattern usual) {
    each.duration += Time{below(3) * 2500};
    each.links = split(each.duration, each.fluid);
    if (each.links.nic == Time{}) each.fluid = Time{};
    each.pattern = usual == TrafficPattern::ring && percent(30) ? TrafficPattern::tree : usual;
    if (percent(50)) each.flows = static_cast<int>(from(1, 4));
  }

  void perturb() {
    if (percent(25)) {
      site_.speeds.assign(site_.placement.devices.size(), 1);
      const std::int64_t slow = from(1, 3);
      for (std::int64_t i = 0; i < slow; ++i) {
        site_.speeds[static_cast<std::size_t>(below(std::ssize(site_.speeds)))] = 0.5;
      }
    }
    const auto any_link = [&] { return static_cast<std::size_t>(below(std::ssize(site_.links))); };
    for (std::int64_t i = percent(30) ? from(1, 3) : 0; i > 0; --i) {
      site_.links[any_link()] = site_.port * (0.25 * static_cast<double>(from(1, 3)));
      site_.rails_alike = false;
    }
    for (std::int64_t i = percent(25) ? from(1, 4) : 0; i > 0; --i) {
      const std::size_t link = any_link();
      site_.changes.push_back({static_cast<std::uint32_t>(link), Time{from(1, 60000)},
                               site_.port * (0.25 * static_cast<double>(from(1, 5)))});
    }
    world_.site = site_;
  }

  std::mt19937_64 random_;
  NetworkWorld world_;
  NetworkSite site_;
  std::size_t nodes_ = 1;
  bool whole_rails_ = false;
  bool split_ = false;  // tensor groups across nodes
  bool experts_ = false;
  std::optional<std::uint16_t> met_in_;  // by every block, where groups span nodes inside blocks
  std::optional<std::uint16_t> all_to_alls_;  // their communicator
};

}  // namespace

NetworkWorld random_world(std::uint64_t seed) {
  return WorldMaker{seed}.make();
}

}  // namespace orrery::models

// Reads NCCL's topology XML. `system` contains sockets (`cpu`), these contain nested PCIe bridges
// and devices (`pci`), and these a `gpu` with its `nvlink` or `xgmi`, or a `nic` with its `net`.
// Files that a provider ships have no `gpu` and `nic`: devices are then identified by PCI class.
// Source  NCCL 2.2x, src/graph/xml.cc and topo.cc, src/graph/topo.h for the rates of links; AMD's
//         dialect (version 2): RCCL, tools/topo_expl/models

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "hardware/node_import/nccl_elements.hpp"
#include "hardware/node_import/node_parts.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::hardware {

namespace {

using Tree = XmlTree;

bool has_prefix(const std::string& text, std::initializer_list<std::string_view> heads) {
  return std::ranges::any_of(heads,
                             [&](std::string_view head) { return text.rfind(head, 0) == 0; });
}

/// A GPU or NIC with its path up to its socket: the PCIe bridges, nearest first, then the socket.
struct PciDevice {
  const Tree* pci = nullptr;
  const Tree* element = nullptr;  // `gpu`; null where only the class is known
  std::string busid;
  std::vector<std::string> way;
  Bandwidth speed{};  // of a NIC's port; 0: not known
};

constexpr Bandwidth usual_pcie = 12_GBps;  // NCCL's PCI_BW, of generation 3 with 16 lanes

class NcclXml {
 public:
  NcclXml(const Tree& system, const std::string& name) : name_{name} {
    listed_ = has(system, "gpu");
    for (const auto& [tag, child] : system) {
      if (tag == "cpu") add_socket(child);
    }
    if (listed_) sort_by_number();
  }

  NodeParts parts() {
    NodeParts parts{.gpus = static_cast<int>(gpus_.size()), .nics = static_cast<int>(nics_.size())};
    parts.source = "NCCL topology XML";
    parts.cable_source = "NCCL topology XML; rates of links as in NCCL's src/graph/topo.h, topo.cc";
    parts.cables = std::move(cables_);
    add_leaves("gpu", gpus_, parts);
    add_leaves("nic", nics_, parts);
    add_scale_up(parts);
    add_distances(parts);
    add_rates(parts);
    return parts;
  }

 private:
  static bool has(const Tree& tree, const std::string& tag) {
    return std::ranges::any_of(
        tree, [&](const auto& child) { return child.first == tag || has(child.second, tag); });
  }

  void add_socket(const Tree& cpu) {
    const std::string socket = fmt::format("cpu{}", sockets_.size());
    for (const std::string& other : sockets_) {
      cables_.push_back({other, socket, socket_rate(cpu)});
    }
    sockets_.push_back(socket);
    for (const auto& [tag, child] : cpu) {
      if (tag == "pci") add_pci(child, {socket});
      if (tag == "nic") add_nets(nullptr, child, {socket});
    }
  }

  void add_pci(const Tree& pci, const std::vector<std::string>& way) {
    const std::string kind = attribute_of(pci, "class");
    const std::string busid = attribute_of(pci, "busid");
    const auto gpu = pci.find("gpu");
    const auto nic = pci.find("nic");
    if (gpu != pci.not_found()) {
      gpus_.push_back({&pci, &gpu->second, busid, way});
    } else if (nic != pci.not_found()) {
      add_nets(&pci, nic->second, way);
    } else if (pci.count("pci") > 0) {
      std::vector<std::string> below = way;
      below.insert(below.begin(), fmt::format("pcie{}", bridges_++));
      cables_.push_back({below.front(), way.front(), pcie_rate(pci)});
      for (const auto& [tag, child] : pci) {
        if (tag == "pci") add_pci(child, below);
      }
    } else if (!listed_ && has_prefix(kind, {"0x0300", "0x0302", "0x0380", "0x1200"})) {
      gpus_.push_back({&pci, nullptr, busid, way});
    } else if (!listed_ && has_prefix(kind, {"0x0200", "0x0207"})) {
      nics_.push_back({&pci, nullptr, busid, way});
    }
  }

  /// Adds each port as a NIC.
  void add_nets(const Tree* pci, const Tree& nic, const std::vector<std::string>& way) {
    for (const auto& [tag, net] : nic) {
      if (tag != "net") continue;
      constexpr double most_megabits = 1e8;
      double megabits = number_in<double>(attribute_of(net, "speed")).value_or(0);
      if (!(megabits >= 1 && megabits <= most_megabits)) megabits = 0;  // not known
      nics_.push_back({pci, &net, attribute_of(net, "name"), way, Bandwidth{megabits * 1e6 / 8}});
    }
  }

  /// Sorts GPUs by `dev`, which is how ranks of the node are numbered.
  void sort_by_number() {
    const auto number_of = [](const PciDevice& device) {
      return number_in<int>(attribute_of(*device.element, "dev")).value_or(0);
    };
    std::ranges::stable_sort(gpus_, [&](const auto& one, const auto& other) {
      return number_of(one) < number_of(other);
    });
  }

  /// A NIC directly under its socket, as virtual ones are, moves what its port does.
  static Bandwidth rate_at_socket(const PciDevice& nic) {
    return nic.speed.count() > 0 ? nic.speed : usual_pcie;
  }

  static void add_leaves(const char* kind, const std::vector<PciDevice>& devices,
                         NodeParts& parts) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      parts.cables.push_back(
          {fmt::format("{}{}", kind, i), devices[i].way.front(),
           devices[i].pci ? pcie_rate(*devices[i].pci) : rate_at_socket(devices[i])});
    }
  }

  void add_scale_up(NodeParts& parts) const {
    if (!listed_) {
      parts.notes.emplace_back("the file does not state how GPUs are connected");
      return;
    }
    parts.scale_up = gpus_.size() == 1 ? ScaleUp::none : ScaleUp::pcie;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      for (const auto& [tag, link] : *gpus_[g].element) {
        if (tag == "nvlink" || tag == "xgmi") add_gpu_link(g, link, tag == "xgmi", parts);
      }
    }
  }

  void add_gpu_link(std::size_t gpu, const Tree& link, bool xgmi, NodeParts& parts) const {
    constexpr int most_links = 64;
    const int count = number_in<int>(attribute_of(link, "count")).value_or(1);
    if (count < 1 || count > most_links) {
      throw InputError{name_, fmt::format("expected 1 to {} links between two GPUs, found {}",
                                          most_links, count)};
    }
    const Bandwidth rate = gpu_link_rate(*gpus_[gpu].element, xgmi) * static_cast<double>(count);
    const std::string target = attribute_of(link, "target");
    const auto other = std::ranges::find(gpus_, target, &PciDevice::busid);
    const std::string own = fmt::format("gpu{}", gpu);
    if (has_prefix(attribute_of(link, "tclass"), {"0x0680"})) {
      parts.scale_up = ScaleUp::nvswitch;
      add_to_switch(own, rate, parts);
    } else if (other != gpus_.end()) {
      parts.scale_up = xgmi ? ScaleUp::xgmi : ScaleUp::mesh;
      const auto peer = static_cast<std::size_t>(other - gpus_.begin());
      if (gpu < peer) parts.cables.push_back({own, fmt::format("gpu{}", peer), rate});
    }
  }

  /// Counts all NVSwitches of a node as one, because a GPU has links to each of them.
  static void add_to_switch(const std::string& gpu, Bandwidth rate, NodeParts& parts) {
    if (!parts.cables.empty() && parts.cables.back().one == gpu &&
        parts.cables.back().other == "nvswitch") {
      parts.cables.back().bandwidth += rate;
      return;
    }
    parts.cables.push_back({gpu, "nvswitch", rate});
  }

  void add_distances(NodeParts& parts) const {
    for (const PciDevice& gpu : gpus_) {
      std::vector<Distance> row;
      for (const PciDevice& nic : nics_) row.push_back(distance(gpu, nic));
      parts.distances.push_back(std::move(row));
    }
  }

  static Distance distance(const PciDevice& gpu, const PciDevice& nic) {
    if (gpu.way.back() != nic.way.back()) return Distance::sockets;
    for (const std::string& bridge : gpu.way) {
      const auto met = std::ranges::find(nic.way, bridge);
      if (met == nic.way.end()) continue;
      if (bridge == gpu.way.back()) return Distance::host_bridge;
      const bool first = bridge == gpu.way.front() && met == nic.way.begin();
      return first ? Distance::one_switch : Distance::switches;
    }
    return Distance::sockets;
  }

  void add_rates(NodeParts& parts) const {
    const PciDevice* first = gpus_.empty() ? nullptr : &gpus_.front();
    if (first)
      parts.gpu =
          gpu_of_device(attribute_of(*first->pci, "vendor"), attribute_of(*first->pci, "device"));
    if (first && parts.gpu.empty())
      parts.notes.emplace_back("the file does not state the GPU model");
    for (const PciDevice& nic : nics_) {
      if (nic.speed.count() < 1) continue;
      const bool other =
          parts.nic_bandwidth.count() > 0 && nic.speed.count() != parts.nic_bandwidth.count();
      if (other) parts.notes.emplace_back("NICs have different rates; the lowest is used for all");
      parts.nic_bandwidth = other ? std::min(parts.nic_bandwidth, nic.speed) : nic.speed;
    }
    if (!nics_.empty() && parts.nic_bandwidth.count() <= 0) {
      parts.notes.emplace_back("the file does not state the NICs' rate");
    }
  }

  const std::string& name_;
  bool listed_ = false;  // the file has `gpu` elements
  int bridges_ = 0;
  std::vector<std::string> sockets_;
  std::vector<PciDevice> gpus_, nics_;
  std::vector<NodeCable> cables_;
};

}  // namespace

NodeParts read_nccl_xml(std::string_view text, const std::string& name) {
  const Tree tree = xml_tree(text, name);
  if (tree.count("graphs") > 0) {
    throw InputError{name,
                     "is a graph that NCCL chose (NCCL_GRAPH_DUMP_FILE); expected a topology "
                     "(NCCL_TOPO_DUMP_FILE)"};
  }
  const auto system = tree.find("system");
  if (system == tree.not_found()) {
    throw InputError{name, "expected NCCL's topology XML with <system>"};
  }
  return NcclXml{system->second, name}.parts();
}

}  // namespace orrery::hardware

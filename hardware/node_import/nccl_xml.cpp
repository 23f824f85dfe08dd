// NCCL's topology XML. `system` has sockets (`cpu`), these PCIe bridges and devices (`pci`), one
// inside the other, these `gpu` with its `nvlink` or `xgmi`, or `nic` with its `net`. Files that a
// provider ships have no `gpu` and `nic`: then the PCI class says what a device is.
// Source  NCCL 2.2x, src/graph/xml.cc and topo.cc, src/graph/topo.h for the rates of links; AMD's
//         dialect (version 2): RCCL, tools/topo_expl/models

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <charconv>
#include <map>
#include <sstream>

#include "hardware/node_import/node_parts.hpp"
#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

using Tree = boost::property_tree::ptree;

constexpr int most_depth = 64;

/// What a reader that recurses must not meet: tags too deep, a document type with its entities.
class XmlScan {
 public:
  XmlScan(std::string_view text, const std::string& name) : text_{text}, name_{name} {}

  void run() {
    for (at_ = text_.find('<'); at_ < text_.size(); at_ = text_.find('<', at_)) {
      const std::string_view rest = text_.substr(at_);
      if (rest.substr(0, 4) == "<!--") {
        skip_past("-->");
      } else if (rest.substr(0, 2) == "<?") {
        skip_past("?>");
      } else if (rest.substr(0, 2) == "<!") {
        fail("a document type or CDATA, which no topology has");
      } else {
        tag();
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<long>(at_), '\n');
    throw InputError{fmt::format("{}:line {}", name_, line), problem};
  }
  void skip_past(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) fail("a comment that does not end");
    at_ = found + end.size();
  }
  void tag() {
    const bool closes = text_.substr(at_, 2) == "</";
    char quote = 0;
    std::size_t end = at_ + 1;
    for (; end < text_.size() && (quote != 0 || text_[end] != '>'); ++end) {
      const char letter = text_[end];
      if (letter == '<') fail("a tag inside a tag");
      if (quote != 0 && letter == quote) {
        quote = 0;
      } else if (quote == 0 && (letter == '"' || letter == '\'')) {
        quote = letter;
      }
    }
    if (end == text_.size()) fail("a tag that does not end");
    depth_ += closes ? -1 : text_[end - 1] == '/' ? 0 : 1;
    if (depth_ > most_depth) fail(fmt::format("more than {} levels", most_depth));
    at_ = end;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Tree parsed(std::string_view text, const std::string& name) {
  XmlScan{text, name}.run();
  std::istringstream stream{std::string{text}};
  Tree tree;
  try {
    boost::property_tree::read_xml(stream, tree);
  } catch (const boost::property_tree::xml_parser_error& error) {
    throw InputError{fmt::format("{}:line {}", name, error.line()), error.message()};
  }
  return tree;
}

std::string attribute(const Tree& element, const std::string& key) {
  return element.get<std::string>(Tree::path_type{"<xmlattr>|" + key, '|'}, "");
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional{value} : std::nullopt;
}

/// What the link of a PCIe device carries, per direction: by lane, 16 lanes unless it says.
/// Source  NCCL, src/graph/topo.cc, kvDictPciGen: 15 to 480 x 100 Mb/s a lane, eighths over ten
Bandwidth pcie_rate(const Tree& pci) {
  constexpr std::array<std::pair<std::string_view, double>, 6> generations{
      {{"2.5", 15}, {"5", 30}, {"8", 60}, {"16", 120}, {"32", 240}, {"64", 480}}};
  const std::string speed = attribute(pci, "link_speed");
  std::string_view transfers = std::string_view{speed}.substr(0, speed.find(' '));
  if (transfers.size() > 2 && transfers.substr(transfers.size() - 2) == ".0") {
    transfers.remove_suffix(2);
  }
  double lane = 60;
  for (const auto& [text, rate] : generations) {
    if (text == transfers) lane = rate;
  }
  const int width = number<int>(attribute(pci, "link_width")).value_or(0);
  return Bandwidth{lane * (width > 0 && width <= 32 ? width : 16) / 80 * 1e9};
}

/// Between two sockets. Source  NCCL, src/graph/topo.h and topo.cc, ncclTopoGetInterCpuBw
Bandwidth socket_rate(const Tree& cpu) {
  const std::string arch = attribute(cpu, "arch");
  const std::string vendor = attribute(cpu, "vendor");
  if (arch == "ppc64") return 32_GBps;
  if (arch == "arm64") return 6_GBps;
  if (vendor == "AuthenticAMD") return 16_GBps;
  const int model = number<int>(attribute(cpu, "modelid")).value_or(0);
  if (model >= 0xcf) return 40_GBps;
  if (model >= 0x8f) return 22_GBps;
  return model >= 0x55 ? 10_GBps : 6_GBps;
}

/// One NVLink. Source  NCCL, src/graph/topo.h, by compute capability; xGMI: RCCL, the same file
Bandwidth gpu_link_rate(const Tree& gpu, bool xgmi) {
  const int sm = number<int>(attribute(gpu, "sm")).value_or(0);
  const std::string gcn = attribute(gpu, "gcn");
  if (xgmi) return gcn == "gfx942" || gcn == "942" || gcn == "gfx940" ? 48_GBps : 36_GBps;
  if (sm >= 100) return Bandwidth{40.1e9};
  if (sm >= 90) return Bandwidth{20.6e9};
  if (sm == 86) return 12_GBps;
  return sm >= 70 ? 20_GBps : 18_GBps;
}

/// PCI devices of the catalogue's GPUs; half an MI250X is a device and has no entry.
/// Source  the PCI ID repository, pci.ids of 2023-04-10; MI300X: RCCL's topo_8p_940
std::string gpu_of_device(const std::string& vendor, const std::string& device) {
  static const std::map<std::pair<std::string, std::string>, std::string> known = {
      {{"0x10de", "0x1db1"}, "v100-sxm-16gb"},  {{"0x10de", "0x1db5"}, "v100-sxm-32gb"},
      {{"0x10de", "0x20b0"}, "a100-sxm-40gb"},  {{"0x10de", "0x20b2"}, "a100-sxm-80gb"},
      {{"0x10de", "0x20f1"}, "a100-pcie-40gb"}, {{"0x10de", "0x20b5"}, "a100-pcie-80gb"},
      {{"0x10de", "0x2330"}, "h100-sxm-80gb"},  {{"0x10de", "0x2331"}, "h100-pcie-80gb"},
      {{"0x10de", "0x2684"}, "rtx-4090"},       {{"0x1002", "0x74a1"}, "mi300x"}};
  const auto found = known.find({vendor, device});
  return found == known.end() ? std::string{} : found->second;
}

bool has_prefix(const std::string& text, std::initializer_list<std::string_view> heads) {
  return std::any_of(heads.begin(), heads.end(),
                     [&](std::string_view head) { return text.rfind(head, 0) == 0; });
}

/// A GPU or NIC with its way up to its socket: the PCIe bridges, nearest first, then the socket.
struct PciDevice {
  const Tree* pci = nullptr;
  const Tree* element = nullptr;  // `gpu`; null where only the class is known
  std::string busid;
  std::vector<std::string> way;
  Bandwidth speed{};  // of a NIC's port; 0: not known
};

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
    return std::any_of(tree.begin(), tree.end(), [&](const auto& child) {
      return child.first == tag || has(child.second, tag);
    });
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
    const std::string kind = attribute(pci, "class");
    const std::string busid = attribute(pci, "busid");
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

  /// Each port is a NIC.
  void add_nets(const Tree* pci, const Tree& nic, const std::vector<std::string>& way) {
    for (const auto& [tag, net] : nic) {
      if (tag != "net") continue;
      constexpr double most_megabits = 1e8;
      double megabits = number<double>(attribute(net, "speed")).value_or(0);
      if (!(megabits >= 1 && megabits <= most_megabits)) megabits = 0;  // not known
      nics_.push_back({pci, &net, attribute(net, "name"), way, Bandwidth{megabits * 1e6 / 8}});
    }
  }

  /// By `dev`, which is how ranks of the node are numbered.
  void sort_by_number() {
    const auto number_of = [](const PciDevice& device) {
      return number<int>(attribute(*device.element, "dev")).value_or(0);
    };
    std::stable_sort(gpus_.begin(), gpus_.end(), [&](const auto& one, const auto& other) {
      return number_of(one) < number_of(other);
    });
  }

  static void add_leaves(const char* kind, const std::vector<PciDevice>& devices,
                         NodeParts& parts) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (!devices[i].pci) continue;
      parts.cables.push_back(
          {fmt::format("{}{}", kind, i), devices[i].way.front(), pcie_rate(*devices[i].pci)});
    }
  }

  void add_scale_up(NodeParts& parts) const {
    if (!listed_) {
      parts.notes.emplace_back("the file does not say how GPUs reach each other");
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
    const int count = number<int>(attribute(link, "count")).value_or(1);
    if (count < 1 || count > most_links) {
      throw InputError{name_, fmt::format("expected 1 to {} links between two GPUs, found {}",
                                          most_links, count)};
    }
    const Bandwidth rate = gpu_link_rate(*gpus_[gpu].element, xgmi) * static_cast<double>(count);
    const std::string target = attribute(link, "target");
    const auto other = std::find_if(gpus_.begin(), gpus_.end(),
                                    [&](const PciDevice& each) { return each.busid == target; });
    const std::string own = fmt::format("gpu{}", gpu);
    if (has_prefix(attribute(link, "tclass"), {"0x0680"})) {
      parts.scale_up = ScaleUp::nvswitch;
      add_to_switch(own, rate, parts);
    } else if (other != gpus_.end()) {
      parts.scale_up = xgmi ? ScaleUp::xgmi : ScaleUp::mesh;
      const auto peer = static_cast<std::size_t>(other - gpus_.begin());
      if (gpu < peer) parts.cables.push_back({own, fmt::format("gpu{}", peer), rate});
    }
  }

  /// All NVSwitches of a node are one: a GPU has links to each of them.
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
      const auto met = std::find(nic.way.begin(), nic.way.end(), bridge);
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
      parts.gpu = gpu_of_device(attribute(*first->pci, "vendor"), attribute(*first->pci, "device"));
    if (first && parts.gpu.empty()) parts.notes.emplace_back("the file does not say which GPU");
    for (const PciDevice& nic : nics_) {
      if (nic.speed.count() < 1) continue;
      const bool other =
          parts.nic_bandwidth.count() > 0 && nic.speed.count() != parts.nic_bandwidth.count();
      if (other) parts.notes.emplace_back("NICs of several rates: the least is taken for all");
      parts.nic_bandwidth = other ? std::min(parts.nic_bandwidth, nic.speed) : nic.speed;
    }
    if (!nics_.empty() && parts.nic_bandwidth.count() <= 0) {
      parts.notes.emplace_back("the file does not say what a NIC carries");
    }
  }

  const std::string& name_;
  bool listed_ = false;  // GPUs have elements of their own
  int bridges_ = 0;
  std::vector<std::string> sockets_;
  std::vector<PciDevice> gpus_, nics_;
  std::vector<NodeCable> cables_;
};

}  // namespace

NodeParts read_nccl_xml(std::string_view text, const std::string& name) {
  const Tree tree = parsed(text, name);
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

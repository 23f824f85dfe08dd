// Reads the tables of `rocm-smi --showtopo`: for each pair of GPUs a weight, a number of hops and a
// type of link (XGMI or PCIE), then the NUMA node of each GPU. It lists no NIC and no rate. A
// weight of 15 is one XGMI link, a multiple of it a way over other GPUs. Source  ROCm/rocm_smi_lib,
// python_smi_tools/rocm_smi.py, showWeightTopology to showNumaTopology;
//         KFD's io_link weights: 15 an XGMI hop, 20 and more PCIe

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "hardware/node_import/nccl_elements.hpp"
#include "hardware/node_import/node_parts.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::hardware {

namespace {

constexpr std::string_view weights = "Weight between two GPUs";
constexpr std::string_view kinds = "Link Type between two GPUs";
constexpr int hop_weight = 15;
constexpr int most_numa_nodes = 64;

class RocmTables {
 public:
  RocmTables(std::string_view text, const std::string& name) : name_{name} {
    std::size_t number = 0;
    for (const std::string_view line : split(text, '\n')) add(++number, line);
    check();
  }

  NodeParts parts() const {
    NodeParts parts{.gpus = static_cast<int>(columns_.size())};
    parts.source = "rocm-smi --showtopo";
    parts.cable_source =
        "rocm-smi --showtopo; rates not stated there: xGMI by the GPU's generation, 12 GB/s PCIe, "
        "16 GB/s between sockets, RCCL's src/graph/topo.h";
    parts.notes = {
        "rocm-smi states neither the GPU model, nor the rates of links, nor any NIC: state /gpu, "
        "and /nics with /nic_bandwidth, of the node"};
    parts.distances.resize(columns_.size());
    add_links(parts);
    add_sockets(parts);
    return parts;
  }

 private:
  using Rows = std::vector<std::vector<std::string>>;

  [[noreturn]] void fail(std::size_t line, const std::string& problem) const {
    throw InputError{fmt::format("{}:line {}", name_, line), problem};
  }

  void add(std::size_t number, std::string_view line) {
    if (line.starts_with("=")) {
      const bool known = contains(line, weights) || contains(line, kinds);
      table_ = known ? &tables_[contains(line, weights) ? weights : kinds] : nullptr;
      return;
    }
    add_numa(line);
    const std::vector<std::string> cells = cells_of(line);
    if (!table_ || cells.empty() || !is_device(cells.front(), "GPU")) return;
    const bool header = cells.size() > 1 ? is_device(cells[1], "GPU") : table_->empty();
    if (header && table_->empty() && (columns_.empty() || columns_ == cells)) {
      columns_ = cells;
      return;
    }
    if (cells.size() != columns_.size() + 1) {
      fail(number, fmt::format("rocm-smi --showtopo: expected {} columns after {}, found {}",
                               columns_.size(), cells.front(), cells.size() - 1));
    }
    const std::size_t row = table_->size();
    if (row == columns_.size() || cells.front() != columns_[row]) {
      fail(number,
           fmt::format("rocm-smi --showtopo: expected the row of {}, found {}",
                       row == columns_.size() ? "no further GPU" : columns_[row], cells.front()));
    }
    check_row(number, cells, row);
    table_->emplace_back(cells.begin() + 1, cells.end());
  }

  void check_row(std::size_t number, const std::vector<std::string>& cells, std::size_t row) const {
    const auto own = tables_.find(kinds);
    const bool of_kinds = own != tables_.end() && table_ == &own->second;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const std::string& cell = cells[column + 1];
      const bool known = column == row ? cell == "0"
                         : of_kinds    ? cell == "XGMI" || cell == "PCIE"
                                       : number_in<int>(cell).has_value();
      if (known) continue;
      fail(number, fmt::format("rocm-smi --showtopo: expected {} at {}, found '{}'",
                               column == row ? "0"
                               : of_kinds    ? "XGMI or PCIE"
                                             : "a weight",
                               columns_[column], cell));
    }
  }

  /// `GPU[0]          : (Topology) Numa Node: 1`
  void add_numa(std::string_view line) {
    constexpr std::string_view mark = "Numa Node: ";
    const std::size_t at = line.find(mark);
    if (!line.starts_with("GPU[") || at == std::string_view::npos) return;
    const auto gpu = number_in<int>(line.substr(4, line.find(']') - 4));
    const auto node = number_in<int>(trimmed(line.substr(at + mark.size())));
    if (gpu && node && *gpu >= 0 && *node >= 0 && *node < most_numa_nodes) numa_[*gpu] = *node;
  }

  void check() const {
    const auto found = tables_.find(kinds);
    if (found == tables_.end() || columns_.empty()) {
      throw InputError{name_, fmt::format("rocm-smi --showtopo without its table \"{}\"", kinds)};
    }
    for (const auto& [title, rows] : tables_) {
      if (rows.size() == columns_.size()) continue;
      throw InputError{name_, fmt::format("rocm-smi --showtopo is cut off: its table \"{}\" has {} "
                                          "columns but {} rows",
                                          title, columns_.size(), rows.size())};
    }
  }

  bool linked(std::size_t one, std::size_t other) const {
    if (tables_.at(kinds)[one][other] != "XGMI") return false;
    const auto weight = tables_.find(weights);
    if (weight == tables_.end()) return true;
    return number_in<int>(weight->second[one][other]).value_or(hop_weight) <= hop_weight;
  }

  void add_links(NodeParts& parts) const {
    parts.scale_up = parts.gpus == 1 ? ScaleUp::none : ScaleUp::pcie;
    const Bandwidth rate = xgmi_rate("gfx90a");
    for (std::size_t one = 0; one < columns_.size(); ++one) {
      for (std::size_t other = one + 1; other < columns_.size(); ++other) {
        if (!linked(one, other)) continue;
        parts.scale_up = ScaleUp::xgmi;
        parts.gpu_links.push_back({.cable = parts.cables.size(), .count = 1, .xgmi = true});
        parts.cables.push_back({fmt::format("gpu{}", one), fmt::format("gpu{}", other), rate});
      }
    }
    if (parts.gpu_links.empty()) return;
    parts.gpu_note = fmt::format(
        "an XGMI link is {:.0f} GB/s on an MI250X and {:.0f} GB/s on an MI300X: the lower is taken "
        "until the GPU is stated",
        rate.count() / 1e9, xgmi_rate("gfx942").count() / 1e9);
  }

  void add_sockets(NodeParts& parts) const {
    if (numa_.size() != columns_.size()) return;
    std::vector<int> nodes;
    for (const auto& [gpu, node] : numa_) {
      parts.cables.push_back({fmt::format("gpu{}", gpu), fmt::format("cpu{}", node), 12_GBps});
      if (std::ranges::count(nodes, node) == 0) nodes.push_back(node);
    }
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        parts.cables.push_back(
            {fmt::format("cpu{}", nodes[k]), fmt::format("cpu{}", nodes[i]), 16_GBps});
      }
    }
  }

  static bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  }

  const std::string& name_;
  std::vector<std::string> columns_;
  std::map<std::string_view, Rows> tables_;
  Rows* table_ = nullptr;
  std::map<int, int> numa_;  // of each GPU
};

}  // namespace

bool is_rocm_tables(std::string_view text) {
  constexpr std::array titles{kinds, weights, std::string_view{"Hops between two GPUs"}};
  return std::ranges::any_of(
      titles, [&](std::string_view title) { return text.find(title) != std::string_view::npos; });
}

NodeParts read_rocm_tables(std::string_view text, const std::string& name) {
  return RocmTables{text, name}.parts();
}

}  // namespace orrery::hardware

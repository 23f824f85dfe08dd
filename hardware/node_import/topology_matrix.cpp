// Reads the table of `nvidia-smi topo -m`: a row and a column for each GPU and NIC, and how the two
// are joined. X: itself; NV#: that many NVLinks; PIX, PXB, PHB, NODE, SYS: one PCIe bridge,
// several, a host bridge, several of one socket, two sockets.
// Source  the legend that nvidia-smi prints; NCCL, src/graph/topo.h for the rates of links

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "hardware/node_import/nccl_elements.hpp"
#include "hardware/node_import/node_parts.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::hardware {

namespace {

/// As nvidia-smi writes them; NV# is not a distance.
constexpr Words<Distance, 5> distance_words{{{Distance::one_switch, "PIX"},
                                             {Distance::switches, "PXB"},
                                             {Distance::host_bridge, "PHB"},
                                             {Distance::numa_node, "NODE"},
                                             {Distance::sockets, "SYS"}}};
constexpr int most_nvlinks = 18;       // of one GPU: NVLink 4 and 5
constexpr int nvlinks_of_ampere = 12;  // NVLink 3; more links are of a later generation

struct TableLine {
  std::size_t number;
  std::vector<std::string> cells;
};

bool is_gpu(const std::string& cell) {
  return is_device(cell, "GPU");
}
/// Drivers before 520 print a NIC's own name.
bool is_nic(const std::string& cell) {
  return is_device(cell, "NIC") || is_device(cell, "mlx5_") || is_device(cell, "mlx4_");
}

class TopologyMatrix {
 public:
  TopologyMatrix(std::string_view text, const std::string& name) : name_{name} {
    std::size_t number = 0;
    for (const std::string_view line : split(text, '\n')) add({++number, cells_of(line)});
    if (columns_.empty()) throw InputError{name_, "expected the table of `nvidia-smi topo -m`"};
    check_square();
  }

  NodeParts parts() const {
    NodeParts parts{.gpus = count(is_gpu), .nics = count(is_nic)};
    parts.source = "nvidia-smi topo -m";
    parts.cable_source =
        "nvidia-smi topo -m; rates not stated there: NVLink by the GPU's generation, 12 GB/s PCIe, "
        "10 GB/s between sockets, NCCL's src/graph/topo.h";
    parts.notes = {"the table states neither the GPU model nor the rates of links and NICs"};
    add_nvlinks(parts);
    add_pcie(parts);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (!is_gpu(columns_[row])) continue;
      std::vector<Distance> distances;
      for (std::size_t column = 0; column < columns_.size(); ++column) {
        if (is_nic(columns_[column])) distances.push_back(distance(row, column));
      }
      parts.distances.push_back(std::move(distances));
    }
    return parts;
  }

 private:
  using IsDevice = bool (*)(const std::string&);

  [[noreturn]] void fail(std::size_t line, const std::string& problem) const {
    throw InputError{fmt::format("{}:line {}", name_, line), problem};
  }

  void add(const TableLine& line) {
    if (line.cells.empty()) return;
    const bool named = is_gpu(line.cells.front()) || is_nic(line.cells.front());
    if (columns_.empty()) {
      for (const std::string& cell : line.cells) {
        if (named && (is_gpu(cell) || is_nic(cell))) columns_.push_back(cell);
      }
      return;
    }
    if (!named) return;
    if (line.cells.size() <= columns_.size()) {
      fail(line.number, fmt::format("expected {} columns after {}, found {}", columns_.size(),
                                    line.cells.front(), line.cells.size() - 1));
    }
    if (rows_.size() == columns_.size()) fail(line.number, "more rows than columns");
    if (line.cells.front() != columns_[rows_.size()]) {
      fail(line.number, fmt::format("expected the row of {}, found {}", columns_[rows_.size()],
                                    line.cells.front()));
    }
    rows_.push_back(line);
    check_row(line);
  }

  void check_row(const TableLine& line) const {
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const std::string& cell = line.cells[column + 1];
      const bool self = column + 1 == rows_.size();
      const bool known = self ? cell == "X" : links(cell) || value_of(distance_words, cell);
      if (!known) {
        fail(line.number,
             fmt::format("expected {} at {}, found '{}'",
                         self ? "X" : "NV#, PIX, PXB, PHB, NODE or SYS", columns_[column], cell));
      }
    }
  }

  void check_square() const {
    if (rows_.size() < columns_.size()) {
      throw InputError{name_, fmt::format("{} columns but {} rows", columns_.size(), rows_.size())};
    }
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (std::size_t column = 0; column < row; ++column) {
        if (cell(row, column) == cell(column, row)) continue;
        fail(rows_[row].number,
             fmt::format("{} to {} is {}, in the other direction {}", columns_[row],
                         columns_[column], cell(row, column), cell(column, row)));
      }
    }
  }

  /// The number of NVLinks in a cell; nothing if the cell is not NV#.
  static std::optional<int> links(const std::string& cell) {
    if (!is_device(cell, "NV") || cell.size() > 4) return std::nullopt;
    return std::stoi(cell.substr(2));
  }
  const std::string& cell(std::size_t row, std::size_t column) const {
    return rows_[row].cells[column + 1];
  }
  Distance distance(std::size_t row, std::size_t column) const {
    return value_of(distance_words, cell(row, column)).value_or(Distance::one_switch);
  }
  int count(IsDevice is) const { return static_cast<int>(std::ranges::count_if(columns_, is)); }
  /// "gpu3" or "nic0" by its place among its kind.
  std::string device(std::size_t column) const {
    const IsDevice is = is_gpu(columns_[column]) ? is_gpu : is_nic;
    const auto end = columns_.begin() + static_cast<std::ptrdiff_t>(column);
    return fmt::format("{}{}", is_gpu(columns_[column]) ? "gpu" : "nic",
                       std::count_if(columns_.begin(), end, is));
  }

  /// If the links to all peers add up to more than a GPU has, they are the same links, to a switch.
  void add_nvlinks(NodeParts& parts) const {
    parts.scale_up = parts.gpus == 1 ? ScaleUp::none : ScaleUp::pcie;
    note_generations(parts);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      int all = 0, most = 0;
      for (std::size_t column = 0; column < columns_.size(); ++column) {
        const int there = row == column ? 0 : links(cell(row, column)).value_or(0);
        all += there;
        most = std::max(most, there);
      }
      if (all == 0) continue;
      const bool switched = all > most_nvlinks;
      parts.scale_up = switched ? ScaleUp::nvswitch : ScaleUp::mesh;
      if (switched) {
        add_links(parts, device(row), "nvswitch", most);
        continue;
      }
      for (std::size_t column = row + 1; column < columns_.size(); ++column) {
        const int there = links(cell(row, column)).value_or(0);
        if (there > 0) add_links(parts, device(row), device(column), there);
      }
    }
  }

  void add_links(NodeParts& parts, const std::string& one, const std::string& other,
                 int links) const {
    parts.gpu_links.push_back({.cable = parts.cables.size(), .count = links});
    parts.cables.push_back({one, other, assumed_link() * static_cast<double>(links)});
  }

  /// The most NVLinks between two devices.
  int widest() const {
    int most = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (std::size_t column = 0; column < columns_.size(); ++column) {
        if (row != column) most = std::max(most, links(cell(row, column)).value_or(0));
      }
    }
    return most;
  }

  /// The slowest generation that has so many links.
  Bandwidth assumed_link() const { return nvlink_rate(widest() > nvlinks_of_ampere ? 90 : 80); }

  void note_generations(NodeParts& parts) const {
    const int most = widest();
    if (most == 0) return;
    const auto all = [&](int capability) { return nvlink_rate(capability).count() * most / 1e9; };
    const std::string ampere =
        most > nvlinks_of_ampere ? "" : fmt::format("{:.0f} GB/s on an A100, ", all(80));
    parts.gpu_note = fmt::format(
        "NV{} is {}{:.0f} GB/s on an H100 and {:.0f} GB/s on a B200: the lowest is taken until the "
        "GPU is stated",
        most, ampere, all(90), all(100));
  }

  /// Group number of each device: devices within distance `most` of each other share a switch or
  /// socket. An NV# cell hides the PCIe distance of two GPUs: a NIC near both decides, and for
  /// sockets the CPU affinity; GPUs without a common NIC get a switch of their own.
  std::vector<std::size_t> groups_within(Distance most) const {
    std::vector<std::size_t> group(columns_.size());
    std::iota(group.begin(), group.end(), std::size_t{0});
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (std::size_t column = 0; column < row; ++column) {
        const auto far = value_of(distance_words, cell(row, column));
        const bool near = far && *far <= most;
        if (!near && !(most == Distance::numa_node && same_cpus(row, column))) continue;
        const std::size_t merged = std::min(group[row], group[column]);
        const std::size_t gone = std::max(group[row], group[column]);
        std::ranges::replace(group, gone, merged);
      }
    }
    return group;
  }

  /// True if two GPUs have the same CPU affinity, the column after those of the devices.
  bool same_cpus(std::size_t row, std::size_t column) const {
    const std::size_t place = columns_.size() + 1;
    const auto& one = rows_[row].cells;
    const auto& other = rows_[column].cells;
    return one.size() > place && other.size() > place && one[place] == other[place];
  }

  static std::vector<std::size_t> distinct(std::vector<std::size_t> groups) {
    std::ranges::sort(groups);
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return groups;
  }

  void add_pcie(NodeParts& parts) const {
    const auto switches = groups_within(Distance::switches);
    const auto sockets = groups_within(Distance::numa_node);
    const auto switch_names = distinct(switches);
    const auto socket_names = distinct(sockets);
    const auto place = [](const std::vector<std::size_t>& all, std::size_t one) {
      return std::ranges::lower_bound(all, one) - all.begin();
    };
    for (std::size_t s = 0; s < switch_names.size(); ++s) {
      parts.cables.push_back({fmt::format("pcie{}", s),
                              fmt::format("cpu{}", place(socket_names, sockets[switch_names[s]])),
                              12_GBps});
    }
    for (std::size_t d = 0; d < columns_.size(); ++d) {
      parts.cables.push_back(
          {device(d), fmt::format("pcie{}", place(switch_names, switches[d])), 12_GBps});
    }
    for (std::size_t s = 1; s < socket_names.size(); ++s) {
      for (std::size_t other = 0; other < s; ++other) {
        parts.cables.push_back({fmt::format("cpu{}", other), fmt::format("cpu{}", s), 10_GBps});
      }
    }
  }

  const std::string& name_;
  std::vector<std::string> columns_;
  std::vector<TableLine> rows_;
};

}  // namespace

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = std::min(line.size(), line.find('m', i));
    } else if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      if (!cells.back().empty()) cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  if (cells.back().empty()) cells.pop_back();
  return cells;
}

bool is_device(const std::string& cell, std::string_view kind) {
  return cell.size() > kind.size() && cell.rfind(kind, 0) == 0 &&
         std::all_of(cell.begin() + static_cast<std::ptrdiff_t>(kind.size()), cell.end(),
                     [](char letter) { return letter >= '0' && letter <= '9'; });
}

NodeParts read_topology_matrix(std::string_view text, const std::string& name) {
  return TopologyMatrix{text, name}.parts();
}

}  // namespace orrery::hardware

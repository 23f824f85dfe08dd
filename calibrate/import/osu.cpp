// Reads OSU micro-benchmarks: `# OSU MPI Bandwidth Test v7.5`, `# Size Bandwidth (MB/s)
// [Validation]`, then `bytes value`. Collectives print their average latency. MB is 10^6.

#include <fmt/format.h>

#include "calibrate/import/log_lines.hpp"

namespace orrery::calibrate {

namespace {

struct OsuTitle {
  std::string_view words, quantity;
};
/// Matched in order: a title comes before the shorter ones that it contains.
constexpr OsuTitle titles[] = {
    {"Bi-Directional Bandwidth", "send_receive_both_ways"},
    {"Multiple Bandwidth", "send_receive_pairs"},
    {"Bandwidth", "send_receive"},
    {"Reduce_scatter", "reduce_scatter"},
    {"Allreduce", "all_reduce"},
    {"Allgather", "all_gather"},
    {"Alltoall", "all_to_all"},
    {"All-to-All", "all_to_all"},
    {"Broadcast", "broadcast"},
    {"Reduce", "reduce"},
    {"Latency", "send_receive"},
};

std::string quantity_of(std::string_view title, const std::string& place) {
  for (const OsuTitle& known : titles) {
    if (contains(title, known.words)) return std::string{known.quantity};
  }
  throw InputError{place, "unknown OSU benchmark: " + std::string{title}};
}

/// "MB/s" of `# Size      Bandwidth (MB/s)`, "us" of `# Size  Avg Latency(us)`.
std::string_view unit_of(std::string_view header) {
  const auto open = after(header, "(");
  return open ? open->substr(0, open->find(')')) : std::string_view{};
}

Value value_of(double number, std::string_view unit, const std::string& place) {
  if (unit == "us") return microseconds(number);
  if (const auto rate = rate_of(number, unit)) return *rate;
  throw InputError{place, fmt::format("expected a column in MB/s or us, found \"{}\"", unit)};
}

}  // namespace

Imported read_osu(const std::vector<LogLine>& lines, const std::string& file) {
  Imported imported;
  imported.file = file;
  std::string quantity, software, device, detail;
  std::string_view unit;
  for (const LogLine& line : lines) {
    const std::string place = place_of(file, line);
    const auto cells = words(line.text);
    if (cells.empty()) continue;
    if (line.text.starts_with("# OSU ")) {
      quantity = quantity_of(line.text, place);
      software = line.text.substr(2);
    } else if (line.text.starts_with("# Size")) {
      unit = unit_of(line.text);
      detail = contains(line.text, "Latency") ? "latency" : "bandwidth";
    } else if (contains(line.text, "Buffer on DEVICE")) {
      device = "GPU memory";
    } else if (cells.front().front() == '#') {
      continue;
    } else if (const auto bytes = to_integer(cells.front()); bytes && cells.size() >= 2) {
      const auto number = to_number(cells[1]);
      if (!number || *number <= 0) {
        throw InputError{place, fmt::format("expected a value above 0, found {}", cells[1])};
      }
      if (cells.back() == "Fail") throw InputError{place, "validation failed: row refused"};
      Sample sample;
      sample.quantity = quantity;
      sample.detail = detail;
      sample.value = value_of(*number, unit, place);
      sample.size = Bytes{*bytes};
      if (quantity.starts_with("send_receive")) sample.ranks = 2;
      sample.device = device;
      sample.software = software;
      sample.place = place;
      imported.samples.push_back(std::move(sample));
    } else {
      imported.unknown.push_back({line.number, std::string{line.text}});
    }
  }
  return imported;
}

}  // namespace orrery::calibrate

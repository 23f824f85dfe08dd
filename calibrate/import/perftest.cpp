// Reads perftest output (ib_write_bw, ib_read_lat ...): a title, `key : value` twice a line, a
// header whose names carry the unit, rows. Bandwidth is in 2^20 bytes/s, which older releases call
// MB/sec and newer ones MiB/sec, or Gb/sec under --report_gbits; latency usec.
// Source  linux-rdma/perftest, src/perftest_parameters.c: format_factor 0x100000 or 125000000

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/import/log_lines.hpp"
#include "sim/input/text.hpp"

namespace orrery::calibrate {

namespace {

/// The name and unit of a column: `BW average[Gb/sec]` is one column of two words.
struct PerftestColumn {
  std::string_view name, unit;
};

std::vector<PerftestColumn> header_columns(std::string_view header) {
  constexpr std::string_view names[] = {"#bytes",  "#iterations", "BW peak", "BW average",
                                        "MsgRate", "t_min",       "t_max",   "t_typical",
                                        "t_avg",   "t_stdev"};
  std::vector<std::pair<std::size_t, PerftestColumn>> found;
  for (const std::string_view name : names) {
    const std::size_t at = header.find(name);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = header.substr(at + name.size());
    const bool bracket = rest.starts_with("[");
    found.push_back({at, {name, bracket ? rest.substr(1, rest.find(']') - 1) : ""}});
  }
  std::ranges::sort(found, [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<PerftestColumn> columns;
  for (auto& each : found) columns.push_back(each.second);
  return columns;
}

/// "RDMA_Write BW Test" -> "rdma_write".
std::string quantity_of_title(std::string_view title) {
  return in_lower_case(words(title).front());
}

/// "mlx5_5" of `Device         : mlx5_5`.
std::string value_behind(std::string_view text, std::string_view key) {
  const auto rest = after(text, key);
  const auto value = rest ? after(*rest, ":") : std::nullopt;
  const auto found = value ? words(*value) : std::vector<std::string_view>{};
  return found.empty() ? std::string{} : std::string{found.front()};
}

Value value_in(double number, const PerftestColumn& column, const std::string& place) {
  if (column.unit == "usec") return microseconds(number);
  if (column.unit == "MB/sec") return *rate_of(number, "MiB/sec");
  if (const auto rate = rate_of(number, column.unit)) return *rate;
  throw InputError{place,
                   fmt::format("expected a column in MB/sec, MiB/sec, Gb/sec or usec, found \"{}\"",
                               column.unit)};
}

class PerftestReader {
 public:
  explicit PerftestReader(const std::string& file) : file_{file} { imported_.file = file; }

  Imported read(const std::vector<LogLine>& lines) {
    for (const LogLine& line : lines) take(line);
    for (Sample& sample : imported_.samples) sample.device = device_;
    return std::move(imported_);
  }

 private:
  void take(const LogLine& line) {
    const std::string_view text = trimmed(line.text);
    const auto cells = words(text);
    if (cells.empty() || text.starts_with("-----")) return;
    if (contains(text, " Test") && (contains(text, " BW ") || contains(text, " Latency "))) {
      quantity_ = quantity_of_title(text);
      both_ways_ = contains(text, "Bidirectional");
    } else if (text.starts_with("#bytes")) {
      columns_ = header_columns(text);
    } else if (contains(text, " : ") || contains(text, "address:") || text.starts_with("GID")) {
      const std::string device = value_behind(text, "Device");
      if (!device.empty()) device_ = device;
    } else if (!columns_.empty() && to_integer(cells.front())) {
      row(line, cells);
    } else {
      imported_.unknown.push_back({line.number, std::string{line.text}});
    }
  }

  void row(const LogLine& line, const std::vector<std::string_view>& cells) {
    const std::string place = place_of(file_, line);
    const auto average = std::ranges::find_if(columns_, [](const PerftestColumn& each) {
      return each.name == "BW average" || each.name == "t_typical";
    });
    const auto number = number_at(average, cells);
    if (average == columns_.end() || !number || *number <= 0) {
      throw InputError{place, "expected a row with an average bandwidth or a typical latency"};
    }
    Sample sample;
    sample.quantity = quantity_;
    sample.detail = average->name == "t_typical" ? "latency"
                    : both_ways_                 ? "bandwidth_both_ways"
                                                 : "bandwidth";
    sample.value = value_in(*number, *average, place);
    sample.size = Bytes{*to_integer(cells.front())};
    sample.ranks = 2;
    sample.count = cells.size() > 1 ? to_integer(cells[1]).value_or(1) : 1;
    sample.software = "perftest";
    sample.place = place;
    check_messages(sample, cells);
    imported_.samples.push_back(std::move(sample));
  }

  using Column = std::vector<PerftestColumn>::const_iterator;
  std::optional<double> number_at(Column column, const std::vector<std::string_view>& cells) const {
    const auto at = static_cast<std::size_t>(column - columns_.begin());
    return at < cells.size() ? to_number(cells[at]) : std::nullopt;
  }

  /// Messages a second times their size must be the rate, or half of it where both directions are
  /// counted; else a note says so. MsgRate is printed in steps of one message a second.
  void check_messages(const Sample& sample, const std::vector<std::string_view>& cells) {
    const auto* rate = std::get_if<Bandwidth>(&sample.value);
    const Column column =
        std::ranges::find(columns_.cbegin(), columns_.cend(), "MsgRate", &PerftestColumn::name);
    const auto millions = number_at(column, cells);
    if (!rate || !millions || *millions <= 0) return;
    const double moved = *millions * 1e6 * static_cast<double>(sample.size->count());
    const double rounding = 0.005 + 1 / (*millions * 1e6);
    const auto agrees = [&](double times) {
      return std::abs(rate->count() / (moved * times) - 1) < rounding;
    };
    if (agrees(1) || agrees(2)) return;
    imported_.notes.push_back(fmt::format("{}: {} does not agree with its MsgRate times {} B, {}",
                                          sample.place, format(sample.value), sample.size->count(),
                                          format(Value{Bandwidth{moved}})));
  }

  const std::string& file_;
  Imported imported_;
  std::vector<PerftestColumn> columns_;
  std::string quantity_ = "rdma", device_;
  bool both_ways_ = false;
};

}  // namespace

Imported read_perftest(const std::vector<LogLine>& lines, const std::string& file) {
  return PerftestReader{file}.read(lines);
}

/// `--out_json`: test_info and results; rates are in MiB/sec unless the file says Gb/sec.
Imported read_perftest_json(const Node& root) {
  Imported imported;
  imported.file = root.file();
  const Node info = root["test_info"], results = root["results"];
  Sample sample;
  sample.quantity = quantity_of_title(info.value_or<std::string>("test", "rdma"));
  sample.device = info.value_or<std::string>("Device", "");
  const bool bits = info.value_or<std::string>("BW_unit", "") == "Gb/sec";
  const double average = results["BW_average"].as<double>();
  if (average <= 0) results["BW_average"].fail_expected("a bandwidth above 0");
  sample.detail = contains(info.value_or<std::string>("test", ""), "Bidirectional")
                      ? "bandwidth_both_ways"
                      : "bandwidth";
  sample.value = *rate_of(average, bits ? "Gb/sec" : "MiB/sec");
  sample.size = Bytes{results["MsgSize"].integer(1, std::int64_t{1} << 40)};
  sample.count = results["n_iterations"].integer(0, std::int64_t{1} << 60);
  sample.ranks = 2;
  sample.software = "perftest";
  sample.place = results.place();
  imported.samples.push_back(std::move(sample));
  return imported;
}

}  // namespace orrery::calibrate

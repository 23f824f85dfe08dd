// Reads BabelStream output, text table or --csv: the best rate of each kernel over arrays of one
// size.

#include <fmt/format.h>

#include "calibrate/import/log_lines.hpp"
#include "sim/input/csv.hpp"

namespace orrery::calibrate {

namespace {

Sample stream_sample(std::string_view kernel, Bandwidth best, const std::string& place) {
  Sample sample;
  sample.quantity = "stream";
  sample.detail = kernel;
  sample.value = best;
  sample.software = "BabelStream";
  sample.place = place;
  return sample;
}

bool stream_kernel(std::string_view word) {
  return word == "Copy" || word == "Mul" || word == "Add" || word == "Triad" || word == "Dot" ||
         word == "Nstream";
}

/// "MB/s" of max_MB_per_sec or of the table's second column, MiB likewise.
std::string_view rate_unit(std::string_view header) {
  const bool binary = contains(header, "MiB");
  const bool giga = contains(header, "GB") || contains(header, "GiB");
  if (giga) return contains(header, "GiB") ? "GiB/s" : "GB/s";
  return binary ? "MiB/s" : "MB/s";
}

void csv_row(const LogLine& line, std::string_view unit, const std::string& file,
             Imported& imported) {
  std::vector<std::string_view> cells;
  for (std::string_view rest = line.text;;) {
    const std::size_t comma = rest.find(',');
    cells.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  const std::string place = place_of(file, line);
  const auto runs = cells.size() == 8 ? to_integer(cells[1]) : std::nullopt;
  const auto elements = cells.size() == 8 ? to_integer(cells[2]) : std::nullopt;
  const auto each = cells.size() == 8 ? to_integer(cells[3]) : std::nullopt;
  const auto rate = cells.size() == 8 ? to_number(cells[4]) : std::nullopt;
  if (!runs || !elements || !each || !rate || *rate <= 0) {
    throw InputError{place, "expected function,num_times,n_elements,sizeof,max rate and 3 times"};
  }
  Sample sample = stream_sample(cells.front(), *rate_of(*rate, unit), place);
  sample.count = *runs;
  sample.size = Bytes{*elements * *each};
  imported.samples.push_back(std::move(sample));
}

}  // namespace

Imported read_babelstream(const std::vector<LogLine>& lines, const std::string& file) {
  Imported imported;
  imported.file = file;
  std::string software = "BabelStream", implementation;
  std::string_view unit = "MB/s";
  bool csv = false, table = false;
  for (const LogLine& line : lines) {
    const auto cells = words(line.text);
    if (cells.empty()) continue;
    if (line.text.starts_with("function,num_times")) {
      csv = true;
      unit = rate_unit(line.text);
    } else if (csv) {
      csv_row(line, unit, file, imported);
    } else if (cells.front() == "Function" && cells.size() > 1) {
      table = true;
      unit = rate_unit(cells[1]);
    } else if (table && stream_kernel(cells.front()) && cells.size() >= 2) {
      const auto rate = to_number(cells[1]);
      if (!rate || *rate <= 0) {
        throw InputError{place_of(file, line), fmt::format("expected a rate, found {}", cells[1])};
      }
      imported.samples.push_back(
          stream_sample(cells.front(), *rate_of(*rate, unit), place_of(file, line)));
    } else if (const auto version = after(line.text, "Version: ")) {
      software = "BabelStream " + std::string{*version};
    } else if (const auto kind = after(line.text, "Implementation: ")) {
      implementation = *kind;
    } else if (!table && (contains(line.text, ": ") || line.text.starts_with("Running") ||
                          line.text == "BabelStream")) {
      continue;  // sizes and precision in words
    } else {
      imported.unknown.push_back({line.number, std::string{line.text}});
    }
  }
  for (Sample& sample : imported.samples) {
    sample.software = implementation.empty() ? software : software + ", " + implementation;
  }
  return imported;
}

}  // namespace orrery::calibrate

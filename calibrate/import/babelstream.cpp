// Reads BabelStream output (GPU-STREAM before 2.0), text table or --csv, and the table of
// McCalpin's STREAM: the best rate of each kernel over arrays of one size. MB are 10^6 bytes in
// both. Source  UoB-HPC/BabelStream, src/main.cpp of v1.0, v3.3, v4.0 and v5.0; STREAM 5.10,
// stream.c

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

/// "Copy" of a row's first word, with STREAM's colon; nothing for another word.
std::optional<std::string_view> stream_kernel(std::string_view word) {
  if (word.ends_with(":")) word.remove_suffix(1);
  for (const char* known : {"Copy", "Mul", "Add", "Triad", "Dot", "Nstream", "Scale"}) {
    if (word == known) return word;
  }
  return std::nullopt;
}

/// "MB/s" of max_MB_per_sec, max_mbytes_per_sec or of the table's second column, MiB likewise.
std::string_view rate_unit(std::string_view column) {
  const std::string header = in_lower_case(column);
  if (contains(header, "gib")) return "GiB/s";
  if (contains(header, "gb")) return "GB/s";
  return contains(header, "mib") ? "MiB/s" : "MB/s";
}

/// "TITAN Xp" of `Using CUDA device TITAN Xp`.
std::optional<std::string_view> used_device(std::string_view text) {
  return text.starts_with("Using ") ? after(text, " device ") : std::nullopt;
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

class StreamReader {
 public:
  explicit StreamReader(const std::string& file) : file_{file} { imported_.file = file; }

  Imported read(const std::vector<LogLine>& lines) {
    for (const LogLine& line : lines) {
      if (!words(line.text).empty()) take(line);
    }
    for (Sample& sample : imported_.samples) {
      sample.software = implementation_.empty() ? software_ : software_ + ", " + implementation_;
      sample.device = device_;
    }
    return std::move(imported_);
  }

 private:
  void take(const LogLine& line) {
    const auto cells = words(line.text);
    if (line.text.starts_with("function,num_times")) {
      csv_ = true;
      unit_ = rate_unit(line.text);
    } else if (csv_) {
      csv_row(line, unit_, file_, imported_);
    } else if (cells.front() == "Function" && cells.size() > 1) {
      table_ = true;
      if (is_stream_header(line.text)) {
        software_ = "STREAM";
      } else {
        unit_ = rate_unit(cells[1]);
      }
    } else if (table_ && stream_kernel(cells.front()) && cells.size() >= 2) {
      row(line, cells);
    } else if (!describe(line.text)) {
      imported_.unknown.push_back({line.number, std::string{line.text}});
    }
  }

  void row(const LogLine& line, const std::vector<std::string_view>& cells) {
    const auto rate = to_number(cells[1]);
    if (!rate || *rate <= 0) {
      throw InputError{place_of(file_, line), fmt::format("expected a rate, found {}", cells[1])};
    }
    imported_.samples.push_back(stream_sample(*stream_kernel(cells.front()), *rate_of(*rate, unit_),
                                              place_of(file_, line)));
  }

  /// True for what is printed around the table: versions, devices, and sizes in words.
  bool describe(std::string_view text) {
    if (const auto version = after(text, "Version: ")) {
      software_ = "BabelStream " + std::string{*version};
    } else if (const auto kind = after(text, "Implementation: ")) {
      implementation_ = *kind;
    } else if (const auto device = used_device(text)) {
      device_ = *device;
    } else {
      return text == "BabelStream" || text == "GPU-STREAM" || text.starts_with("-----") ||
             text.starts_with("STREAM version") || (!table_ && text.starts_with("Running")) ||
             (!table_ && contains(text, ": "));
    }
    return true;
  }

  const std::string& file_;
  Imported imported_;
  std::string software_ = "BabelStream", implementation_, device_;
  std::string_view unit_ = "MB/s";
  bool csv_ = false, table_ = false;
};

}  // namespace

bool is_stream_header(std::string_view line) {
  return line.starts_with("Function") && contains(line, "Rate") && contains(line, "MB/s");
}

Imported read_stream(const std::vector<LogLine>& lines, const std::string& file) {
  return StreamReader{file}.read(lines);
}

}  // namespace orrery::calibrate

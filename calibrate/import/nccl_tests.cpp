// Reads the text output of nccl-tests and rccl-tests: comments, then rows of `size count type redop
// root` and twice `time algbw busbw #wrong`, out of place and in place. With -I each half has four
// more columns (i_min i_max i_p99 i_cv%); old releases say `error` for `#wrong`, lack `root`, or
// print device ids as [0x1b]. The header names the columns.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "calibrate/import/log_lines.hpp"
#include "calibrate/import/nccl_run.hpp"

namespace orrery::calibrate {

namespace {

/// Positions of the columns in a row.
struct Columns {
  std::size_t time[2] = {5, 9};  // out of place, in place
  std::size_t wrong[2] = {8, 12};
  bool counts_errors = true;          // `#wrong`; old `error` is a difference of floats
  std::optional<std::size_t> root{};  // old releases have none
  std::size_t all = 13;
};

/// Reads the header `# size count type redop root time algbw busbw #wrong time ...`.
Columns columns_of(std::string_view header) {
  std::vector<std::string_view> names = words(header);
  if (!names.empty() && names.front() == "#") names.erase(names.begin());
  Columns columns;
  int times = 0, wrongs = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool time = names[i] == "time" || names[i] == "cputime";
    const bool wrong = names[i] == "#wrong" || names[i] == "error";
    if (names[i] == "error") columns.counts_errors = false;
    if (names[i] == "root") columns.root = i;
    if (time && times < 2) columns.time[times++] = i;
    if (wrong && wrongs < 2) columns.wrong[wrongs++] = i;
  }
  columns.all = names.size();
  return columns;
}

class NcclTestsReader {
 public:
  explicit NcclTestsReader(const std::string& file) : file_{file} { imported_.file = file; }

  Imported read(const std::vector<LogLine>& lines) {
    for (const LogLine& line : lines) take(line);
    if (rows_ == 0) throw InputError{file_, "nccl-tests log without a row of results"};
    settle_operation();
    settle_ranks();
    imported_.facts["rows"] = rows_;
    if (empty_rows_ > 0) {
      imported_.notes.push_back(fmt::format("{} rows of size 0 dropped", empty_rows_));
    }
    finish_run(run_, run_place_.empty() ? file_ : run_place_, imported_);
    return std::move(imported_);
  }

 private:
  void take(const LogLine& line) {
    const std::string_view text = line.text;
    const std::vector<std::string_view> cells = words(text);
    if (cells.empty() || cells.front() == "...") return;
    if (cells.front().front() == '#') return comment(line);
    if (to_integer(cells.front()) && cells.size() >= 9) return row(line, cells);
    if (note_program(text) || noise(text)) return;
    imported_.unknown.push_back({line.number, std::string{text}});
  }

  void comment(const LogLine& line) {
    const std::string_view text = line.text;
    if (contains(text, "algbw")) columns_ = columns_of(text);
    if (const auto version = after(text, "nccl-tests version ")) tests_version(*version);
    if (const auto program = after(text, "Collective test starting: ")) {
      run_.operation = nccl_operation(*program).value_or("");
    }
    if (contains(text, " Rank ") && contains(text, " on ")) rank(line);
  }

  /// `2.18.2 nccl-headers=23007 nccl-library=23007`
  void tests_version(std::string_view text) {
    run_.version = fmt::format("nccl-tests {}", words(text).front());
    const auto library = after(text, "nccl-library=");
    const auto code = library ? to_integer(words(*library).front()) : std::nullopt;
    if (code) run_.version += ", " + nccl_version(*code);
  }

  /// `#  Rank  0 Group  0 Pid 4242 on node-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3`
  void rank(const LogLine& line) {
    const auto number = to_integer(words(*after(line.text, "Rank ")).front());
    if (!number) return imported_.unknown.push_back({line.number, std::string{line.text}});
    ++run_.rank_lines;
    run_.highest_rank = std::max(run_.highest_rank, *number);
    if (run_place_.empty()) run_place_ = place_of(file_, line);
    run_.hosts.emplace(words(*after(line.text, " on ")).front());
    const auto device = after(line.text, "] ");
    if (device) run_.devices.emplace(device->substr(0, device->find_last_not_of(' ') + 1));
  }

  void row(const LogLine& line, const std::vector<std::string_view>& cells) {
    const std::string place = place_of(file_, line);
    if (cells.size() < columns_.all) {
      throw InputError{
          place, fmt::format("expected a row of {} columns, found {}", columns_.all, cells.size())};
    }
    ++rows_;
    const Bytes size{*to_integer(cells.front())};
    redop_ = cells[3];
    if (columns_.root) root_ = to_integer(cells[*columns_.root]);
    if (size == Bytes{0}) {
      ++empty_rows_;
      return;
    }
    for (const int half : {0, 1}) {
      const std::size_t at = columns_.time[half];
      if (at + 2 >= cells.size() || cells[at] == "N/A") continue;
      check_results(place, cells[columns_.wrong[half]]);
      const auto time = to_number(cells[at]);
      const auto algorithm = to_number(cells[at + 1]);
      const auto bus = to_number(cells[at + 2]);
      if (!time || !algorithm || !bus || *time <= 0 || *time > 1e12) {
        throw InputError{place, fmt::format("expected a time in us and two bandwidths, found {}, "
                                            "{}, {}",
                                            cells[at], cells[at + 1], cells[at + 2])};
      }
      if (half == 0) bandwidths_.add(*algorithm, *bus);
      largest_bus_ = std::max(largest_bus_, *bus);
      Sample sample;
      sample.detail = half == 0 ? "out_of_place" : "in_place";
      sample.value = microseconds(*time);
      sample.size = size;
      sample.place = place;
      imported_.samples.push_back(std::move(sample));
    }
  }

  void check_results(const std::string& place, std::string_view wrong) const {
    if (wrong == "N/A" || !columns_.counts_errors) return;
    const auto count = to_integer(wrong);
    if (!count) throw InputError{place, fmt::format("expected #wrong, found {}", wrong)};
    if (*count != 0) {
      throw InputError{place, fmt::format("{} wrong results: row refused", *count)};
    }
  }

  /// Takes the collective from a command line that names an nccl-tests program.
  bool note_program(std::string_view text) {
    if (!contains(text, "_perf")) return false;
    for (const std::string_view word : words(text)) {
      const std::string_view program = after(word, "=").value_or(word);
      const auto operation = contains(word, "_perf") ? nccl_operation(program) : std::nullopt;
      if (operation && run_.operation.empty()) run_.operation = *operation;
    }
    return true;
  }

  /// True for lines that launchers and libraries print between the rows; takes versions from them.
  bool noise(std::string_view text) {
    if (const auto version = after(text, "NCCL version ")) {
      if (!run_.version.empty()) run_.version += ", ";
      run_.version += fmt::format("NCCL {}", *version);
      return true;
    }
    if (const auto version = after(text, "rccl-tests: Version ")) {
      run_.version = fmt::format("rccl-tests {}", *version);
      return true;
    }
    return contains(text, "PMIX ERROR") || contains(text, "NCCL INFO") ||
           contains(text, "NCCL WARN");
  }

  /// Determines the collective by the title, the command line, the columns' arithmetic or, for
  /// all-gathers and all-to-alls, which look alike, the file's name.
  void settle_operation() {
    if (!run_.operation.empty()) return;
    if (redop_ != "none" && bandwidths_.ratio() > 0) {
      run_.operation = reduction();
      imported_.notes.push_back(fmt::format("collective not stated; {} assumed from its {}",
                                            run_.operation,
                                            run_.operation == "reduce" ? "root" : "bandwidths"));
      return;
    }
    std::string name = file_.substr(file_.find_last_of('/') + 1);
    std::erase_if(name, [](char c) { return c == '_' || c == '-'; });
    const bool all_to_all = contains(name, "alltoall");
    run_.operation = all_to_all ? "all_to_all" : "all_gather";
    imported_.notes.push_back(
        fmt::format("the log does not name its collective; {} assumed", run_.operation));
  }

  /// A collective that sums: a reduce has a root, and the others' is -1. Its bandwidths are equal,
  /// as those of an all-reduce of two ranks are. Errors  a log without roots whose bandwidths are
  /// equal: InputError
  std::string reduction() const {
    if (root_ && *root_ >= 0) return "reduce";
    if (bandwidths_.ratio() > 1) return "all_reduce";
    if (!bandwidths_.ranks("all_reduce")) return "reduce_scatter";
    if (root_) return "all_reduce";
    throw InputError{
        file_,
        "the log does not name its collective, and bandwidths that are equal are those "
        "of a reduce and of an all_reduce of two ranks; add the command line, "
        "reduce_perf or all_reduce_perf with its flags, as the first line"};
  }

  void settle_ranks() {
    const std::int64_t listed = run_.highest_rank + 1;
    const bool complete = listed > 0 && static_cast<std::int64_t>(run_.rank_lines) == listed;
    const bool measured = largest_bus_ >= 1;
    if (listed > 0 && (!measured || bandwidths_.allows(run_.operation, listed))) {
      run_.ranks = listed;
    } else if (complete && largest_bus_ == 0) {
      run_.ranks = listed;
    } else {
      run_.ranks = bandwidths_.ranks(run_.operation);
      if (run_.ranks) {
        imported_.notes.push_back(
            fmt::format("number of ranks not stated; {} inferred from the ratio of its bandwidths",
                        *run_.ranks));
      }
    }
  }

  const std::string& file_;
  Imported imported_;
  Columns columns_;
  NcclRun run_;
  RanksFromBandwidths bandwidths_;
  std::string run_place_, redop_;
  std::optional<std::int64_t> root_{};
  double largest_bus_ = 0;
  int rows_ = 0, empty_rows_ = 0;
};

}  // namespace

Imported read_nccl_tests(const std::vector<LogLine>& lines, const std::string& file) {
  return NcclTestsReader{file}.read(lines);
}

}  // namespace orrery::calibrate

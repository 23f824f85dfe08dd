// Reads the text output of nccl-tests and rccl-tests: comments, then rows of `size count type redop
// root` and twice `time algbw busbw #wrong`, out of place and in place. With -I each half has four
// more columns (i_min i_max i_p99 i_cv%); old releases say `error` for `#wrong`, lack `redop` or
// `root`, or print device ids as [0x1b]. The header names the columns; a `redop` that a collective
// does not have may be blank. A log may have several runs, each with its own header.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "calibrate/import/log_lines.hpp"
#include "calibrate/import/nccl_run.hpp"

namespace orrery::calibrate {

namespace {

/// Positions of the columns in a row.
struct Columns {
  std::size_t time[2] = {5, 9};  // out of place, in place
  std::size_t wrong[2] = {8, 12};
  bool counts_errors = true;  // `#wrong`; old `error` is a difference of floats
  std::optional<std::size_t> redop{}, root{};
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
    if (names[i] == "redop") columns.redop = i;
    if (names[i] == "root") columns.root = i;
    if (time && times < 2) columns.time[times++] = i;
    if (wrong && wrongs < 2) columns.wrong[wrongs++] = i;
  }
  columns.all = names.size();
  return columns;
}

/// Empty where there is none.
std::string_view first_word(std::string_view text) {
  const std::vector<std::string_view> all = words(text);
  return all.empty() ? std::string_view{} : all.front();
}

bool is_header(const LogLine& line) {
  return line.text.starts_with("#") && contains(line.text, "algbw");
}

bool is_row(const std::vector<std::string_view>& cells) {
  return !cells.empty() && to_integer(cells.front()) && cells.size() >= 9;
}

/// Reads one run: a header with its rows, and what was printed before it.
class NcclTestsReader {
 public:
  explicit NcclTestsReader(const std::string& file) : file_{file} { imported_.file = file; }

  Imported read(std::span<const LogLine> lines) {
    for (const LogLine& line : lines) take(line);
    if (rows_ == 0) throw InputError{file_, "nccl-tests log without a row of results"};
    if (imported_.samples.empty()) return std::move(imported_);  // rows of size 0 only
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
    if (is_row(cells)) return row(line, with_redop(cells));
    if (note_program(text) || noise(text)) return;
    imported_.unknown.push_back({line.number, std::string{text}});
  }

  void comment(const LogLine& line) {
    const std::string_view text = line.text;
    if (is_header(line)) columns_ = columns_of(text);
    if (const auto version = after(text, "nccl-tests version ")) tests_version(*version);
    if (const auto program = after(text, "Collective test starting: ")) {
      if (const auto operation = nccl_operation(*program)) named_ = {*operation};
    }
    if (contains(text, " Rank ") && contains(text, " on ")) rank(line);
  }

  /// `2.18.2 nccl-headers=23007 nccl-library=23007`
  void tests_version(std::string_view text) {
    run_.version = fmt::format("nccl-tests {}", first_word(text));
    const auto library = after(text, "nccl-library=");
    const auto code = library ? to_integer(first_word(*library)) : std::nullopt;
    if (code) run_.version += ", " + nccl_version(*code);
  }

  /// `#  Rank  0 Group  0 Pid 4242 on node-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3`
  void rank(const LogLine& line) {
    const auto number = to_integer(first_word(*after(line.text, "Rank ")));
    if (!number) return imported_.unknown.push_back({line.number, std::string{line.text}});
    ++run_.rank_lines;
    run_.highest_rank = std::max(run_.highest_rank, *number);
    if (run_place_.empty()) run_place_ = place_of(file_, line);
    run_.hosts.emplace(first_word(*after(line.text, " on ")));
    const auto device = after(line.text, "] ");
    if (device) run_.devices.emplace(device->substr(0, device->find_last_not_of(' ') + 1));
  }

  /// A cell of a row; one that a damaged header places beyond it was not printed.
  static std::string_view cell(const std::vector<std::string_view>& cells, std::size_t at) {
    return at < cells.size() ? cells[at] : std::string_view{"N/A"};
  }

  /// A row whose `redop` is blank, with an empty cell there.
  std::vector<std::string_view> with_redop(std::vector<std::string_view> cells) const {
    const auto& at = columns_.redop;
    if (at && cells.size() + 1 == columns_.all && to_number(cell(cells, *at))) {
      cells.insert(cells.begin() + static_cast<std::ptrdiff_t>(*at), std::string_view{});
    }
    return cells;
  }

  void row(const LogLine& line, const std::vector<std::string_view>& cells) {
    const std::string place = place_of(file_, line);
    if (cells.size() < columns_.all) {
      throw InputError{
          place, fmt::format("expected a row of {} columns, found {}", columns_.all, cells.size())};
    }
    ++rows_;
    const Bytes size{*to_integer(cells.front())};
    describe(cells);
    if (size == Bytes{0}) {
      ++empty_rows_;
      return;
    }
    for (const int half : {0, 1}) {
      const std::size_t at = columns_.time[half];
      if (at + 2 >= cells.size() || cells[at] == "N/A") continue;
      check_results(place, cell(cells, columns_.wrong[half]));
      const auto time = to_number(cells[at]);
      const auto algorithm = to_number(cells[at + 1]);
      const auto bus = to_number(cells[at + 2]);
      if (!time || !algorithm || !bus || *time <= 0 || *time > 1e12) {
        throw InputError{place, fmt::format("expected a time in us and two bandwidths, found {}, "
                                            "{}, {}",
                                            cells[at], cells[at + 1], cells[at + 2])};
      }
      if (half == 0) table_.bandwidths.add(*algorithm, *bus);
      largest_bus_ = std::max(largest_bus_, *bus);
      Sample sample;
      sample.detail = half == 0 ? "out_of_place" : "in_place";
      sample.value = microseconds(*time);
      sample.size = size;
      sample.place = place;
      imported_.samples.push_back(std::move(sample));
    }
  }

  /// Takes from a row what tells collectives apart.
  void describe(const std::vector<std::string_view>& cells) {
    table_.has_redop = columns_.redop.has_value();
    table_.has_root = columns_.root.has_value();
    const auto redop = columns_.redop ? cell(cells, *columns_.redop) : std::string_view{};
    table_.reduces = !redop.empty() && redop != "none";
    const auto root = columns_.root ? to_integer(cell(cells, *columns_.root)) : std::nullopt;
    table_.rooted = root && *root >= 0;
    const bool checked = cell(cells, columns_.wrong[0]) != "N/A";
    const bool both_halves = columns_.wrong[1] < columns_.all;  // some scripts keep the first alone
    if (checked && both_halves) table_.checks_in_place = cell(cells, columns_.wrong[1]) != "N/A";
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
      if (operation) named_.push_back(*operation);
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

  /// Determines the collective by the title or the command line, else by the table.
  /// Errors  a table that several collectives print: InputError
  void settle_operation() {
    const std::int64_t listed = run_.highest_rank + 1;
    if (listed > 0) table_.ranks = listed;
    const std::vector<std::string> possible = collectives_of(table_);
    const auto fits = [&](const std::string& each) { return std::ranges::count(possible, each); };
    const auto named = std::ranges::find_if(named_, fits);  // a script may name several programs
    if (!named_.empty()) {
      run_.operation = named == named_.end() ? named_.front() : *named;
    } else if (possible.size() == 1) {
      run_.operation = possible.front();
      imported_.notes.push_back(
          fmt::format("collective not stated; {} recognised by its columns", run_.operation));
    } else {
      run_.operation = assumed_among(possible);
    }
  }

  /// An all-gather and an all-to-all look alike if no results were checked, a gather and a scatter
  /// always do.
  std::string assumed_among(const std::vector<std::string>& possible) {
    using Names = std::vector<std::string>;
    if (possible == Names{"gather", "scatter"}) {
      imported_.notes.push_back(
          "the log does not name its collective; a gather and a scatter look alike");
      return "gather_or_scatter";
    }
    if (possible != Names{"all_gather", "all_to_all"}) refuse_unnamed(possible);
    std::string name = file_.substr(file_.find_last_of('/') + 1);
    std::erase_if(name, [](char c) { return c == '_' || c == '-'; });
    const std::string assumed = contains(name, "alltoall") ? "all_to_all" : "all_gather";
    imported_.notes.push_back(
        fmt::format("the log does not name its collective; {} assumed", assumed));
    return assumed;
  }

  [[noreturn]] void refuse_unnamed(const std::vector<std::string>& possible) const {
    throw InputError{
        file_,
        fmt::format("the log does not name its collective, and its columns fit {}; add the "
                    "command line, such as all_reduce_perf with its flags, as the first "
                    "line",
                    possible.empty() ? "none" : fmt::format("{}", fmt::join(possible, ", ")))};
  }

  void settle_ranks() {
    const std::int64_t listed = run_.highest_rank + 1;
    const bool complete = listed > 0 && static_cast<std::int64_t>(run_.rank_lines) == listed;
    const bool measured = largest_bus_ >= 1;
    const bool fits =
        table_.equal_of_old(run_.operation) || table_.bandwidths.allows(run_.operation, listed);
    if (listed > 0 && (!measured || fits)) {
      run_.ranks = listed;
    } else if (complete && largest_bus_ == 0) {
      run_.ranks = listed;
    } else {
      run_.ranks = table_.bandwidths.ranks(run_.operation);
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
  NcclTable table_;
  std::vector<std::string> named_;  // collectives by their programs, as they were named
  std::string run_place_;
  double largest_bus_ = 0;
  int rows_ = 0, empty_rows_ = 0;
};

/// Cuts a log into its runs: a header after rows begins a new one, with all that was printed since
/// the last row.
std::vector<std::span<const LogLine>> runs_of(const std::vector<LogLine>& lines) {
  std::vector<std::span<const LogLine>> runs;
  std::size_t begin = 0, after_row = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_header(lines[i]) && after_row > begin) {
      runs.push_back(std::span{lines}.subspan(begin, after_row - begin));
      begin = after_row;
    }
    if (is_row(words(lines[i].text))) after_row = i + 1;
  }
  const bool rows = after_row > begin || runs.empty();
  if (rows) runs.push_back(std::span{lines}.subspan(begin));
  return runs;
}

}  // namespace

Imported read_nccl_tests(const std::vector<LogLine>& lines, const std::string& file) {
  const auto runs = runs_of(lines);
  Imported all = NcclTestsReader{file}.read(runs.front());
  if (runs.size() == 1) return all;
  Json facts = Json::array({std::move(all.facts)});
  for (const auto& run : std::span{runs}.subspan(1)) {
    Imported next = NcclTestsReader{file}.read(run);
    std::ranges::move(next.samples, std::back_inserter(all.samples));
    std::ranges::move(next.unknown, std::back_inserter(all.unknown));
    std::ranges::move(next.notes, std::back_inserter(all.notes));
    facts.push_back(std::move(next.facts));
  }
  all.facts = {{"runs", std::move(facts)}};
  return all;
}

}  // namespace orrery::calibrate

#include "sim/input/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/input/printable.hpp"
#include "sim/input/text.hpp"

namespace orrery {
namespace {

constexpr std::size_t largest_table = std::size_t{256} << 20;
constexpr std::size_t most_columns = 1000;
constexpr std::size_t most_rows = 10'000'000;

[[noreturn]] void fail_at(const std::string& name, std::size_t line, const std::string& problem) {
  throw InputError{fmt::format("{}:line {}", name, line), problem};
}

/// Walks over records: cells between commas, up to the end of a line outside quotes.
class Records {
 public:
  Records(std::string_view text, const std::string& name) : text_{text}, name_{name} {}

  std::size_t line() const { return line_; }  // of the record read last

  /// The next record that is not an empty line; false at the end of the text.
  bool next(std::vector<std::string>& cells) {
    while (at_ < text_.size()) {
      cells.clear();
      line_ = next_line_;
      while (!read_cell(cells)) require_few(cells);
      require_few(cells);
      if (cells.size() > 1 || !cells.front().empty()) return true;
    }
    return false;
  }

 private:
  void require_few(const std::vector<std::string>& cells) const {
    if (cells.size() <= most_columns) return;
    fail_at(name_, line_, fmt::format("more than {} columns", most_columns));
  }

  /// Reads one cell and what ends it; true if that was the end of the record.
  bool read_cell(std::vector<std::string>& cells) {
    const std::size_t first = text_.find_first_not_of(" \t", at_);
    if (first != std::string_view::npos && text_[first] == '"') {
      at_ = first + 1;
      cells.push_back(quoted());
    } else {
      const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
      cells.emplace_back(trimmed(text_.substr(at_, end - at_)));
      at_ = end;
    }
    if (at_ == text_.size()) return true;
    const bool ends = text_[at_++] == '\n';
    if (ends) ++next_line_;
    // A comma at the very end of the text still opens one more, empty, cell.
    if (!ends && at_ == text_.size()) {
      cells.emplace_back();
      return true;
    }
    return ends;
  }

  /// After an opening quote: up to the closing one; "" is a quote. Stops at ',' or the line's end.
  std::string quoted() {
    std::string cell;
    for (;; ++at_) {
      if (at_ >= text_.size()) fail_at(name_, line_, "a quoted cell is not closed");
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      }
      if (text_[at_] == '\n') ++next_line_;
      cell += text_[at_];
    }
    at_ = std::min(text_.find_first_not_of(" \t\r", at_ + 1), text_.size());
    if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
      fail_at(name_, next_line_, "text after the closing quote of a cell");
    }
    return std::string{trimmed(cell)};
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t next_line_ = 1;
};

/// The number that all of `text` spells, nothing otherwise. A leading plus is allowed.
template <class T>
std::optional<T> spelled(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return number_in<T>(text);
}

}  // namespace

std::string_view Row::text(std::string_view column) const {
  const auto found = table_->index_of_.find(std::string{column});
  if (found == table_->index_of_.end()) return {};
  const std::string_view cell = table_->cells_[index_ * table_->columns_.size() + found->second];
  if (is_printable(cell)) return cell;
  throw InputError{
      fmt::format("{}: column '{}'", place(), printable(column, 60)),
      fmt::format("expected text without control characters, found \"{}\"", printable(cell, 60))};
}

std::optional<std::int64_t> Row::integer(std::string_view column) const {
  const std::string_view cell = text(column);
  if (cell.empty()) return std::nullopt;
  const auto value = spelled<std::int64_t>(cell);
  if (!value) fail_expected(column, "an integer");
  return value;
}

std::optional<double> Row::number(std::string_view column) const {
  const std::string_view cell = text(column);
  if (cell.empty()) return std::nullopt;
  const auto value = spelled<double>(cell);
  if (!value || !std::isfinite(*value)) fail_expected(column, "a number");
  return value;
}

std::string Row::place() const {
  return fmt::format("{}:line {}", table_->name_, table_->lines_[index_]);
}

void Row::fail_expected(std::string_view column, std::string_view expected) const {
  throw InputError{fmt::format("{}: column '{}'", place(), printable(column, 60)),
                   fmt::format("expected {}, found \"{}\"", expected, printable(text(column), 60))};
}

Table Table::load(const std::string& path) {
  return parse(read_file(path, largest_table), path);
}

Table Table::parse(std::string_view text, const std::string& name) {
  Table table;
  table.name_ = printable(name);
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.substr(0, 3) == byte_order_mark) text.remove_prefix(3);
  if (trimmed(text).empty()) throw InputError{table.name_, "is empty; expected a header line"};
  require_text(text, table.name_);
  Records records{text, table.name_};
  std::vector<std::string> cells;
  records.next(cells);
  table.columns_ = cells;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (cells[column].empty()) {
      fail_at(table.name_, records.line(), fmt::format("column {} has no name", column + 1));
    }
    if (!is_printable(cells[column])) {
      fail_at(table.name_, records.line(),
              fmt::format("the name of column {} has control characters", column + 1));
    }
    if (!table.index_of_.emplace(cells[column], column).second) {
      fail_at(table.name_, records.line(),
              fmt::format("duplicate column '{}'", printable(cells[column], 60)));
    }
  }
  while (records.next(cells)) {
    if (cells.size() != table.columns_.size()) {
      fail_at(table.name_, records.line(),
              fmt::format("expected {} cells as in the header, found {}", table.columns_.size(),
                          cells.size()));
    }
    if (table.lines_.size() == most_rows) {
      throw InputError{table.name_, fmt::format("more than {} rows", most_rows)};
    }
    table.lines_.push_back(records.line());
    table.cells_.insert(table.cells_.end(), cells.begin(), cells.end());
  }
  return table;
}

bool Table::has(std::string_view column) const {
  return index_of_.count(std::string{column}) > 0;
}

void Table::require(std::initializer_list<std::string_view> columns) const {
  for (const std::string_view column : columns) {
    if (has(column)) continue;
    const std::vector<std::string_view> there{columns_.begin(), columns_.end()};
    const std::string_view meant = nearest(column, there);
    throw InputError{name_,
                     fmt::format("column '{}' is missing{}", column,
                                 meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant))};
  }
}

}  // namespace orrery

#pragma once
// Comma-separated tables with a header line (RFC 4180 quoting, LF or CRLF). Limits: 256 MiB,
// 1,000 columns, 10 million rows. A cell knows its line, so a mistake is reported as
// `file:line 3: ...`. Empty lines are skipped; every row has as many cells as the header.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/errors.hpp"

namespace orrery {

class Table;

/// One row of a table; valid while its table lives.
class Row {
 public:
  Row(const Table& table, std::size_t index) : table_{&table}, index_{index} {}

  /// The text of a cell; empty if the column is absent. Blank space around it is dropped.
  std::string_view text(std::string_view column) const;
  /// Nothing if the cell is empty. Errors: `file:line 3: column 'c': expected ..., found
  /// "x"`.
  std::optional<std::int64_t> integer(std::string_view column) const;
  std::optional<double> number(std::string_view column) const;
  /// `file:line 3`.
  std::string place() const;
  /// Throws InputError `file:line 3: column 'c': expected EXPECTED, found "CELL"`.
  [[noreturn]] void fail_expected(std::string_view column, std::string_view expected) const;

 private:
  const Table* table_;
  std::size_t index_;
};

/// A whole table in memory.
class Table {
 public:
  /// Errors: unreadable, empty, binary, ragged rows, a column without name or named twice.
  static Table load(const std::string& path);
  static Table parse(std::string_view text, const std::string& name);

  const std::vector<std::string>& columns() const { return columns_; }
  bool has(std::string_view column) const;
  /// Errors: `file: column 'gpus' is missing; is it 'gpu'?`
  void require(std::initializer_list<std::string_view> columns) const;
  std::size_t size() const { return lines_.size(); }
  Row operator[](std::size_t index) const { return Row{*this, index}; }
  const std::string& name() const { return name_; }

 private:
  friend class Row;
  std::string name_;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, std::size_t> index_of_;
  std::vector<std::string> cells_;  // row-major
  std::vector<std::size_t> lines_;  // line number of each row
};

}  // namespace orrery

#pragma once
// Helpers shared by the readers of measured tables.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/csv.hpp"

namespace orrery::scenarios {

inline std::string cell_text(const Row& row, std::string_view column) {
  return std::string{row.text(column)};
}

/// Column `time_us`, in seconds.
/// Errors  shorter than two clock cycles of a GPU at 2 GHz, or longer than a month
inline std::optional<double> stated_seconds(const Row& row) {
  constexpr double shortest = 1e-3, longest = 2.6e12;
  const auto time = row.number("time_us");
  if (time && !(*time >= shortest && *time <= longest)) {
    row.fail_expected("time_us", "a time from 0.001 us (two clock cycles of a GPU) to 2.6e12 us");
  }
  return time ? std::optional{*time * 1e-6} : std::nullopt;
}

/// Every line of a table of measurements, which are called by column `run` or `id`.
/// Errors  a column that is missing, and those of `read`
template <class Measured>
std::vector<Measured> read_measured(const orrery::Table& table,
                                    std::initializer_list<std::string_view> columns,
                                    Measured (*read)(const Row& row, const char* name)) {
  table.require(columns);
  const char* name = table.has("run") ? "run" : "id";
  table.require({name});
  std::vector<Measured> rows;
  rows.reserve(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) rows.push_back(read(table[i], name));
  return rows;
}

inline bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace orrery::scenarios

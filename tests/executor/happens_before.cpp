#include "tests/executor/happens_before.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace orrery::executor {

void HappensBefore::join(std::size_t lane, const Clock& ended) {
  for (std::size_t i = 0; i < most_lanes; ++i) {
    clocks_[lane][i] = std::max(clocks_[lane][i], ended[i]);
  }
}

void HappensBefore::begin(std::size_t lane) {
  join(lane, clocks_[host]);
  ++clocks_[lane][lane];
}

/// A cell begins here if one lies here at all.
HappensBefore::Cells::iterator HappensBefore::cut(std::uintptr_t at) {
  const auto behind = cells_.lower_bound(at);
  if (behind == cells_.begin()) return behind;
  const auto before = std::prev(behind);
  if (before->second.end <= at) return behind;
  const auto rest = cells_.emplace_hint(behind, at, before->second);
  before->second.end = at;
  return rest;
}

void HappensBefore::touch(Cell& cell, std::size_t lane, std::string_view name, bool writes) {
  const Clock& clock = clocks_[lane];
  const auto missing = [&](std::size_t other, const Touch& earlier, const char* did) {
    if (earlier.time <= clock[other]) return;
    throw std::logic_error{fmt::format("lane {} '{}' {} what lane {} '{}' may still {}", lane, name,
                                       writes ? "writes" : "reads", other, earlier.name, did)};
  };
  missing(cell.writer, cell.written, "write");
  if (!writes) {
    cell.read[lane] = {clock[lane], name};
    return;
  }
  for (std::size_t i = 0; i < most_lanes; ++i) missing(i, cell.read[i], "read");
}

void HappensBefore::touch(std::size_t lane, std::string_view name, const std::byte* memory,
                          std::int64_t bytes, bool writes) {
  if (bytes <= 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t end = first + static_cast<std::uintptr_t>(bytes);
  cut(first);
  cut(end);
  std::uintptr_t at = first;
  for (auto cell = cells_.lower_bound(first); at < end; ++cell) {
    if (cell == cells_.end() || cell->first > at) {
      const std::uintptr_t until = cell == cells_.end() ? end : std::min(end, cell->first);
      cell = cells_.emplace_hint(cell, at, Cell{.end = until});
    }
    touch(cell->second, lane, name, writes);
    at = cell->second.end;
  }
  if (!writes) return;
  cells_.erase(cells_.lower_bound(first), cells_.lower_bound(end));
  cells_[first] = {.end = end, .writer = lane, .written = {clocks_[lane][lane], name}};
}

bool HappensBefore::ended(const Cell& cell) const {
  const Clock& seen = clocks_[host];
  if (cell.written.time > seen[cell.writer]) return false;
  for (std::size_t i = 0; i < most_lanes; ++i) {
    if (cell.read[i].time > seen[i]) return false;
  }
  return true;
}

void HappensBefore::forget_ended() {
  for (auto cell = cells_.begin(); cell != cells_.end();) {
    cell = ended(cell->second) ? cells_.erase(cell) : std::next(cell);
  }
}

}  // namespace orrery::executor

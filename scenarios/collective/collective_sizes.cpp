#include "scenarios/collective/collective_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_sizes = 1000;
constexpr std::size_t largest_file = std::size_t{64} << 20;

[[noreturn]] void refuse_size(std::string_view text) {
  throw InputError{"--sizes", fmt::format("expected sizes such as 1MiB, 1MiB,4MiB or 8B:1GiB:2, "
                                          "found '{}'",
                                          printable(text, 60))};
}

Bytes size_named(std::string_view text, std::string_view whole) {
  const auto size = parse_quantity<Bytes>(text);
  if (!size || size->count() < 1) refuse_size(whole);
  return *size;
}

void add_range(std::string_view text, std::vector<Bytes>& sizes) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() == 1) {
    sizes.push_back(size_named(parts[0], text));
    return;
  }
  if (parts.size() > 3) refuse_size(text);
  const Bytes first = size_named(parts[0], text), last = size_named(parts[1], text);
  double factor = 2;
  if (parts.size() == 3) {
    const std::optional<double> stated = number_in<double>(parts[2]);
    if (!stated) refuse_size(text);
    factor = *stated;
  }
  if (!(factor >= 1.01 && factor <= 1e6) || last < first) refuse_size(text);
  for (auto size = static_cast<double>(first.count()); size <= static_cast<double>(last.count());
       size *= factor) {
    sizes.push_back(nearest_count<Bytes>(size));
    if (sizes.size() > most_sizes) refuse_size(text);
  }
}

std::vector<std::int64_t> counts_of(const std::string& line, const std::string& place, int ranks) {
  std::vector<std::int64_t> counts;
  for (const std::string_view cell : split(line, ',')) {
    const std::string_view text = trimmed(cell);
    const std::optional<std::int64_t> count = number_in<std::int64_t>(text);
    if (!count || *count < 0 || *count > (std::int64_t{1} << 50)) {
      throw InputError{place, fmt::format("expected a count of bytes up to 2^50, found '{}'",
                                          printable(text, 60))};
    }
    counts.push_back(*count);
  }
  if (counts.size() != static_cast<std::size_t>(ranks)) {
    throw InputError{place, fmt::format("expected {} counts, one for each receiver, found {}",
                                        ranks, counts.size())};
  }
  return counts;
}

/// The most bytes that one rank sends or receives, without what it sends to itself.
Bytes busiest_of(const std::vector<Bytes>& bytes, std::size_t ranks) {
  Bytes busiest{};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Bytes sent{}, received{};
    for (std::size_t other = 0; other < ranks; ++other) {
      if (other == rank) continue;
      sent += bytes[rank * ranks + other];
      received += bytes[other * ranks + rank];
    }
    busiest = std::max({busiest, sent, received});
  }
  return busiest;
}

}  // namespace

std::vector<Bytes> sizes_of(const CollectiveRequest& request, models::Collective operation) {
  std::vector<Bytes> sizes;
  for (const std::string& list : request.sizes) {
    for (const std::string_view each : split(list, ',')) add_range(each, sizes);
  }
  if (!sizes.empty()) return sizes;
  std::set<Bytes> measured;
  for (const MeasuredPoint& point : request.against) {
    if (point.operation == models::name(operation) && point.size > Bytes{}) {
      measured.insert(point.size);
    }
  }
  if (!measured.empty()) return {measured.begin(), measured.end()};
  if (!request.against.empty()) {
    throw InputError{"--against", fmt::format("the log has no {}", models::name(operation))};
  }
  refuse_size("");
}

PairCounts read_counts(const std::string& path, models::Collective operation, int ranks) {
  if (path.empty()) return {};
  if (operation != models::Collective::all_to_all_v) {
    throw InputError{"--counts", fmt::format("only all_to_all_v has distinct sizes, found --op {}",
                                             models::name(operation))};
  }
  PairCounts read;
  const std::string text = read_file(path, largest_file);
  require_text(text, path);
  std::istringstream lines{text};
  std::size_t number = 0, senders = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (trimmed(line).empty()) continue;
    ++senders;
    for (const std::int64_t count :
         counts_of(line, fmt::format("{}:line {}", path, number), ranks)) {
      read.bytes.push_back(Bytes{count});
    }
  }
  if (senders != static_cast<std::size_t>(ranks)) {
    throw InputError{
        path, fmt::format("expected {} lines, one for each sender, found {}", ranks, senders)};
  }
  read.busiest = busiest_of(read.bytes, senders);
  return read;
}

}  // namespace orrery::scenarios

#pragma once
// The sizes that a collective is asked for.

#include <string>
#include <vector>

#include "scenarios/collective/collective_request.hpp"

namespace orrery::scenarios {

/// "1MiB", "1MiB,4MiB", "8B:1GiB:2" (from, to, factor), and of a log what it measured.
/// Errors  `--sizes: expected ..., found ...` (InputError)
std::vector<Bytes> sizes_of(const CollectiveRequest& request, models::Collective operation);

/// Bytes from rank i to rank j at i * ranks + j; empty without a file.
struct PairCounts {
  std::vector<Bytes> bytes;
  Bytes busiest{};  // the most that one rank sends or receives
};

/// Of a file with one line for each sender: so many counts of bytes as there are ranks.
/// Errors  another operation than all_to_all_v, a line or a count that is none: InputError
PairCounts read_counts(const std::string& path, models::Collective operation, int ranks);

}  // namespace orrery::scenarios

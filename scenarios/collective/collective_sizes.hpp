#pragma once
// The sizes at which a collective is evaluated.

#include <string>
#include <vector>

#include "scenarios/collective/collective_request.hpp"

namespace orrery::scenarios {

/// "1MiB", "1MiB,4MiB", "8B:1GiB:2" (from, to, factor); if none is given, those of the measured
/// log.
/// Errors  `--sizes: expected ..., found ...` (InputError)
std::vector<Bytes> sizes_of(const CollectiveRequest& request, models::Collective operation);

/// Bytes from rank i to rank j at i * ranks + j; empty without a file.
struct PairCounts {
  std::vector<Bytes> bytes;
  Bytes busiest{};  // the most that one rank sends or receives
};

/// Reads a file with a line per sender, each with one count of bytes per rank.
/// Errors  another operation than all_to_all_v, a wrong number of lines or counts, a malformed
///         count: InputError
PairCounts read_counts(const std::string& path, models::Collective operation, int ranks);

}  // namespace orrery::scenarios

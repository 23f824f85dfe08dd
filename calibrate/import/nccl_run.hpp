#pragma once
// What an nccl-tests log, text or JSON, states about its run: the collective, and how many ranks on
// how many nodes. Refuses runs that cannot be trusted.

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "calibrate/import/import.hpp"
#include "calibrate/import/nccl_collective.hpp"

namespace orrery::calibrate {

struct NcclRun {
  std::string operation;
  std::optional<std::int64_t> ranks;
  std::set<std::string> hosts;
  std::set<std::string> devices;
  std::size_t rank_lines = 0;
  std::int64_t highest_rank = -1;
  std::string version;  // "nccl-tests 2.18.2, NCCL 2.30.7"

  /// The number of nodes, if every rank is listed with its host.
  std::optional<std::int64_t> nodes() const;
  std::string device() const;
};

/// "NCCL 2.30.7" of 23007 (major * 10000 + minor * 100 + patch since 2.9).
std::string nccl_version(std::int64_t code);

/// Fills what samples share; refuses a run of one rank. `place` is where the run is described.
void finish_run(const NcclRun& run, const std::string& place, Imported& imported);

}  // namespace orrery::calibrate

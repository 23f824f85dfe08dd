#pragma once
// What an nccl-tests log, text or JSON, states about its run: the collective, and how many ranks on
// how many nodes. Refuses runs that cannot be trusted.

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "calibrate/import/import.hpp"

namespace orrery::calibrate {

/// "all_reduce" of "all_reduce_perf", "/opt/all_reduce_perf_mpi" or "alltoall_perf".
std::optional<std::string> nccl_operation(std::string_view program);

/// Infers the number of ranks from the ratio of bus to algorithm bandwidth (all-reduce 2(n-1)/n,
/// gathers (n-1)/n), each figure rounded to two decimals; nothing if the figures allow several
/// answers.
class RanksFromBandwidths {
 public:
  void add(double algorithm, double bus);
  std::optional<std::int64_t> ranks(std::string_view operation) const;
  /// True if this many ranks could have printed these figures.
  bool allows(std::string_view operation, std::int64_t ranks) const;
  /// The lower bound of the ratio of bus to algorithm bandwidth, over all rows.
  double ratio() const { return lowest_; }

 private:
  double lowest_ = 0, highest_ = 1e9;  // bounds of the ratio, over all rows
};

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

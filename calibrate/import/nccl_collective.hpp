#pragma once
// The collectives of nccl-tests, and which of them printed a table that does not name its own: by
// the reduction and the root of its rows, the ratio of its bandwidths, and whether the results in
// place were checked. Columns moved between releases: before 2.13 a table has `redop` and `root`
// only where its collective has them; since then all tables have both.
// Source  NVIDIA/nccl-tests, src/*.cu of tags v2.0.0, v2.10.1, v2.13.0 and of 2.18

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  /// True if some number of ranks could have; a ratio of 1 is not taken for (n-1)/n of very many.
  bool allows(std::string_view operation) const;
  /// True if the two bandwidths could be the same.
  bool equal() const { return lowest_ <= 1 && 1 <= highest_; }

 private:
  double lowest_ = 0, highest_ = 1e9;  // bounds of the ratio, over all rows
};

/// What a table states besides its times.
struct NcclTable {
  bool has_redop = true, has_root = true;  // columns of its header
  bool reduces = false;                    // its rows name a reduction: sum, prod, ...
  bool rooted = false;                     // its rows have a root of 0 or more
  /// Whether results in place were checked: an all-to-all's and a send-receive's never are. Nothing
  /// if no results were.
  std::optional<bool> checks_in_place;
  std::optional<std::int64_t> ranks;  // that the log lists
  RanksFromBandwidths bandwidths;

  /// True for a table of this collective from before 2.9, where its two bandwidths were the same
  /// for any number of ranks.
  bool equal_of_old(std::string_view operation) const;
};

/// The collectives that print such a table, in the order of nccl-tests' folder.
std::vector<std::string> collectives_of(const NcclTable& table);

}  // namespace orrery::calibrate

#pragma once
// What a campaign on this machine found, and the cluster file that it becomes.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/curves.hpp"
#include "calibrate/fit/experts.hpp"
#include "calibrate/machine.hpp"
#include "calibrate/sample.hpp"
#include "hardware/cluster.hpp"

namespace orrery::calibrate {

struct Findings {
  Machine machine;
  std::vector<ProductPoint> products;  // fp32
  std::vector<ProductPoint> batched;   // one of a batch
  std::vector<GroupedPoint> grouped;
  /// By kind, "add", and by models::kernel_key, "add 3>1".
  std::map<std::string, std::vector<KernelPoint>> kernels;
  std::optional<Bandwidth> copy_rate;  // memory to memory, read and written
  std::vector<hardware::Concurrency> concurrency;
  std::vector<hardware::CollectiveTable> collectives;
  hardware::Storage storage;
  Time launch{};             // host time around one operation
  Json raw = Json::array();  // every run of every point, as measured
  int discarded_runs = 0;
  int disturbed_points = 0;
  int points_left_out = 0;  // that the budget did not reach
};

/// One fitted curve, as the command prints it.
struct CurveCard {
  std::string name;  // "gemm fp32", "norm", "all_reduce 2 ranks"
  std::size_t points = 0;
  std::optional<double> leave_out_error_pct;  // nothing: too few points to leave one out
};

struct Profile {
  Json cluster;  // `orrery simulate --cluster` takes it as it stands
  std::vector<CurveCard> curves;
};

/// The machine as a cluster of one node whose devices are its ranks.
/// software  profile of the executor's stack; its host costs are set to what was measured
/// Errors  no product measured: ContractError
Profile make_profile(const Findings& findings, Json software);

/// Tables of imported collectives (times of groups whose ranks are known, out of place), the
/// median where a size was measured several times.
std::vector<hardware::CollectiveTable> collective_tables(const std::vector<Sample>& samples);
/// As a cluster's `measured_collectives`.
Json to_json(const std::vector<hardware::CollectiveTable>& tables);

}  // namespace orrery::calibrate

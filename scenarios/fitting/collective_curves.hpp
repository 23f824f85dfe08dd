#pragma once
// Measured collectives by the cost model, and by what it missed on the nearest measured run.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/fitting/collective_fit.hpp"

namespace orrery::scenarios {

/// Whose constants the cost model took.
enum class Constants : std::uint8_t {
  own,       // fitted to this very machine
  others,    // of a network: the geometric mean of all other networks' fits
  catalogue  // nothing to fit: the shipped ones
};

struct CollectiveAnswer {
  std::optional<double> seconds;
  Constants constants = Constants::catalogue;
  std::string note;
};

/// All systems of a set of measured rows, fitted when they are first asked.
///   t = modelled * exp(r),  r the mean of log(measured / modelled) of related runs, on a line in
///   log size
/// Related, nearest first: runs of the same collective on the same machine and GPUs (same library
/// version and placement before others); inside a domain the same collective and number of GPUs in
/// the GPU's family; across domains the same machine and collective at the nearest number of
/// domains. Nothing related: r = 0. A size outside a run takes the run's edge.
class CollectiveCurves {
 public:
  explicit CollectiveCurves(std::vector<MeasuredCollective> rows);
  CollectiveCurves(const CollectiveCurves&) = delete;
  CollectiveCurves& operator=(const CollectiveCurves&) = delete;

  CollectiveAnswer seen(const MeasuredCollective& row) { return answer(row, ""); }
  /// Without the rows of the row's curve (`curve_of`), if the same call is among the rows.
  CollectiveAnswer unseen(const MeasuredCollective& row);
  /// Without all rows of the row's GPU.
  CollectiveAnswer other_gpus(const MeasuredCollective& row) {
    return answer(row, gpu_mark + row.gpu);
  }

  struct System {
    std::vector<CollectiveSample> samples;
    CollectiveSystem fit;
  };
  /// Every system with its rows and its fit on all of them.
  std::map<std::string, System> systems();

 private:
  static constexpr const char* gpu_mark = "gpu:";

  const hardware::Cluster* machine(const MeasuredCollective& row);
  static bool left_out(const MeasuredCollective& row, const std::string& what);
  const CollectiveSystem& system(const MeasuredCollective& row, const std::string& left_out);
  CollectiveSystem network_of_others(const MeasuredCollective& row, const std::string& left_out,
                                     CollectiveSystem domain);
  std::vector<CollectiveSample> samples_of(const std::string& system, const std::string& left_out);
  CollectiveAnswer answer(const MeasuredCollective& row, const std::string& left_out);
  double residual(const MeasuredCollective& row, const std::string& left_out);
  double residual_of(const std::vector<const MeasuredCollective*>& run,
                     const MeasuredCollective& row, const std::string& left_out);

  std::vector<MeasuredCollective> rows_;
  std::map<std::string, std::optional<hardware::Cluster>> machines_;
  std::map<std::string, std::vector<const MeasuredCollective*>> runs_;     // by run_of
  std::map<std::string, std::vector<const MeasuredCollective*>> systems_;  // by system_of
  std::map<std::string, std::string> known_;                               // identity: curve
  std::map<std::string, CollectiveSystem> fits_;  // by system and what is left out
};

}  // namespace orrery::scenarios

#pragma once
// Predicts measured collectives by the cost model and by its error on the nearest measured run.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/fitting/collectives/collective_fit.hpp"

namespace orrery::scenarios {

/// Which constants the cost model used.
enum class Constants : std::uint8_t {
  own,       // fitted to this machine
  others,    // network constants: geometric mean of all other networks' fits
  catalogue  // no rows to fit: the shipped ones
};

struct CollectiveAnswer {
  std::optional<double> seconds;
  Constants constants = Constants::catalogue;
  std::string note;
};

/// All systems of a set of measured rows, fitted on first use.
///   t = modelled * exp(r),  r the mean of log(measured / modelled) of related runs, interpolated
///                           linearly in log size
/// Related, nearest first: runs of the same collective on the same machine and GPUs (same library
/// version and placement before others); inside a domain the same collective and number of GPUs in
/// the GPU's family; across domains the same machine and collective at the nearest number of
/// domains. Nothing related: r = 0. Outside a run's sizes, r is that of the nearest end.
class CollectiveCurves {
 public:
  explicit CollectiveCurves(std::vector<MeasuredCollective> rows);
  CollectiveCurves(const CollectiveCurves&) = delete;
  CollectiveCurves& operator=(const CollectiveCurves&) = delete;

  CollectiveAnswer seen(const MeasuredCollective& row) { return answer(row, ""); }
  /// Fitted without the rows of the row's curve (`curve_of`), if the same call is among the rows.
  CollectiveAnswer unseen(const MeasuredCollective& row);
  /// Fitted without all rows of the row's GPU.
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
  std::map<std::string, std::string> known_;                               // by identity: curve_of
  std::map<std::string, CollectiveSystem> fits_;  // by system and what is left out
};

}  // namespace orrery::scenarios

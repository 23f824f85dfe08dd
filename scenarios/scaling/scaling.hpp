#pragma once
// One scenario on more and more GPUs: tensor, context and pipeline degrees are kept and
// data-parallel replicas are added. Leaves out other plans for a larger cluster: `orrery plan`
// searches them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/scenario/scenario_request.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

/// weak    constant sequences per GPU, the global batch grows
/// strong  constant global batch
enum class Scaling : std::uint8_t { weak, strong };

struct ScalingRequest {
  ScenarioRequest scenario{};
  std::vector<std::int64_t> gpus{};
  Scaling scaling = Scaling::weak;
  unsigned threads = 0;  // 0: as many as the machine has
};

struct ScalingPoint {
  std::int64_t gpus = 0, data = 0, global_batch = 0;
  std::string refused{};  // why it was not predicted; empty if it was
  bool fits = false;
  Time step{};
  double tokens_per_second = 0, mfu = 0;
  /// Tokens per second per GPU, relative to the first point that was predicted.
  double efficiency = 0;
  models::Breakdown breakdown{};    // of the slowest rank
  std::optional<Time> data_wait{};  // on top, where the scenario states its data

  double tokens_per_second_per_gpu() const { return tokens_per_second / static_cast<double>(gpus); }
};

struct ScalingReport {
  std::string scenario;
  std::string cluster;  // the node and the fabric
  Scaling scaling = Scaling::weak;
  std::vector<ScalingPoint> points;  // by increasing GPUs
  bool stopped = false;              // before all were predicted
};

/// "64:16384:x2" (each twice the one before), "64:512:64" (in steps), or "64,96,128".
/// Errors  InputError `--gpus: expected ...`; more than 1,000 numbers
std::vector<std::int64_t> parse_gpu_counts(std::string_view text);
/// Errors  InputError `--scaling: expected weak or strong, found 'x'`
Scaling scaling_named(std::string_view text);
std::string_view name(Scaling scaling);

/// Errors  a wrong scenario: InputError; what is wrong with one point is in its `refused`
ScalingReport scale(const ScalingRequest& request, const Progress& progress);

Json to_json(const ScalingReport& report);
std::string text_of(const ScalingReport& report, bool colour);
/// Step time by its parts, and efficiency, against GPUs (SVG).
std::string picture_of(const ScalingReport& report);

}  // namespace orrery::scenarios

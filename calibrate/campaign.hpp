#pragma once
// Measures a machine with the executor's own kernels and fabric: the blocks of small models, alone
// and with several ranks at once; collectives and messages over sizes; memory and files. What the
// budget does not reach is left out and counted; Ctrl-C keeps what was measured.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/findings.hpp"
#include "calibrate/harness/harness.hpp"
#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"

namespace orrery::calibrate {

/// A block to time, and the model that its kernels ask about. Both outlive the campaign.
struct NamedBlock {
  std::string name;  // "gpt 256 x 128 layer.forward"
  const models::Block* block = nullptr;
  const models::Model* model = nullptr;
  bool with_others = false;  // timed with several ranks at once too
};

struct CampaignInputs {
  std::vector<NamedBlock> blocks;
  std::vector<int> ranks{1};  // how many at once; 1 is always measured
  std::function<std::unique_ptr<executor::Device>()> device;
  /// The fabrics of a world of so many ranks, by rank; they may share what outlives them.
  std::function<std::vector<std::unique_ptr<executor::Fabric>>(int)> world;
  std::filesystem::path folder;  // on the storage to measure
  Rules rules;
  std::uint64_t seed = 1;
  Watcher watcher;                            // asked before every point; false: stop
  std::function<void(const Json&)> sample{};  // gets every point that is kept
};

/// Errors  a kernel or collective that computes wrongly: RunFailure
Findings run_campaign(const CampaignInputs& inputs, Clock& clock);

}  // namespace orrery::calibrate

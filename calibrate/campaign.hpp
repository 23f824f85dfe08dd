#pragma once
// Measures a machine with the executor's own kernels and fabrics, through the Device interface:
// products, attention, every other kernel with its neighbours in a block, launches, copies, work on
// two queues at once, loads of seconds, several ranks at once, their collectives, files. What is
// measured is data: a list that is empty takes no time. What the budget does not reach is left out
// and counted; a stop keeps what was measured. Setting points up is none of the budget: libraries
// that compile a plan for a shape do it then.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/findings.hpp"

namespace orrery::calibrate {

/// What becomes of a point all of whose runs were disturbed.
enum class Disturbed : std::uint8_t { kept, discarded };

/// How the budget is shared among parts, each a share of what is left when it begins.
struct BudgetShares {
  double launches = 0.05, graphs = 0.03, first = 0.4, bursts = 0.05, points = 0.75;
  double copies = 0.4, storage = 0.05;
  double loads = 0.1;  // of the whole budget
};

struct CampaignInputs {
  std::optional<GpuIdentity> gpu;    // nothing: the machine's processor
  std::vector<TimedBlock> points;    // every operation of each
  std::vector<TimedBlock> launches;  // small: a layer's forward, its backward, one kernel
  std::vector<TimedBlock> loads;     // of one operation, for seconds; the first, a product, also
                                     // with work on another queue
  std::vector<Bytes> copies;         // on the device
  std::vector<Bytes> host_copies;    // ... and between it and the host
  std::vector<Bytes> messages;       // of every collective
  std::filesystem::path folder{};    // on the storage to measure; empty: it is not
  Bytes most_memory = 8_GiB;         // that one point's operands may take
  Time load_time = 3_s;              // of each load
  RankSet::Make alone;               // a rank that communicates with none
  RankSet::Make rank{};              // ... and one that does
  std::vector<int> sets{};           // how many of those are measured at once
  std::string why_no_collectives{};  // where no set has two ranks
  std::unique_ptr<Telemetry> telemetry{};
  std::function<std::vector<std::string>(const executor::Device&)> notes{};
  std::function<executor::FusedAttention(const executor::Device&)> fused{};
  Rules rules;
  Disturbed disturbed = Disturbed::kept;
  BenchSizes sizes;
  BudgetShares shares;
  std::uint64_t seed = 1;
  Watcher watcher{};                                 // asked before every point; false: stop
  std::function<void(const Json&)> sample{};         // gets every point that is kept
  std::function<void(const Findings&)> part_done{};  // gets what was found after every part
};

/// Errors  no device, no room for a bench; where the rules do not go on after a failure, a kernel
///         or collective that computes wrongly: RunFailure
Findings run_campaign(CampaignInputs inputs, Clock& clock);

}  // namespace orrery::calibrate

#pragma once
// Measures a machine with the executor's own kernels and fabrics, through the Device interface:
// GEMMs, attention, every other kernel with its neighbours in a block, launches, copies, concurrent
// work on two queues, sustained loads, several concurrent ranks, their collectives, files. The
// inputs list what is measured; an empty list takes no time. Points that the budget does not reach
// are left out and counted; a stop keeps what was measured. Setting up points does not count
// towards the budget: some libraries compile a plan for a shape then.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/bench/decoding.hpp"
#include "calibrate/findings.hpp"

namespace orrery::calibrate {

/// What happens to a point if all of its runs were disturbed.
enum class Disturbed : std::uint8_t { kept, discarded };

/// How the budget is shared among parts, each a share of what is left when it begins.
struct BudgetShares {
  double launches = 0.05, graphs = 0.03, first = 0.4, bursts = 0.05, points = 0.75;
  double copies = 0.4, storage = 0.05, decoding = 0.1;
  double loads = 0.1;  // of the whole budget
};

struct CampaignInputs {
  std::optional<GpuIdentity> gpu;    // nothing: the machine's processor
  std::vector<TimedBlock> points;    // blocks: every operation is timed
  std::vector<TimedBlock> launches;  // small: a layer's forward, its backward, one kernel
  std::vector<TimedBlock> loads;     // one operation each, run for seconds; the first, a GEMM, also
                                     // with work on another queue
  std::vector<Bytes> copies;         // sizes of copies on the device
  std::vector<Bytes> host_copies;    // ... and between it and the host
  std::vector<Bytes> messages;       // sizes of every collective
  std::filesystem::path folder{};    // on the storage to measure; empty: storage is not measured
  bool files_first = false;          // before anything else: the user asked for them by name
  std::vector<std::unique_ptr<ImageCodec>> codecs{};  // of pictures that are decoded
  Bytes most_memory = 8_GiB;                          // limit of one point's operands
  Time load_time = 3_s;                               // of each load
  RankSet::Make alone;                                // makes a rank without a fabric
  RankSet::Make rank{};                               // ... and one with a fabric
  std::vector<int> sets{};                            // numbers of such ranks measured concurrently
  std::string why_no_collectives{};                   // the reason, if no set has two ranks
  std::unique_ptr<Telemetry> telemetry{};
  std::function<std::vector<std::string>(const executor::Device&)> notes{};
  std::function<executor::FusedAttention(const executor::Device&)> fused{};
  Rules rules;
  Disturbed disturbed = Disturbed::kept;
  BenchSizes sizes;
  BudgetShares shares;
  std::uint64_t seed = 1;
  Watcher watcher{};                                 // called before every point; false: stop
  std::function<void(const Json&)> sample{};         // called with every point that is kept
  std::function<void(const Findings&)> part_done{};  // called with the findings after every part
};

/// Errors  no device, no room for a bench; unless the rules go on after a failure, a kernel or
///         collective that computes wrongly: RunFailure
Findings run_campaign(CampaignInputs inputs, Clock& clock);
/// Storage and decoding alone.
Findings run_files_campaign(CampaignInputs inputs, Clock& clock);

}  // namespace orrery::calibrate

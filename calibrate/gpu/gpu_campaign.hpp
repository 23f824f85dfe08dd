#pragma once
// Measures GPUs with the executor's own kernels through the Device interface, timed by marks on
// their queues: products, attention, every other kernel in the company of its block, copies,
// launches, work on two queues at once, a load of seconds; with several GPUs their collectives.
// What fails is named and left out; what was throttled is discarded and counted. Points of `first`
// come before all others. Setting points up is none of the budget: libraries that compile a plan
// for a shape do it then.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/gpu/collectives.hpp"
#include "calibrate/gpu/gpu_findings.hpp"
#include "calibrate/gpu/queue_work.hpp"

namespace orrery::calibrate {

struct GpuCampaignInputs {
  GpuIdentity gpu;
  std::vector<TimedBlock> blocks;      // every operation, in its block's company
  std::vector<TimedBlock> operations;  // of one operation each, repeated
  std::vector<TimedBlock> launches;    // small: a layer's forward, its backward, one kernel
  std::vector<TimedBlock> loads;       // of one operation, for seconds; the first, a product,
                                       // also beside other queues
  std::vector<Bytes> copies;
  Bytes most_memory = 8_GiB;  // that one point's operands may take
  Time load_time = 3_s;       // of each load; of all of them at most a tenth of the budget
  std::function<std::unique_ptr<executor::Device>()> device;
  GpuCrew::Make rank;                // for collectives; empty: they cannot be measured,
  std::string why_no_collectives{};  // because of this
  GpuCrew::Make lone_rank;  // where `rank` is empty: of a communicator of one, if there is any
  std::vector<Bytes> messages;
  std::unique_ptr<Telemetry> telemetry;
  std::function<std::vector<std::string>(const executor::Device&)> notes;
  std::function<executor::FusedAttention(const executor::Device&)> fused;
  Rules rules;
  BenchSizes sizes;
  std::uint64_t seed = 1;
  Watcher watcher;                                      // asked before every point; false: stop
  std::function<void(const Json&)> sample;              // gets every point as it comes
  std::function<void(const GpuFindings&)> part_done{};  // gets what was found after every part
};

/// A clock whose reference work says nothing: a GPU's own telemetry tells of its disturbances.
std::unique_ptr<Clock> gpu_clock(Clock& host);

/// Errors  no device, no room for a bench: RunFailure
GpuFindings run_gpu_campaign(GpuCampaignInputs inputs, Clock& clock);

}  // namespace orrery::calibrate

#pragma once
// What contention costs one scenario's step: with communication overlapped and not, on neighbouring
// nodes, on scattered ones, next to a second job, and with one NIC at half rate, another one in
// each phase.
//
// Each variant is the mean of several phases with random launch delays
// (models/evaluation/traffic/launch_delays.hpp), the same delays for all of them. In lockstep,
// which transfers coincide decides a step, and a slower part may seem to shorten it.

#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/scenario/scenario_request.hpp"
#include "scenarios/search/workers.hpp"
#include "sim/mean_and_spread.hpp"

namespace orrery::scenarios {

/// Mean launch delay of the phases. Assumed, not measured: over the thousands of transfers of a
/// step of seconds, replicas then drift apart by tens of milliseconds instead of sending in
/// lockstep.
inline constexpr Time contention_delay{1'000'000'000};

struct ContentionRequest {
  ScenarioRequest scenario{};
  unsigned threads = 0;  // 0: as many as the machine has
  models::LaunchPhases phases{.count = 32, .delay = contention_delay};
};

/// One variant of the step, with its traffic simulated on links.
struct ContentionCase {
  std::string name;  // "contiguous"
  bool overlap = false;
  std::string refused{};  // why it was not predicted; empty if it was
  // Means over the phases: of the step, of what sharing links adds to it, and of the part of that
  // from the second job.
  Time step{}, contention{}, from_jobs{};
  models::PhasesAnswer phases;
  models::NetworkAnswer network;  // of the phase nearest to the mean; with a slow NIC, of the last

  /// The step with the same delays if nothing shared a link.
  Time alone() const { return step - contention; }
};

struct ContentionReport {
  std::string scenario, cluster;
  std::int64_t nodes = 0, all_nodes = 0;  // of this job, and of the fabric
  std::int64_t job_gpus = 0;              // of the second job
  std::int64_t nics = 0;                  // of this job's nodes
  std::vector<ContentionCase> cases;      // overlap off, then on
  bool stopped = false;

  /// The contiguous step with the same overlap; nothing if it was not predicted.
  const ContentionCase* usual(const ContentionCase& of) const;
  /// By how much a case's step is longer than the usual one, phase by phase, as a share of that.
  /// Errors  a case that was not predicted: ContractError
  MeanAndSpread against_usual(const ContentionCase& of) const;
  models::LaunchPhases phases;
};

/// The second job trains Llama 3 8B, purely data parallel, on a quarter as many nodes as this one,
/// at least 2.
/// Errors  a wrong scenario: InputError; what is wrong with one case is in its `refused`
ContentionReport contend(const ContentionRequest& request, const Progress& progress);

Json to_json(const ContentionReport& report);
std::string text_of(const ContentionReport& report, bool colour);
/// The findings in a sentence or two.
std::string sentence_of(const ContentionReport& report);
/// A bar per case: what a slower part, contention and other jobs add to a step that shares no link
/// (SVG).
std::string picture_of(const ContentionReport& report);
/// The page (Markdown); `command` regenerates it, `picture` is the picture's file name.
std::string page_of(const ContentionReport& report, const std::string& command,
                    const std::string& picture);
/// Writes contention.md and contention.svg into a folder, which is created.
/// Errors  a file that cannot be written: InputError
void write_page(const std::string& folder, const ContentionReport& report);

}  // namespace orrery::scenarios

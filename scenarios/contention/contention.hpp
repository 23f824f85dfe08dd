#pragma once
// What contention costs one scenario's step: with communication overlapped and not, on neighbouring
// nodes, on scattered ones, next to a second job, and with one NIC at half rate.

#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/question/scenario_request.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

struct ContentionRequest {
  ScenarioRequest scenario{};
  unsigned threads = 0;  // 0: as many as the machine has
};

/// One variant of the step, with its traffic simulated on links.
struct ContentionCase {
  std::string name;  // "contiguous"
  bool overlap = false;
  std::string refused{};  // why it was not predicted; empty if it was
  Time step{};
  models::NetworkAnswer network;
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
};

/// The second job trains Llama 3 8B, purely data parallel, on a quarter as many nodes as this one,
/// at least 2.
/// Errors  a wrong scenario: InputError; what is wrong with one case is in its `refused`
ContentionReport contend(const ContentionRequest& request, const Progress& progress);

Json to_json(const ContentionReport& report);
std::string text_of(const ContentionReport& report, bool colour);
/// The findings in a sentence or two.
std::string sentence_of(const ContentionReport& report);
/// A bar per case: the step without contention, then what contention and other jobs add (SVG).
std::string picture_of(const ContentionReport& report);
/// The page (Markdown); `command` regenerates it, `picture` is the picture's file name.
std::string page_of(const ContentionReport& report, const std::string& command,
                    const std::string& picture);
/// Writes contention.md and contention.svg into a folder, which is created.
/// Errors  a file that cannot be written: InputError
void write_page(const std::string& folder, const ContentionReport& report);

}  // namespace orrery::scenarios

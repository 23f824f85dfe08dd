// The part of a campaign that launches what was captured.

#include <memory>
#include <vector>

#include "calibrate/gpu/campaign_book.hpp"
#include "calibrate/gpu/graph_launch.hpp"

namespace orrery::calibrate {

namespace {

constexpr double share_of_graphs = 0.03;

}  // namespace

void measure_graphs(CampaignBook& book, QueueBench& bench) {
  if (bench.device().graphs() == nullptr) {
    book.found().missing.push_back("CUDA graphs: the device has none");
    return;
  }
  std::vector<std::unique_ptr<GraphLaunch>> owned;
  std::vector<Subject*> subjects;
  for (const TimedBlock& each : book.inputs().launches) {
    if (runnable(*each.block, bench.device()).empty()) continue;
    owned.push_back(std::make_unique<GraphLaunch>(each, bench));
    subjects.push_back(owned.back().get());
  }
  LaunchCosts& costs = book.found().launch;
  book.measure(subjects, share_of_graphs, [&](const Measurement& found) {
    const bool layer = found.name.find("layer") != std::string::npos;
    if (layer && (!costs.graph || found.median(0) > *costs.graph)) {
      costs.graph = found.median(0);
      costs.graph_kernel = found.median(1);
    }
    const GraphLaunch& of = *named(owned, found.name);
    Json parts = Json::array({part_json("host, one graph", Bytes{}, found.parts[0]),
                              part_json("queue, one node", Bytes{}, found.parts[1])});
    parts[0]["nodes"] = of.nodes();
    book.keep(found, {}, std::move(parts));
  });
}

}  // namespace orrery::calibrate

// The parts of a campaign that time kernels: launches, points, loads of seconds.

#include <memory>

#include "calibrate/campaign_state.hpp"
#include "calibrate/spelled.hpp"
#include "models/pricing/calibrated.hpp"

namespace orrery::calibrate {

namespace {

using models::Operation;
using models::OpKind;
using KernelSubjects = std::vector<std::unique_ptr<KernelSubject>>;

bool is_attention(OpKind kind) {
  return kind == OpKind::attention || kind == OpKind::attention_backward;
}

/// Adds one operation's median time to the findings, by its kind.
void take(Findings& found, const Operation& op, Time time) {
  time = std::max(time, Time{1});
  const hardware::GemmSize shape{op.gemm().m, op.gemm().n, op.gemm().k};
  if (op.kind == OpKind::gemm) {
    found.products[op.dtype].push_back({shape, op.flops, op.bytes, time});
  } else if (op.kind == OpKind::batched_gemm) {
    const std::int64_t batch = op.gemm().batch;
    found.batched[op.dtype].push_back({shape, Flops{op.flops.count() / batch},
                                       Bytes{op.bytes.count() / batch},
                                       std::max(Time{time.count() / batch}, Time{1})});
  } else if (op.kind == OpKind::grouped_gemm) {
    found.grouped.push_back({op, time});
  } else if (is_attention(op.kind)) {
    found.attention.push_back({{.work = op.flops,
                                .seq = op.attention().seq,
                                .head_dim = static_cast<int>(op.attention().head_dim),
                                .causal = op.attention().causal,
                                .pass = op.kind == OpKind::attention ? hardware::Pass::forward
                                                                     : hardware::Pass::backward},
                               time});
  } else if (op.bytes > Bytes{0}) {
    const std::vector<std::string> keys = models::kernel_keys(op, !found.gpu);
    for (const std::string& key : {keys[0], keys[1]}) {
      found.kernels[key].push_back({op.bytes, time});
    }
  }
}

void take_point(CampaignState& campaign, const Measurement& found, const KernelSubject& of) {
  Json parts = Json::array();
  for (std::size_t p = 0; p < found.parts.size(); ++p) {
    const Operation& op = of.timed().priced_as(*of.operations()[p]);
    take(campaign.found(), op, found.median(p));
    Json part = described(op);
    part["us"] = times_json(found.parts[p]);
    parts.push_back(std::move(part));
  }
  campaign.keep(found, of.conditions(), std::move(parts));
}

bool has_work(CampaignState& campaign, const TimedBlock& each, const Bench& bench) {
  return footprint(*each.block) <= campaign.inputs().most_memory &&
         !runnable(*each.block, bench.device()).empty();
}

/// Makes the subjects. Asks the device whether it runs each operation, which may make it compile a
/// plan.
KernelSubjects subjects_of(CampaignState& campaign, const std::vector<TimedBlock>& blocks,
                           RankSet& ranks) {
  KernelSubjects made;
  for (const TimedBlock& each : blocks) {
    if (campaign.asked_to_stop()) break;
    campaign.attempt(each.name, [&] {
      if (!has_work(campaign, each, ranks.bench(0))) return;
      made.push_back(std::make_unique<KernelSubject>(each, ranks));
    });
  }
  return made;
}

void take_launch(LaunchCosts& costs, const Measurement& found) {
  const auto is_of = [&](const char* what) { return found.name.find(what) != std::string::npos; };
  if (is_of("forward")) costs.forward = found.median(0);
  if (is_of("backward")) costs.backward = found.median(0);
  if (!is_of("one kernel")) return;
  costs.small = found.median(0);
  costs.small_on_queue = found.median(1);
}

void take_graph(LaunchCosts& costs, const Measurement& found) {
  if (found.name.find("layer") == std::string::npos) return;
  if (costs.graph && found.median(0) <= *costs.graph) return;
  costs.graph = found.median(0);
  costs.graph_kernel = found.median(1);
}

void measure_launches(CampaignState& campaign, Bench& bench, LaunchSubject::As as, double share) {
  std::vector<std::unique_ptr<LaunchSubject>> owned;
  for (const TimedBlock& each : campaign.inputs().launches) {
    if (runnable(*each.block, bench.device()).empty()) continue;
    owned.push_back(std::make_unique<LaunchSubject>(each, bench, as));
  }
  const bool graph = as == LaunchSubject::As::graph;
  campaign.measure(pointers_to(owned), share, [&](const Measurement& found) {
    (graph ? take_graph : take_launch)(campaign.found().launch, found);
    Json parts = Json::array(
        {part_json(graph ? "host, one graph" : "host, one launch", Bytes{}, found.parts[0]),
         part_json(graph ? "queue, one node" : "queue, one operation", Bytes{}, found.parts[1])});
    if (graph) parts[0]["nodes"] = named(owned, found.name)->kernels();
    campaign.keep(found, {}, std::move(parts));
  });
}

}  // namespace

/// On a device without queues the host runs the kernel itself: a launch costs only the two marks
/// around it, which read a clock.
void measure_launches(CampaignState& campaign, Bench& bench) {
  const BudgetShares& shares = campaign.inputs().shares;
  if (bench.device().synchronous() && campaign.inputs().launches.empty()) {
    LaunchCosts& costs = campaign.found().launch;
    costs.forward = costs.backward = costs.communication = costs.mark * 2;
    return;
  }
  measure_launches(campaign, bench, LaunchSubject::As::kernels, shares.launches);
  if (bench.device().graphs() == nullptr) {
    campaign.found().missing.push_back("CUDA graphs: the device has none");
    return;
  }
  measure_launches(campaign, bench, LaunchSubject::As::graph, shares.graphs);
}

void measure_points(CampaignState& campaign, RankSet& alone, bool first, double share) {
  std::vector<TimedBlock> blocks;
  for (const TimedBlock& each : campaign.inputs().points) {
    if (each.first == first) blocks.push_back(each);
  }
  KernelSubjects owned;
  campaign.found().setting_up +=
      campaign.outside_of_budget([&] { owned = subjects_of(campaign, blocks, alone); });
  campaign.measure(pointers_to(owned), share, [&](const Measurement& found) {
    take_point(campaign, found, *named(owned, found.name));
  });
}

void measure_loads(CampaignState& campaign, RankSet& alone) {
  const CampaignInputs& inputs = campaign.inputs();
  const KernelSubjects owned = subjects_of(campaign, inputs.loads, alone);
  std::vector<SustainedLoad> loads;
  campaign.measure(pointers_to(owned), inputs.shares.bursts, [&](const Measurement& found) {
    const KernelSubject& of = *named(owned, found.name);
    SustainedLoad load;
    load.what = found.name;
    load.of = is_attention(of.operations().front()->kind) ? SustainedLoad::Of::attention
                                                          : SustainedLoad::Of::product;
    load.isolated = found.median(0);
    load.bursts = of.conditions();
    loads.push_back(std::move(load));
    campaign.keep(found, of.conditions(),
                  Json::array({part_json("in bursts", Bytes{}, found.parts[0])}));
  });
  const Time all = scaled(inputs.rules.budget, inputs.shares.loads);
  for (SustainedLoad& each : loads) {
    if (campaign.asked_to_stop()) return;
    campaign.attempt("load of " + each.what, [&] {
      const Time span =
          std::min(inputs.load_time, Time{all.count() / static_cast<std::int64_t>(owned.size())});
      each.sustained = time_under_load(named(owned, each.what)->timed(), alone.bench(0), span);
      each.conditions = alone.bench(0).monitor().seen();
      campaign.found().loads.push_back(each);
      campaign.keep(
          {{"name", "load of " + each.what},
           {"ranks", 1},
           {"conditions", to_json(each.conditions)},
           {"parts", Json::array({part_json("in bursts", Bytes{}, {each.isolated}),
                                  part_json("for seconds", Bytes{}, {each.sustained})})}});
    });
  }
}

}  // namespace orrery::calibrate

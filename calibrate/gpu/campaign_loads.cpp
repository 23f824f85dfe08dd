// The part of a campaign that asks what a burst does not tell: how fast an operation is for seconds
// on end, at the clocks that the GPU's power then leaves it.

#include <algorithm>
#include <memory>
#include <vector>

#include "calibrate/fit/minimise.hpp"
#include "calibrate/gpu/campaign_book.hpp"
#include "calibrate/gpu/work_together.hpp"

namespace orrery::calibrate {

namespace {

constexpr double share_of_loads = 0.1;    // of the budget, all loads together
constexpr double share_of_bursts = 0.05;  // of what is left of it

Load::Of kind_of(const TimedBlock& block) {
  const models::OpKind kind = block.block->operations.front().kind;
  const bool fused =
      kind == models::OpKind::attention || kind == models::OpKind::attention_backward;
  return fused ? Load::Of::attention : Load::Of::product;
}

void keep(CampaignBook& book, const Load& of) {
  Json raw{{"name", "load of " + of.what},
           {"ranks", 1},
           {"conditions", to_json(of.conditions)},
           {"parts", Json::array({part_json("in bursts", Bytes{}, {of.isolated}),
                                  part_json("for seconds", Bytes{}, {of.sustained})})}};
  book.found().loads.push_back(of);
  book.keep(std::move(raw));
}

}  // namespace

void measure_loads(CampaignBook& book, QueueBench& bench) {
  const GpuCampaignInputs& inputs = book.inputs();
  std::vector<std::unique_ptr<OperationOnQueue>> owned;
  std::vector<Subject*> subjects;
  for (const TimedBlock& each : inputs.loads) {
    if (footprint(*each.block) > inputs.most_memory) continue;
    if (runnable(*each.block, bench.device()).empty()) continue;
    owned.push_back(std::make_unique<OperationOnQueue>(each, bench));
    subjects.push_back(owned.back().get());
  }
  if (owned.empty()) return;
  std::vector<Load> loads;
  book.measure(subjects, share_of_bursts, [&](const Measurement& found) {
    const OperationOnQueue& of = *named(owned, found.name);
    Load load;
    load.what = found.name;
    load.of = kind_of(of.timed());
    load.isolated = std::max(Time{1}, found.median(0));
    load.bursts = of.conditions();
    loads.push_back(std::move(load));
    book.keep(found, of.conditions(),
              Json::array({part_json("in bursts", Bytes{}, found.parts[0])}));
  });
  const Time all = scaled(inputs.rules.budget, share_of_loads);
  const Time span =
      std::min(inputs.load_time, Time{all.count() / static_cast<std::int64_t>(owned.size())});
  for (Load& each : loads) {
    if (book.asked_to_stop()) return;
    book.attempt("load of " + each.what, [&] {
      each.sustained = time_under_load(named(owned, each.what)->timed(), bench, span);
      each.conditions = bench.overseer().seen();
      keep(book, each);
    });
  }
}

std::optional<double> sustained_share(const GpuFindings& findings, Load::Of of) {
  std::vector<double> shares;
  for (const Load& each : findings.loads) {
    if (each.of == of) shares.push_back(each.share());
  }
  if (shares.empty()) return std::nullopt;
  return std::clamp(median_of(shares), 0.1, 1.0);
}

}  // namespace orrery::calibrate

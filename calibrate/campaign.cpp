#include "calibrate/campaign.hpp"

#include "calibrate/campaign_state.hpp"
#include "calibrate/spelled.hpp"

namespace orrery::calibrate {

CampaignState::CampaignState(CampaignInputs& inputs, Clock& clock)
    : inputs_{inputs},
      clock_{clock},
      monitor_{std::move(inputs.telemetry)},
      harness_{clock, inputs.rules, inputs.seed} {
  found_.gpu = inputs.gpu;
}

bool CampaignState::asked_to_stop() {
  if (inputs_.watcher && !inputs_.watcher(0, 0)) stopped_ = true;
  return stopped_;
}

void CampaignState::measure(const std::vector<Subject*>& subjects, double share,
                            const Taker& take) {
  if (subjects.empty()) return;
  const std::size_t failed = harness_.failures().size();
  const auto watcher = [this](std::size_t done, std::size_t all) {
    if (inputs_.watcher && !inputs_.watcher(done, all)) stopped_ = true;
    return !stopped_;
  };
  const auto taker = [&](const Measurement& each) {
    const bool discarded = each.disturbed && inputs_.disturbed == Disturbed::discarded;
    if (each.disturbed) ++(discarded ? found_.discarded_points : found_.disturbed_points);
    if (!discarded) take(each);
  };
  const std::size_t found = harness_.measure(subjects, share, watcher, taker).size();
  found_.points_left_out +=
      static_cast<int>(subjects.size() - found - (harness_.failures().size() - failed));
}

void CampaignState::keep(const Measurement& found, const Conditions& conditions, Json parts,
                         int ranks) {
  keep({{"name", found.name},
        {"ranks", ranks},
        {"settled", found.settled},
        {"disturbed", found.disturbed},
        {"spread", found.spread},
        {"discarded_runs", found.discarded_runs},
        {"conditions", to_json(conditions)},
        {"parts", std::move(parts)}});
}

void CampaignState::keep(Json raw) {
  if (inputs_.sample) inputs_.sample(raw);
  found_.raw.push_back(std::move(raw));
}

Findings CampaignState::finish() {
  if (!inputs_.why_no_collectives.empty()) {
    found_.missing.push_back("collectives: " + inputs_.why_no_collectives);
  }
  if (inputs_.gpu && !monitor_.knows()) {
    found_.missing.push_back("clocks and power: NVML does not support this GPU");
  }
  if (stopped_) found_.missing.push_back("points that an interrupt left out");
  found_.discarded_runs = harness_.discarded_runs();
  const auto& failures = harness_.failures();
  found_.failures.insert(found_.failures.end(), failures.begin(), failures.end());
  return std::move(found_);
}

Json part_json(std::string_view what, Bytes size, const std::vector<Time>& times) {
  return {{"operation", what}, {"bytes", size.count()}, {"us", times_json(times)}};
}

namespace {

/// Reports fp8 as missing if the GPU or its library refuses it, before anything is measured.
void ask_for_fp8(CampaignState& campaign, const executor::Device& device) {
  models::Operation product;
  product.kind = models::OpKind::gemm;
  product.dtype = models::DType::fp8;
  const std::string why = device.refusal(product);
  if (!why.empty()) campaign.found().missing.push_back(why);
}

/// Storage, and decoding of what lies on it.
void measure_files(CampaignState& campaign) {
  campaign.part("storage", [&] { measure_storage(campaign); });
  campaign.part("decoding", [&] { measure_decoding(campaign); });
}

/// Measures the parts that need a single rank, and records what its device chose by itself.
void measure_alone(CampaignState& campaign) {
  const CampaignInputs& inputs = campaign.inputs();
  RankSet alone{1, inputs.alone, campaign.tools()};
  Bench& bench = alone.bench(0);
  Findings& found = campaign.found();
  const auto part = [&](const char* name, const auto& work) {
    campaign.part(name, [&] {
      work();
      if (inputs.notes) found.notes = inputs.notes(bench.device());
      if (inputs.fused) found.fused = inputs.fused(bench.device());
    });
  };
  found.machine = this_machine(bench.device().description());
  found.launch.mark = bench.mark_cost();
  if (inputs.gpu) ask_for_fp8(campaign, bench.device());
  const BudgetShares& shares = inputs.shares;
  campaign.start();
  if (inputs.files_first) measure_files(campaign);
  part("launches", [&] { measure_launches(campaign, bench); });
  part("first points", [&] { measure_points(campaign, alone, true, shares.first); });
  part("loads", [&] { measure_loads(campaign, alone); });
  part("points", [&] { measure_points(campaign, alone, false, shares.points); });
  part("copies", [&] { measure_copies(campaign, alone); });
  part("work on two queues", [&] { measure_overlaps(campaign, bench); });
}

}  // namespace

Findings run_campaign(CampaignInputs inputs, Clock& clock) {
  CampaignState campaign{inputs, clock};
  measure_alone(campaign);
  if (!inputs.files_first) measure_files(campaign);
  for (std::size_t i = 0; i < inputs.sets.size(); ++i) {
    const double share = 1.0 / static_cast<double>(inputs.sets.size() - i);
    campaign.part("several ranks", [&] {
      RankSet together{inputs.sets[i], inputs.rank, campaign.tools()};
      measure_together(campaign, together, share);
    });
  }
  return campaign.finish();
}

Findings run_files_campaign(CampaignInputs inputs, Clock& clock) {
  CampaignState campaign{inputs, clock};
  campaign.found().machine = this_machine("storage and decoding alone");
  campaign.start();
  measure_files(campaign);
  return campaign.finish();
}

}  // namespace orrery::calibrate

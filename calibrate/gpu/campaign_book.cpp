#include "calibrate/gpu/campaign_book.hpp"

#include "calibrate/spelled.hpp"

namespace orrery::calibrate {

namespace {

Rules with_going_on(Rules rules) {
  rules.goes_on = true;
  return rules;
}

}  // namespace

CampaignBook::CampaignBook(GpuCampaignInputs& inputs, Clock& clock)
    : inputs_{inputs},
      clock_{clock},
      overseer_{std::move(inputs.telemetry)},
      harness_{clock, with_going_on(inputs.rules), inputs.seed} {
  found_.gpu = inputs.gpu;
}

bool CampaignBook::asked_to_stop() {
  if (inputs_.watcher && !inputs_.watcher(0, 0)) stopped_ = true;
  return stopped_;
}

void CampaignBook::measure(const std::vector<Subject*>& subjects, double share, const Taker& take) {
  const std::size_t failed = harness_.failures().size();
  const auto watcher = [this](std::size_t done, std::size_t all) {
    if (inputs_.watcher && !inputs_.watcher(done, all)) stopped_ = true;
    return !stopped_;
  };
  const auto taker = [&](const Measurement& each) {
    if (!each.disturbed) return take(each);
    ++found_.discarded_points;
  };
  const std::size_t found = harness_.measure(subjects, share, watcher, taker).size();
  found_.points_left_out +=
      static_cast<int>(subjects.size() - found - (harness_.failures().size() - failed));
}

void CampaignBook::keep(const Measurement& found, const Conditions& conditions, Json parts,
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

void CampaignBook::keep(Json raw) {
  if (inputs_.sample) inputs_.sample(raw);
  found_.raw.push_back(std::move(raw));
}

GpuFindings CampaignBook::finish() {
  if (!inputs_.rank) found_.missing.push_back("collectives: " + inputs_.why_no_collectives);
  if (!overseer_.knows()) {
    found_.missing.push_back("clocks and power: unknown, NVML does not know the GPU");
  }
  if (stopped_) found_.missing.push_back("what an interrupt left out");
  found_.discarded_runs = harness_.discarded_runs();
  const auto& failures = harness_.failures();
  found_.failures.insert(found_.failures.end(), failures.begin(), failures.end());
  return std::move(found_);
}

Json part_json(const std::string& what, Bytes size, const std::vector<Time>& times) {
  return {{"operation", what}, {"bytes", size.count()}, {"us", times_json(times)}};
}

}  // namespace orrery::calibrate

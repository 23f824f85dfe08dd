#pragma once
// State shared by the parts of a campaign: its inputs, the harness, and the findings so far.

#include <algorithm>
#include <string>
#include <vector>

#include "calibrate/campaign.hpp"

namespace orrery::calibrate {

class CampaignState {
 public:
  /// Both must outlive it.
  CampaignState(CampaignInputs& inputs, Clock& clock);

  const CampaignInputs& inputs() const { return inputs_; }
  Clock& clock() const { return clock_; }
  BenchTools tools() { return {clock_, monitor_, inputs_.sizes}; }
  /// True if the campaign was asked to stop.
  bool stopped() const { return stopped_; }
  /// Asks the watcher again: for work during which no point begins for seconds.
  bool asked_to_stop();
  Findings& found() { return found_; }

  /// Starts the budget.
  void start() { harness_.start(); }
  /// Runs work that does not count towards the budget; returns its time.
  template <class Work>
  Time outside_of_budget(Work work) {
    const Time begin = clock_.now();
    work();
    const Time taken = clock_.now() - begin;
    harness_.extend(taken);
    return taken;
  }
  /// Measures as many subjects as this share of the budget allows; `take` is called with each
  /// result that is not discarded.
  void measure(const std::vector<Subject*>& subjects, double share, const Taker& take);
  /// Records every run of a point, as measured.
  void keep(const Measurement& found, const Conditions& conditions, Json parts, int ranks = 1);
  /// Records a point that was not measured through a subject.
  void keep(Json raw);
  /// Runs work that is not a subject; its errors are listed if the rules go on after a failure,
  /// else thrown.
  template <class Work>
  void attempt(const std::string& what, Work work) {
    if (!inputs_.rules.goes_on) return work();
    try {
      work();
    } catch (const std::exception& failure) {
      found_.failures.push_back(what + ": " + failure.what());
    }
  }
  /// Runs one part of the campaign unless it was stopped, then calls `part_done` with the findings
  /// so far.
  template <class Work>
  void part(const std::string& what, Work work) {
    if (stopped_) return;
    attempt(what, work);
    if (inputs_.part_done) inputs_.part_done(found_);
  }
  /// Completes the findings with what is missing, discarded and failed.
  Findings finish();

 private:
  CampaignInputs& inputs_;
  Clock& clock_;
  ClockMonitor monitor_;
  Harness harness_;
  Findings found_;
  bool stopped_ = false;
};

/// One part of a point in the raw samples.
Json part_json(std::string_view what, Bytes size, const std::vector<Time>& times);

/// The subject of that name; null if there is none.
template <class Owned>
typename Owned::value_type::element_type* named(const Owned& subjects, const std::string& name) {
  const auto found =
      std::ranges::find_if(subjects, [&](const auto& each) { return each->name() == name; });
  return found == subjects.end() ? nullptr : found->get();
}

template <class Owned>
std::vector<Subject*> pointers_to(const Owned& owned) {
  std::vector<Subject*> subjects;
  for (const auto& each : owned) subjects.push_back(each.get());
  return subjects;
}

/// Cost of launching a small layer: kernel by kernel, and as a CUDA graph if the device has graphs.
void measure_launches(CampaignState& campaign, Bench& bench);
/// Blocks and single operations on a single rank.
void measure_points(CampaignState& campaign, RankSet& alone, bool first, double share);
/// Copies on the device, and between it and the host, pageable and page-locked.
void measure_copies(CampaignState& campaign, RankSet& alone);
/// Rate of GEMMs and attention that run for seconds, relative to short bursts.
void measure_loads(CampaignState& campaign, RankSet& alone);
/// Overlap of two queues on a single rank.
void measure_overlaps(CampaignState& campaign, Bench& bench);
void measure_storage(CampaignState& campaign);
/// Decoding of samples on one core.
void measure_decoding(CampaignState& campaign);
/// Concurrent ranks: their blocks, their collectives, the host's cost of launching one, and compute
/// that overlaps one. For one rank only the launch is measured.
void measure_together(CampaignState& campaign, RankSet& together, double share);

}  // namespace orrery::calibrate

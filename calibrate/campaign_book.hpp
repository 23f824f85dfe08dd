#pragma once
// What the parts of a campaign share: its inputs, the harness, and what was found so far.

#include <algorithm>
#include <string>
#include <vector>

#include "calibrate/campaign.hpp"

namespace orrery::calibrate {

class CampaignBook {
 public:
  /// Both outlive the book.
  CampaignBook(CampaignInputs& inputs, Clock& clock);

  const CampaignInputs& inputs() const { return inputs_; }
  Clock& clock() const { return clock_; }
  BenchTools tools() { return {clock_, monitor_, inputs_.sizes}; }
  /// Was the campaign asked to stop?
  bool stopped() const { return stopped_; }
  /// ... asks again, where no point begins for seconds.
  bool asked_to_stop();
  Findings& found() { return found_; }

  /// The budget begins now.
  void start() { harness_.start(); }
  /// Work that is none of the budget; its time.
  template <class Work>
  Time outside_of_budget(Work work) {
    const Time begin = clock_.now();
    work();
    const Time taken = clock_.now() - begin;
    harness_.extend(taken);
    return taken;
  }
  /// What the budget's share reaches, each handed over as it comes, unless it is discarded.
  void measure(const std::vector<Subject*>& subjects, double share, const Taker& take);
  /// Every run of a point, as measured.
  void keep(const Measurement& found, const Conditions& conditions, Json parts, int ranks = 1);
  /// A point that no subject measured, as it is written.
  void keep(Json raw);
  /// Errors of what is no subject: listed where the rules go on after a failure, else thrown.
  template <class Work>
  void attempt(const std::string& what, Work work) {
    if (!inputs_.rules.goes_on) return work();
    try {
      work();
    } catch (const std::exception& failure) {
      found_.failures.push_back(what + ": " + failure.what());
    }
  }
  /// One part of the campaign, unless stopped before; what was found by then is handed on.
  template <class Work>
  void part(const std::string& what, Work work) {
    if (stopped_) return;
    attempt(what, work);
    if (inputs_.part_done) inputs_.part_done(found_);
  }
  /// Closes the book: what is missing, discarded and failed.
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

/// The subject of that name; nothing: it is none of these.
template <class Owned>
typename Owned::value_type::element_type* named(const Owned& subjects, const std::string& name) {
  const auto found = std::find_if(subjects.begin(), subjects.end(),
                                  [&](const auto& each) { return each->name() == name; });
  return found == subjects.end() ? nullptr : found->get();
}

/// What launching a small layer costs: kernel by kernel, and as a CUDA graph where there are any.
void measure_launches(CampaignBook& book, Bench& bench);
/// Blocks and single operations of a rank alone.
void measure_points(CampaignBook& book, RankSet& alone, bool first, double share);
/// Copies on the device, and between it and the host, pageable and page-locked.
void measure_copies(CampaignBook& book, RankSet& alone);
/// What products and attention keep of their rate when they run for seconds.
void measure_loads(CampaignBook& book, RankSet& alone);
/// Work on two queues of a rank alone.
void measure_overlaps(CampaignBook& book, Bench& bench);
void measure_storage(CampaignBook& book);
/// Ranks at once: their blocks, their collectives, what starting one costs the host, and compute
/// during one. A communicator of one rank has no collectives.
void measure_together(CampaignBook& book, RankSet& together, double share);

}  // namespace orrery::calibrate

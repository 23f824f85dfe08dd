#pragma once
// What the parts of a campaign on GPUs share: its inputs, the harness, and what was found so far.

#include <algorithm>
#include <string>
#include <vector>

#include "calibrate/gpu/gpu_campaign.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

class CampaignBook {
 public:
  /// Both outlive the book.
  CampaignBook(GpuCampaignInputs& inputs, Clock& clock);

  const GpuCampaignInputs& inputs() const { return inputs_; }
  Clock& clock() const { return clock_; }
  Overseer& overseer() { return overseer_; }
  /// Was the campaign asked to stop?
  bool stopped() const { return stopped_; }
  /// ... asks again, where no point begins for seconds.
  bool asked_to_stop();
  GpuFindings& found() { return found_; }

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
  /// What the budget's share reaches, each handed over as it comes; points of a GPU that was
  /// throttled all along are counted and left out.
  void measure(const std::vector<Subject*>& subjects, double share, const Taker& take);
  /// Every run of a point, as measured.
  void keep(const Measurement& found, const Conditions& conditions, Json parts, int ranks = 1);
  /// A point that no subject measured, as it is written.
  void keep(Json raw);
  /// Errors of what is no subject: listed, not thrown.
  template <class Work>
  void attempt(const std::string& what, Work work) {
    try {
      work();
    } catch (const std::exception& failure) {
      found_.failures.push_back(what + ": " + failure.what());
    }
  }
  /// One part of the campaign, unless stopped before. What fails in it is listed, and what was
  /// found by then is handed on.
  template <class Work>
  void part(const std::string& what, Work work) {
    if (stopped_) return;
    attempt(what, work);
    if (inputs_.part_done) inputs_.part_done(found_);
  }
  /// Closes the book: what is missing, discarded and failed.
  GpuFindings finish();

 private:
  GpuCampaignInputs& inputs_;
  Clock& clock_;
  Overseer overseer_;
  Harness harness_;
  GpuFindings found_;
  bool stopped_ = false;
};

/// One part of a point in the raw samples.
Json part_json(const std::string& what, Bytes size, const std::vector<Time>& times);

/// The subject of that name; nothing: it is none of these.
template <class Owned>
typename Owned::value_type::element_type* named(const Owned& subjects, const std::string& name) {
  const auto found = std::find_if(subjects.begin(), subjects.end(),
                                  [&](const auto& each) { return each->name() == name; });
  return found == subjects.end() ? nullptr : found->get();
}

/// What a launch of a small layer costs as a CUDA graph, where the device has them.
void measure_graphs(CampaignBook& book, QueueBench& bench);
/// Copies on the device, and between it and the host, pageable and page-locked.
void measure_copies(CampaignBook& book, QueueBench& bench);
/// What products and attention keep of their rate when they run for seconds.
void measure_loads(CampaignBook& book, QueueBench& bench);
/// Work on two queues at once that one GPU has.
void measure_beside(CampaignBook& book, QueueBench& bench);
/// Collectives of all GPUs, what it takes the host to start one, and compute beside one. Of a lone
/// GPU a communicator of one rank alone.
void measure_communication(CampaignBook& book);

}  // namespace orrery::calibrate

#include "calibrate/gpu/gpu_campaign.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/gpu/work_together.hpp"
#include "calibrate/spelled.hpp"
#include "models/pricing/calibrated.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using models::Collective;
using models::Operation;
using models::OpKind;

// How the budget is parted: kernels first, as everything needs them.
constexpr double share_of_launches = 0.05;
constexpr double share_of_points = 0.85;       // with one GPU
constexpr double share_beside_messages = 0.6;  // with several
constexpr double share_of_copies = 0.4;        // of what is then left
constexpr double share_of_load = 0.1;          // of the budget
constexpr Bytes message_beside = 64_MiB;

class OwnClock final : public Clock {
 public:
  explicit OwnClock(Clock& host) : host_{host} {}
  Time now() override { return host_.now(); }
  Time reference_work() override { return Time{1}; }
  Time busy() override { return host_.busy(); }

 private:
  Clock& host_;
};

class GpuCampaign {
 public:
  GpuCampaign(GpuCampaignInputs& inputs, Clock& clock)
      : inputs_{inputs},
        clock_{clock},
        overseer_{std::move(inputs.telemetry)},
        harness_{clock, with_going_on(inputs.rules), inputs.seed} {}

  GpuFindings run() {
    found_.gpu = inputs_.gpu;
    {
      const auto device = inputs_.device();
      found_.machine = this_machine(device->description());
      QueueBench bench{*device, clock_, overseer_, inputs_.sizes};
      found_.launch.mark = bench.mark_cost();
      ask_for_fp8(*device);
      measure_launches(bench);
      measure_points(bench);
      measure_copies(bench);
      if (!stopped_ && inputs_.load) measure_load(bench);
      if (inputs_.notes) found_.notes = inputs_.notes(*device);
      if (inputs_.fused) found_.fused = inputs_.fused(*device);
    }
    if (inputs_.rank && !stopped_) measure_several();
    tell_missing();
    found_.discarded_runs = harness_.discarded_runs();
    const auto& failures = harness_.failures();
    found_.failures.insert(found_.failures.end(), failures.begin(), failures.end());
    return std::move(found_);
  }

 private:
  static Rules with_going_on(Rules rules) {
    rules.goes_on = true;
    return rules;
  }

  std::vector<Measurement> measure(const std::vector<Subject*>& subjects, double share) {
    const std::size_t failed = harness_.failures().size();
    std::vector<Measurement> found =
        harness_.measure(subjects, share, [this](std::size_t done, std::size_t all) {
          if (inputs_.watcher && !inputs_.watcher(done, all)) stopped_ = true;
          return !stopped_;
        });
    found_.points_left_out +=
        static_cast<int>(subjects.size() - found.size() - (harness_.failures().size() - failed));
    const auto throttled = [](const Measurement& each) { return each.disturbed; };
    const auto kept = std::remove_if(found.begin(), found.end(), throttled);
    found_.discarded_points += static_cast<int>(found.end() - kept);
    found.erase(kept, found.end());
    return found;
  }

  void keep(const Measurement& found, const Conditions& conditions, Json parts) {
    found_.raw.push_back({{"name", found.name},
                          {"ranks", 1},
                          {"settled", found.settled},
                          {"disturbed", found.disturbed},
                          {"spread", found.spread},
                          {"discarded_runs", found.discarded_runs},
                          {"conditions", to_json(conditions)},
                          {"parts", std::move(parts)}});
  }

  static Json part_json(const std::string& what, Bytes size, const std::vector<Time>& times) {
    return {{"operation", what}, {"bytes", size.count()}, {"us", times_json(times)}};
  }

  template <class Owned>
  static const typename Owned::value_type::element_type& named(const Owned& subjects,
                                                               const std::string& name) {
    const auto found = std::find_if(subjects.begin(), subjects.end(),
                                    [&](const auto& each) { return each->name() == name; });
    ensure(found != subjects.end(), "a measurement is of one of its subjects");
    return **found;
  }

  template <class Owned>
  static bool holds(const Owned& subjects, const std::string& name) {
    return std::any_of(subjects.begin(), subjects.end(),
                       [&](const auto& each) { return each->name() == name; });
  }

  void ask_for_fp8(const executor::Device& device) {
    Operation product;
    product.kind = OpKind::gemm;
    product.dtype = models::DType::fp8;
    const std::string why = device.refusal(product);
    if (!why.empty()) found_.missing.push_back("fp8: " + why);
  }

  void measure_launches(QueueBench& bench) {
    std::vector<std::unique_ptr<LaunchSubject>> owned;
    std::vector<Subject*> subjects;
    for (const TimedBlock& each : inputs_.launches) {
      if (runnable(*each.block, bench.device()).empty()) continue;
      owned.push_back(std::make_unique<LaunchSubject>(each, bench));
      subjects.push_back(owned.back().get());
    }
    LaunchCosts& costs = found_.launch;
    for (const Measurement& found : measure(subjects, share_of_launches)) {
      if (found.name.find("forward") != std::string::npos) costs.forward = found.median(0);
      if (found.name.find("backward") != std::string::npos) costs.backward = found.median(0);
      if (found.name.find("one kernel") != std::string::npos) {
        costs.small = found.median(0);
        costs.small_on_queue = found.median(1);
      }
      keep(found, {},
           Json::array({part_json("host, one launch", Bytes{}, found.parts[0]),
                        part_json("queue, one operation", Bytes{}, found.parts[1])}));
    }
  }

  void measure_points(QueueBench& bench) {
    std::vector<std::unique_ptr<BlockOnQueue>> blocks;
    std::vector<std::unique_ptr<OperationOnQueue>> operations;
    std::vector<Subject*> subjects;
    for (const TimedBlock& each : inputs_.blocks) {
      if (footprint(*each.block) > inputs_.most_memory) continue;
      blocks.push_back(std::make_unique<BlockOnQueue>(each, bench));
      if (blocks.back()->parts() == 0) blocks.pop_back();
    }
    for (const TimedBlock& each : inputs_.operations) {
      if (footprint(*each.block) > inputs_.most_memory) continue;
      if (runnable(*each.block, bench.device()).empty()) continue;
      operations.push_back(std::make_unique<OperationOnQueue>(each, bench));
    }
    for (const auto& each : blocks) subjects.push_back(each.get());
    for (const auto& each : operations) subjects.push_back(each.get());
    const double share = inputs_.rank ? share_beside_messages : share_of_points;
    for (const Measurement& found : measure(subjects, share)) {
      Json parts = Json::array();
      const bool block = holds(blocks, found.name);
      for (std::size_t p = 0; p < found.parts.size(); ++p) {
        const Operation& op = block ? *named(blocks, found.name).operations()[p]
                                    : named(operations, found.name).operation();
        take(op, found.median(p));
        Json part = described(op);
        part["us"] = times_json(found.parts[p]);
        parts.push_back(std::move(part));
      }
      keep(found,
           block ? named(blocks, found.name).conditions()
                 : named(operations, found.name).conditions(),
           std::move(parts));
    }
  }

  /// One operation's median time, under its kind.
  void take(const Operation& op, Time time) {
    time = std::max(time, Time{1});
    const hardware::GemmShape shape{op.gemm.m, op.gemm.n, op.gemm.k};
    if (op.kind == OpKind::gemm) {
      found_.products[op.dtype].push_back({shape, op.flops, op.bytes, time});
    } else if (op.kind == OpKind::batched_gemm) {
      const std::int64_t batch = op.gemm.batch;
      found_.batched[op.dtype].push_back({shape, Flops{op.flops.count() / batch},
                                          Bytes{op.bytes.count() / batch},
                                          std::max(Time{time.count() / batch}, Time{1})});
    } else if (op.kind == OpKind::attention || op.kind == OpKind::attention_backward) {
      const bool forward = op.kind == OpKind::attention;
      found_.attention.push_back(
          {{.work = op.flops,
            .seq = op.attention.seq,
            .head_dim = static_cast<int>(op.attention.head_dim),
            .causal = op.attention.causal,
            .pass = forward ? hardware::Pass::forward : hardware::Pass::backward},
           time});
    } else if (op.bytes > Bytes{0}) {
      found_.kernels[models::kernel_key(op)].push_back({op.bytes, time});
      found_.kernels[std::string{models::name(op.kind)}].push_back({op.bytes, time});
    }
  }

  void measure_copies(QueueBench& bench) {
    std::vector<std::unique_ptr<CopyOnQueue>> inside;
    std::vector<std::unique_ptr<HostCopy>> outside;
    std::vector<Subject*> subjects;
    for (const Bytes size : inputs_.copies) {
      inside.push_back(std::make_unique<CopyOnQueue>(size, bench));
      outside.push_back(std::make_unique<HostCopy>(size, bench));
      subjects.push_back(inside.back().get());
      subjects.push_back(outside.back().get());
    }
    for (const Measurement& found : measure(subjects, share_of_copies)) {
      if (holds(inside, found.name)) {
        const CopyOnQueue& copy = named(inside, found.name);
        found_.copies.push_back({"on the device", copy.size(), found.median(0)});
        keep(found, copy.conditions(),
             Json::array({part_json("on the device", copy.size(), found.parts[0])}));
        continue;
      }
      const Bytes size = named(outside, found.name).size();
      found_.copies.push_back({"to the device", size, found.median(0)});
      found_.copies.push_back({"from the device", size, found.median(1)});
      keep(found, {},
           Json::array({part_json("to the device", size, found.parts[0]),
                        part_json("from the device", size, found.parts[1])}));
    }
  }

  /// Errors of what is no subject: told, not thrown.
  template <class Work>
  void attempt(const std::string& what, Work work) {
    try {
      work();
    } catch (const std::runtime_error& failure) {
      found_.failures.push_back(what + ": " + failure.what());
    }
  }

  void measure_load(QueueBench& bench) {
    attempt("load", [&] {
      const Time tenth = scaled(inputs_.rules.budget, share_of_load);
      found_.load = put_under_load(*inputs_.load, bench, std::min(inputs_.load_time, tenth));
    });
    if (inputs_.rank) return;
    attempt("compute beside a copy",
            [&] { found_.beside.push_back(beside_copy(*inputs_.load, bench)); });
  }

  void measure_several() {
    attempt("several GPUs", [&] {
      GpuCrew crew{inputs_.gpu.count, inputs_.rank};
      measure_collectives(crew);
      if (!inputs_.load || stopped_) return;
      const Bytes size = std::min(message_beside, inputs_.messages.back());
      found_.beside.push_back(beside_all_reduce(*inputs_.load, crew, size));
    });
  }

  static std::vector<Collective> kinds_for(int ranks) {
    std::vector<Collective> kinds{Collective::all_reduce, Collective::all_gather,
                                  Collective::reduce_scatter, Collective::broadcast,
                                  Collective::all_to_all};
    if (ranks == 2) kinds.push_back(Collective::send_receive);
    return kinds;
  }

  void measure_collectives(GpuCrew& crew) {
    const int ranks = crew.team.ranks();
    std::vector<std::unique_ptr<QueueCollective>> owned;
    std::vector<Subject*> subjects;
    for (const Collective kind : kinds_for(ranks)) {
      for (const Bytes size : inputs_.messages) {
        owned.push_back(std::make_unique<QueueCollective>(kind, cut_evenly(size, ranks), crew));
        subjects.push_back(owned.back().get());
      }
    }
    std::map<Collective, std::map<Bytes, Time>> tables;
    for (const Measurement& found : measure(subjects, 0.8)) {
      const QueueCollective& of = named(owned, found.name);
      tables[of.kind()][of.size()] = found.median(0);
      keep(found, {},
           Json::array(
               {part_json(std::string{models::name(of.kind())}, of.size(), found.parts[0])}));
      found_.raw.back()["ranks"] = ranks;
    }
    for (const auto& [kind, points] : tables) {
      found_.collectives.push_back({std::string{models::name(kind)}, ranks, 1,
                                    hardware::SizeTable{{points.begin(), points.end()}}});
    }
  }

  void tell_missing() {
    if (!inputs_.rank) found_.missing.push_back("collectives: " + inputs_.why_no_collectives);
    if (!overseer_.knows()) {
      found_.missing.push_back("clocks and power: unknown, NVML does not know the GPU");
    }
    if (stopped_) found_.missing.push_back("what an interrupt left out");
  }

  GpuCampaignInputs& inputs_;
  Clock& clock_;
  Overseer overseer_;
  Harness harness_;
  GpuFindings found_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Clock> gpu_clock(Clock& host) {
  return std::make_unique<OwnClock>(host);
}

GpuFindings run_gpu_campaign(GpuCampaignInputs inputs, Clock& clock) {
  return GpuCampaign{inputs, clock}.run();
}

}  // namespace orrery::calibrate

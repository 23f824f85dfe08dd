#include "calibrate/gpu/gpu_campaign.hpp"

#include <algorithm>

#include "calibrate/gpu/campaign_book.hpp"
#include "calibrate/spelled.hpp"
#include "models/pricing/calibrated.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using models::Operation;
using models::OpKind;

// How the budget is parted: the shapes of the plans that are run next first, then all kernels, as
// everything needs them.
constexpr double share_of_launches = 0.05;
constexpr double share_of_first = 0.4;
constexpr double share_of_points = 0.75;       // of what is left, with one GPU
constexpr double share_beside_messages = 0.4;  // ... with several

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
      : inputs_{inputs}, book_{inputs, clock}, found_{book_.found()} {}

  GpuFindings run() {
    {
      const auto device = inputs_.device();
      found_.machine = this_machine(device->description());
      QueueBench bench{*device, book_.clock(), book_.overseer(), inputs_.sizes};
      found_.launch.mark = bench.mark_cost();
      ask_for_fp8(*device);
      book_.start();
      part(*device, "launches", [&] { measure_launches(bench); });
      part(*device, "graphs", [&] { measure_graphs(book_, bench); });
      part(*device, "first points", [&] { measure_points(bench, true, share_of_first); });
      part(*device, "loads", [&] { measure_loads(book_, bench); });
      const double share = inputs_.rank ? share_beside_messages : share_of_points;
      part(*device, "points", [&] { measure_points(bench, false, share); });
      part(*device, "copies", [&] { measure_copies(book_, bench); });
      part(*device, "work on two queues", [&] { measure_beside(book_, bench); });
    }
    book_.part("communication", [&] { measure_communication(book_); });
    return book_.finish();
  }

 private:
  /// One part, and what the device chose by itself meanwhile.
  template <class Work>
  void part(const executor::Device& device, const char* name, Work work) {
    book_.part(name, [&] {
      work();
      if (inputs_.notes) found_.notes = inputs_.notes(device);
      if (inputs_.fused) found_.fused = inputs_.fused(device);
    });
  }

  void ask_for_fp8(const executor::Device& device) {
    Operation product;
    product.kind = OpKind::gemm;
    product.dtype = models::DType::fp8;
    const std::string why = device.refusal(product);
    if (!why.empty()) found_.missing.push_back(why);
  }

  /// Asks the device for every operation: what it takes it may compile now.
  void set_up(QueueBench& bench, bool first) {
    for (const TimedBlock& each : inputs_.blocks) {
      if (each.first != first || footprint(*each.block) > inputs_.most_memory) continue;
      if (book_.asked_to_stop()) return;
      book_.attempt(each.name, [&] {
        auto block = std::make_unique<BlockOnQueue>(each, bench);
        if (block->parts() > 0) blocks_.push_back(std::move(block));
      });
    }
    for (const TimedBlock& each : inputs_.operations) {
      if (each.first != first || footprint(*each.block) > inputs_.most_memory) continue;
      if (book_.asked_to_stop()) return;
      book_.attempt(each.name, [&] {
        if (runnable(*each.block, bench.device()).empty()) return;
        operations_.push_back(std::make_unique<OperationOnQueue>(each, bench));
      });
    }
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
    book_.measure(subjects, share_of_launches, [&](const Measurement& found) {
      if (found.name.find("forward") != std::string::npos) costs.forward = found.median(0);
      if (found.name.find("backward") != std::string::npos) costs.backward = found.median(0);
      if (found.name.find("one kernel") != std::string::npos) {
        costs.small = found.median(0);
        costs.small_on_queue = found.median(1);
      }
      book_.keep(found, {},
                 Json::array({part_json("host, one launch", Bytes{}, found.parts[0]),
                              part_json("queue, one operation", Bytes{}, found.parts[1])}));
    });
  }

  void measure_points(QueueBench& bench, bool first, double share) {
    blocks_.clear();
    operations_.clear();
    found_.setting_up += book_.outside_of_budget([&] { set_up(bench, first); });
    std::vector<Subject*> subjects;
    for (const auto& each : blocks_) subjects.push_back(each.get());
    for (const auto& each : operations_) subjects.push_back(each.get());
    book_.measure(subjects, share, [&](const Measurement& found) { take_point(found); });
  }

  void take_point(const Measurement& found) {
    Json parts = Json::array();
    const BlockOnQueue* const block = named(blocks_, found.name);
    const OperationOnQueue* const alone = named(operations_, found.name);
    for (std::size_t p = 0; p < found.parts.size(); ++p) {
      const Operation& op = block ? block->timed().priced_as(*block->operations()[p])
                                  : alone->timed().priced_as(alone->operation());
      take(op, found.median(p));
      Json part = described(op);
      part["us"] = times_json(found.parts[p]);
      parts.push_back(std::move(part));
    }
    book_.keep(found, block ? block->conditions() : alone->conditions(), std::move(parts));
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
    } else if (op.kind == OpKind::grouped_gemm) {
      found_.grouped.push_back({op, time});
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

  GpuCampaignInputs& inputs_;
  CampaignBook book_;
  GpuFindings& found_;  // the book's
  std::vector<std::unique_ptr<BlockOnQueue>> blocks_;
  std::vector<std::unique_ptr<OperationOnQueue>> operations_;
};

}  // namespace

std::unique_ptr<Clock> gpu_clock(Clock& host) {
  return std::make_unique<OwnClock>(host);
}

GpuFindings run_gpu_campaign(GpuCampaignInputs inputs, Clock& clock) {
  return GpuCampaign{inputs, clock}.run();
}

}  // namespace orrery::calibrate

#include "calibrate/gpu/gpu_campaign.hpp"

#include <algorithm>

#include "calibrate/gpu/campaign_book.hpp"
#include "calibrate/gpu/work_together.hpp"
#include "calibrate/spelled.hpp"
#include "models/pricing/calibrated.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using models::Operation;
using models::OpKind;

// How the budget is parted: kernels first, as everything needs them.
constexpr double share_of_launches = 0.05;
constexpr double share_of_points = 0.85;       // with one GPU
constexpr double share_beside_messages = 0.6;  // with several
constexpr double share_of_load = 0.1;          // of the budget

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
      measure_launches(bench);
      measure_graphs(book_, bench);
      measure_points(bench);
      measure_copies(book_, bench);
      if (!book_.stopped() && inputs_.load) measure_load(bench);
      if (inputs_.notes) found_.notes = inputs_.notes(*device);
      if (inputs_.fused) found_.fused = inputs_.fused(*device);
    }
    if (!book_.stopped()) measure_communication(book_);
    return book_.finish();
  }

 private:
  void ask_for_fp8(const executor::Device& device) {
    Operation product;
    product.kind = OpKind::gemm;
    product.dtype = models::DType::fp8;
    const std::string why = device.refusal(product);
    if (!why.empty()) found_.missing.push_back(why);
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
    for (const Measurement& found : book_.measure(subjects, share_of_launches)) {
      if (found.name.find("forward") != std::string::npos) costs.forward = found.median(0);
      if (found.name.find("backward") != std::string::npos) costs.backward = found.median(0);
      if (found.name.find("one kernel") != std::string::npos) {
        costs.small = found.median(0);
        costs.small_on_queue = found.median(1);
      }
      book_.keep(found, {},
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
    for (const Measurement& found : book_.measure(subjects, share)) {
      Json parts = Json::array();
      const BlockOnQueue* const block = named(blocks, found.name);
      const OperationOnQueue* const alone = named(operations, found.name);
      for (std::size_t p = 0; p < found.parts.size(); ++p) {
        const Operation& op = block ? *block->operations()[p] : alone->operation();
        take(op, found.median(p));
        Json part = described(op);
        part["us"] = times_json(found.parts[p]);
        parts.push_back(std::move(part));
      }
      book_.keep(found, block ? block->conditions() : alone->conditions(), std::move(parts));
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

  void measure_load(QueueBench& bench) {
    book_.attempt("load", [&] {
      const Time tenth = scaled(inputs_.rules.budget, share_of_load);
      found_.load = put_under_load(*inputs_.load, bench, std::min(inputs_.load_time, tenth));
    });
    measure_beside(book_, bench);
  }

  GpuCampaignInputs& inputs_;
  CampaignBook book_;
  GpuFindings& found_;  // the book's
};

}  // namespace

std::unique_ptr<Clock> gpu_clock(Clock& host) {
  return std::make_unique<OwnClock>(host);
}

GpuFindings run_gpu_campaign(GpuCampaignInputs inputs, Clock& clock) {
  return GpuCampaign{inputs, clock}.run();
}

}  // namespace orrery::calibrate

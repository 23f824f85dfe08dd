#pragma once
// A campaign on queues, with threads for GPUs.

#include <memory>

#include "calibrate/campaign.hpp"
#include "models/operations/grouped.hpp"
#include "tests/calibrate/small_block.hpp"
#include "tests/executor/queued_fabric.hpp"

namespace orrery::calibrate {

using models::Block;
using models::Operation;
using models::OpKind;
using models::Role;

inline BenchSizes tiny_bench() {
  return {
      .busy_copy = 64_KiB, .uncached = 4_KiB, .interval = 10_us, .most_busy_copies = 1, .marks = 4};
}

inline std::unique_ptr<executor::Device> queued() {
  return std::make_unique<executor::QueuedDevice>(executor::QueuedSettings{});
}

/// Always the same reading.
class Steady final : public Telemetry {
 public:
  explicit Steady(std::uint64_t reasons) : reasons_{reasons} {}
  std::optional<Reading> read() override {
    return Reading{Frequency{1.5e9}, Frequency{2e9}, Power{500}, reasons_};
  }

 private:
  std::uint64_t reasons_;
};

inline GpuIdentity h200() {
  return {.name = "NVIDIA H200",
          .memory = Bytes{std::int64_t{143771} << 20},
          .capability = 90,
          .count = 1,
          .versions = "CUDA 13.0"};
}

/// A rank that communicates with none, on a device made so.
template <class Make>
RankSet::Make alone_on(Make make) {
  return [make](int, int) { return RankParts{.device = make()}; };
}

/// Inputs of a campaign over the block, its product alone, and copies.
struct Small {
  Block block = small_block();
  Block product = single(block, block.operations[0]);
  Block add = single(block, block.operations[1]);
  Block experts =
      models::experts_block({.rows = {3, 0, 2}, .k = 4, .n = 6, .dtype = models::DType::fp32},
                            models::ExpertsProduct::forward);

  TimedBlock alone(const char* name, const Block& of) const {
    return {.name = name, .block = &of, .alone = true, .compared = true};
  }
  CampaignInputs inputs(std::uint64_t reasons = 0) {
    CampaignInputs made;
    made.gpu = h200();
    made.points = {
        {.name = "small", .block = &block}, alone("product", product), alone("experts", experts)};
    made.launches = {{"a layer.forward", &block}, {"one kernel", &add}};
    made.loads = {alone("gemm 8 x 4 x 6", product)};
    made.copies = made.host_copies = {4_KiB, 64_KiB};
    made.messages = {1_KiB, 4_KiB};
    made.load_time = 10_ms;
    made.alone = alone_on(queued);
    made.why_no_collectives = "there is one GPU";
    made.telemetry = std::make_unique<Steady>(reasons);
    made.notes = [](const executor::Device&) { return std::vector<std::string>{"a choice"}; };
    made.rules.budget = 600_s;  // what points take is bounded below; machines may be busy
    made.rules.point = 20_ms;
    made.rules.batch = 2_ms;
    made.rules.goes_on = true;
    made.rules.watches_host = false;
    made.disturbed = Disturbed::discarded;
    made.sizes = tiny_bench();
    return made;
  }
};

inline Findings campaign(CampaignInputs inputs) {
  const auto clock = machine_clock();
  return run_campaign(std::move(inputs), *clock);
}

/// Ranks that are threads, each with queues of its own.
inline RankSet::Make queued_rank(executor::ThreadWorld& world) {
  return [&world](int rank, int) {
    RankParts made;
    auto device = std::make_unique<executor::QueuedDevice>(executor::QueuedSettings{});
    made.fabric = std::make_unique<executor::QueuedFabric>(world, rank, *device);
    made.device = std::move(device);
    return made;
  };
}

}  // namespace orrery::calibrate

// What a campaign on GPUs finds, never how fast.
#include "tests/calibrate/gpu_campaign.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "executor/errors.hpp"

namespace orrery::calibrate {

TEST_CASE("A campaign on one GPU finds products, kernels, copies, launches and a load") {
  Small small;
  const Findings found = campaign(small.inputs());
  CHECK(found.failures.empty());
  REQUIRE(found.products.size() == 1);
  const auto& products = found.products.at(models::DType::fp32);
  REQUIRE(products.size() == 2);  // in its block, and alone
  CHECK(products[0].shape.k == 6);
  REQUIRE(found.grouped.size() == 1);
  CHECK(found.grouped[0].op.group_rows() == std::vector<std::int64_t>{3, 0, 2});
  CHECK(found.kernels.at("add 2>1").front().traffic == 384_B);
  CHECK(found.kernels.count("gemm") == 0);
  CHECK(found.copies.size() == 2 * 5);  // inside, there and back, and page-locked there and back
  CHECK(found.launch.forward.has_value());
  CHECK_FALSE(found.launch.backward.has_value());  // no such block was given
  CHECK(found.launch.small_on_queue.value() > Time{});
  CHECK(found.launch.graph.value() > Time{});
  CHECK(found.launch.graph_kernel.value() > Time{});
  CHECK_FALSE(found.launch.communication.has_value());  // there is no NCCL
  REQUIRE(found.overlaps.size() == 4);
  CHECK(found.overlaps[0].kernel == "copy from page-locked memory 65536 B");
  CHECK(found.overlaps[0].other == "copy to page-locked memory 65536 B");
  CHECK(found.overlaps[1].other == "copy from page-locked memory 65536 B");
  CHECK(found.overlaps[2].other == "copy to page-locked memory 65536 B");
  CHECK(found.overlaps[3].other == "copy on the device 65536 B");
  CHECK_FALSE(found.overlap_with_communication.has_value());  // a copy only stands for one
  for (const NamedOverlap& each : found.overlaps) CHECK(each.times.kernel_overlapped > Time{});
  REQUIRE(found.loads.size() == 1);
  CHECK(found.loads[0].of == SustainedLoad::Of::product);
  CHECK(found.loads[0].isolated > Time{});
  CHECK(found.loads[0].sustained > Time{});
  CHECK(found.loads[0].conditions.processor == Frequency{1.5e9});
  CHECK(found.loads[0].bursts.power == Power{500});
  CHECK(found.notes == std::vector<std::string>{"a choice"});
  CHECK(found.missing.back() == "collectives: there is one GPU");
  for (const Json& point : found.raw) {
    for (const Json& part : point["parts"]) CHECK_FALSE(part["us"].empty());
  }
}

// Every look says 0x40, too hot: no run counts. Launches are the host's and copies by the host's
// clock are, so they stay.
TEST_CASE("Points of a throttled GPU are discarded and counted") {
  Small small;
  const Findings found = campaign(small.inputs(hardware_thermal));
  CHECK(found.products.empty());
  CHECK(found.kernels.empty());
  // The block, two products, the load's bursts, two copies inside, two page-locked.
  CHECK(found.discarded_points == 8);
  CHECK(found.loads.empty());
  CHECK(found.launch.forward.has_value());
}

TEST_CASE("A power cap is what a large product runs into: kept, and reported") {
  Small small;
  const Findings found = campaign(small.inputs(power_cap));
  CHECK(found.discarded_points == 0);
  REQUIRE(found.loads.size() == 1);
  CHECK(found.loads[0].conditions.power_capped == 1);
  CHECK(words(found.loads[0].conditions.reasons) == "power cap");
}

TEST_CASE("A kernel that fails is named, and the rest is measured") {
  /// A product that throws.
  class Failing final : public executor::CpuDevice {
   public:
    void run(const executor::Kernel& kernel) override {
      if (kernel.operation->kind == OpKind::gemm) {
        throw executor::RunFailure{executor::Exit::local_failure, "no such product"};
      }
      CpuDevice::run(kernel);
    }
  };
  Small small;
  CampaignInputs inputs = small.inputs();
  inputs.alone = alone_on([] { return std::make_unique<Failing>(); });
  inputs.launches = {{"one kernel", &small.add}};
  inputs.points = {{"sum", &small.add}, small.alone("product", small.product)};
  const Findings found = campaign(std::move(inputs));
  CHECK(found.products.empty());
  CHECK(found.kernels.count("add") == 1);
  REQUIRE(found.failures.size() == 4);  // work on two queues twice, then subjects
  CHECK(found.failures[0] == "compute during page-locked copies: no such product");
  CHECK(found.failures[2] == "gemm 8 x 4 x 6: no such product");
  CHECK(found.failures[3] == "product: no such product");
}

TEST_CASE("A device without CUDA graphs is reported, not timed") {
  Small small;
  CampaignInputs inputs = small.inputs();
  inputs.alone = alone_on([] { return std::make_unique<executor::CpuDevice>(); });
  const Findings found = campaign(std::move(inputs));
  CHECK_FALSE(found.launch.graph.has_value());
  CHECK(std::count(found.missing.begin(), found.missing.end(),
                   "CUDA graphs: the device has none") == 1);
}

// Two GPUs: six collectives of two sizes each, and the product next to an all-reduce.
TEST_CASE("Several GPUs measure their collectives, and compute during one") {
  Small small;
  CampaignInputs inputs = small.inputs();
  executor::ThreadWorld world{2};
  inputs.gpu->count = 2;
  inputs.why_no_collectives.clear();
  inputs.rank = queued_rank(world);
  inputs.sets = {2};
  const Findings found = campaign(std::move(inputs));
  CHECK(found.failures.empty());
  REQUIRE(found.collectives.size() == 6);
  CHECK(found.collectives[0].operation == "all_reduce");
  CHECK(found.collectives[0].ranks == 2);
  CHECK(found.collectives[0].times.points().size() == 2);
  REQUIRE(found.overlaps.size() == 4);  // three of page-locked copies
  CHECK(found.overlaps[3].other == "all_reduce 2 ranks 4096 B");
  CHECK(found.overlap_with_communication.value().kernel == found.overlaps[3].times.kernel);
  CHECK(found.launch.communication.value() > Time{});
  CHECK(found.launch.communication_ranks == 2);
}

TEST_CASE("A lone GPU measures what a communicator of one rank costs its host, and nothing else") {
  Small small;
  CampaignInputs inputs = small.inputs();
  executor::ThreadWorld world{1};
  inputs.rank = queued_rank(world);
  inputs.sets = {1};
  const Findings found = campaign(std::move(inputs));
  CHECK(found.failures.empty());
  CHECK(found.launch.communication.value() > Time{});
  CHECK(found.launch.communication_ranks == 1);
  CHECK(found.collectives.empty());
  CHECK(found.raw.back()["name"] == "launch of all_reduce 1 ranks 4096 B");
}

// Asking for a shape takes as long as compiling a plan for it would, three times the budget in all.
TEST_CASE("What libraries take to compile their plans is none of the budget") {
  class Compiling final : public executor::CpuDevice {
   public:
    std::string refusal(const Operation& op) const override {
      if (asked_.insert(&op).second) std::this_thread::sleep_for(std::chrono::milliseconds{300});
      return CpuDevice::refusal(op);
    }

   private:
    mutable std::set<const Operation*> asked_;
  };
  Small small;
  CampaignInputs inputs = small.inputs();
  inputs.alone = alone_on([] { return std::make_unique<Compiling>(); });
  inputs.launches.clear();
  inputs.loads.clear();
  inputs.copies.clear();
  inputs.rules.budget = 400_ms;
  const Findings found = campaign(std::move(inputs));
  CHECK(found.setting_up > 1_s);
  CHECK(found.points_left_out == 0);
  CHECK(found.products.at(models::DType::fp32).size() == 2);
}

TEST_CASE("Points of the plans that are run next come first, and samples come one by one") {
  Small small;
  CampaignInputs inputs = small.inputs();
  inputs.points.back().first = true;  // experts
  std::vector<std::string> order;
  std::vector<std::size_t> parts;
  inputs.sample = [&](const Json& sample) { order.push_back(sample.at("name")); };
  inputs.part_done = [&](const Findings& so_far) {
    parts.push_back(so_far.raw.size());
    CHECK(order.size() == so_far.raw.size());
  };
  const Findings found = campaign(std::move(inputs));
  REQUIRE(order.size() == found.raw.size());
  const auto place = [&](const char* name) {
    return std::find(order.begin(), order.end(), name) - order.begin();
  };
  CHECK(place("experts") < place("load of gemm 8 x 4 x 6"));
  CHECK(place("load of gemm 8 x 4 x 6") < place("product"));
  CHECK(place("load of gemm 8 x 4 x 6") < place("small"));
  CHECK(parts.size() == 8);  // no ranks are measured together
  CHECK(parts.back() == found.raw.size());
}

TEST_CASE("Times are kept under the product that a Program names, whichever way it was run") {
  Small small;
  Block run = small.product;  // of [4, 8] there
  run.operations[0].mutable_gemm() = {.m = 4, .n = 8, .k = 6};
  std::swap(run.operations[0].reads[0], run.operations[0].reads[1]);
  run.operands[0].shape = {1, 6, 8};
  run.operands[1].shape = {1, 4, 6};
  run.operands[2].shape = {1, 4, 8};
  CampaignInputs inputs = small.inputs();
  inputs.points = {small.alone("product", run)};
  inputs.points[0].priced = &small.product;
  const Findings found = campaign(std::move(inputs));
  CHECK(found.failures.empty());
  REQUIRE(found.products.at(models::DType::fp32).size() == 1);
  CHECK(found.products.at(models::DType::fp32)[0].shape.m == 8);
  CHECK(found.products.at(models::DType::fp32)[0].shape.n == 4);
}

}  // namespace orrery::calibrate

// A campaign on queues, with threads for GPUs: what it finds, never how fast.
#include "calibrate/gpu/gpu_campaign.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "calibrate/gpu/graph_launch.hpp"
#include "calibrate/gpu/pinned_copy.hpp"
#include "executor/errors.hpp"
#include "hardware/catalogue.hpp"
#include "models/operations/grouped.hpp"
#include "tests/calibrate/small_block.hpp"
#include "tests/executor/queued_fabric.hpp"

namespace orrery::calibrate {
namespace {

using models::Block;
using models::Operation;
using models::OpKind;
using models::Role;

BenchSizes tiny_bench() {
  return {.run_up = 64_KiB, .cold = 4_KiB, .interval = 10_us, .most_run_ups = 1, .marks = 4};
}

std::unique_ptr<executor::Device> queued() {
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

/// Operands of a campaign over the block, its product alone, and copies.
struct Small {
  Block block = small_block();
  Block product = single(block, block.operations[0]);
  Block add = single(block, block.operations[1]);
  Block experts =
      models::experts_block({.rows = {3, 0, 2}, .k = 4, .n = 6, .dtype = models::DType::fp32},
                            models::ExpertsProduct::forward);
  models::Model model;

  GpuCampaignInputs inputs(std::uint64_t reasons = 0) {
    GpuCampaignInputs made;
    made.gpu = {.name = "NVIDIA H200",
                .memory = Bytes{std::int64_t{143771} << 20},
                .capability = 90,
                .count = 1,
                .versions = "CUDA 13.0"};
    made.blocks = {{"small", &block, &model}};
    made.operations = {{"product", &product, &model}, {"experts", &experts, &model}};
    made.launches = {{"a layer.forward", &block, &model}, {"one kernel", &add, &model}};
    made.loads = {{"gemm 8 x 4 x 6", &product, &model}};
    made.copies = {4_KiB, 64_KiB};
    made.messages = {1_KiB, 4_KiB};
    made.load_time = 10_ms;
    made.device = queued;
    made.why_no_collectives = "there is one GPU";
    made.telemetry = std::make_unique<Steady>(reasons);
    made.notes = [](const executor::Device&) { return std::vector<std::string>{"a choice"}; };
    made.rules.budget = 600_s;  // what points take is bounded below; machines may be busy
    made.rules.point = 20_ms;
    made.rules.batch = 2_ms;
    made.sizes = tiny_bench();
    return made;
  }
};

GpuFindings campaign(GpuCampaignInputs inputs) {
  const auto host = machine_clock();
  const auto clock = gpu_clock(*host);
  return run_gpu_campaign(std::move(inputs), *clock);
}

}  // namespace

TEST_CASE("A campaign on one GPU finds products, kernels, copies, launches and a load") {
  Small small;
  const GpuFindings found = campaign(small.inputs());
  CHECK(found.failures.empty());
  REQUIRE(found.products.size() == 1);
  const auto& products = found.products.at(models::DType::fp32);
  REQUIRE(products.size() == 2);  // in its block, and alone
  CHECK(products[0].shape.k == 6);
  REQUIRE(found.grouped.size() == 1);
  CHECK(found.grouped[0].op.group_rows == std::vector<std::int64_t>{3, 0, 2});
  CHECK(found.kernels.at("add 2>1").front().traffic == 384_B);
  CHECK(found.kernels.count("gemm") == 0);
  CHECK(found.copies.size() == 2 * 5);  // inside, there and back, and page-locked there and back
  CHECK(found.launch.forward.has_value());
  CHECK_FALSE(found.launch.backward.has_value());  // no such block was given
  CHECK(found.launch.small_on_queue.value() > Time{});
  CHECK(found.launch.graph.value() > Time{});
  CHECK(found.launch.graph_kernel.value() > Time{});
  CHECK_FALSE(found.launch.communication.has_value());  // there is no NCCL
  REQUIRE(found.beside.size() == 4);
  CHECK(found.beside[0].kernel == "copy from page-locked memory 65536 B");
  CHECK(found.beside[0].other == "copy to page-locked memory 65536 B");
  CHECK(found.beside[1].other == "copy from page-locked memory 65536 B");
  CHECK(found.beside[2].other == "copy to page-locked memory 65536 B");
  CHECK(found.beside[3].other == "copy on the device 65536 B");
  CHECK_FALSE(found.beside_communication.has_value());  // a copy only stands for one
  for (const NamedBeside& each : found.beside) CHECK(each.times.kernel_beside > Time{});
  REQUIRE(found.loads.size() == 1);
  CHECK(found.loads[0].of == Load::Of::product);
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
  const GpuFindings found = campaign(small.inputs(hardware_thermal));
  CHECK(found.products.empty());
  CHECK(found.kernels.empty());
  // The block, two products, the load's bursts, two copies inside, two page-locked.
  CHECK(found.discarded_points == 8);
  CHECK(found.loads.empty());
  CHECK(found.launch.forward.has_value());
}

TEST_CASE("A power cap is what a large product runs into: kept, and told") {
  Small small;
  const GpuFindings found = campaign(small.inputs(power_cap));
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
  GpuCampaignInputs inputs = small.inputs();
  inputs.device = [] { return std::make_unique<Failing>(); };
  inputs.launches = {{"one kernel", &small.add, &small.model}};
  inputs.blocks = {{"sum", &small.add, &small.model}};
  const GpuFindings found = campaign(std::move(inputs));
  CHECK(found.products.empty());
  CHECK(found.kernels.count("add") == 1);
  REQUIRE(found.failures.size() == 4);  // work on two queues twice, then subjects
  CHECK(found.failures[0] == "compute beside page-locked copies: no such product");
  CHECK(found.failures[2] == "gemm 8 x 4 x 6: no such product");
  CHECK(found.failures[3] == "product: no such product");
}

TEST_CASE("A captured block is launched as a whole, and told by its kernels") {
  Small small;
  executor::QueuedDevice device{{}};
  const auto clock = machine_clock();
  Overseer nobody{nullptr};
  QueueBench bench{device, *clock, nobody, tiny_bench()};
  GraphLaunch graph{{"small", &small.block, &small.model}, bench};
  graph.prepare();
  CHECK(graph.name() == "graph of small");
  CHECK(graph.nodes() == 2);
  std::vector<Time> times;
  CHECK(graph.run(times));
  CHECK(times.size() == graph.parts());
  graph.finish();
}

TEST_CASE("A device without CUDA graphs is told, not timed") {
  Small small;
  GpuCampaignInputs inputs = small.inputs();
  inputs.device = [] { return std::make_unique<executor::CpuDevice>(); };
  const GpuFindings found = campaign(std::move(inputs));
  CHECK_FALSE(found.launch.graph.has_value());
  CHECK(std::count(found.missing.begin(), found.missing.end(),
                   "CUDA graphs: the device has none") == 1);
}

/// Ranks that are threads, each with queues of its own.
GpuCrew::Make queued_rank(executor::ThreadWorld& world) {
  return [&world](int rank, int) {
    GpuRank made;
    auto device = std::make_unique<executor::QueuedDevice>(executor::QueuedSettings{});
    made.fabric = std::make_unique<executor::QueuedFabric>(world, rank, *device);
    made.device = std::move(device);
    return made;
  };
}

// Two GPUs: six collectives of two sizes each, and the product beside an all-reduce.
TEST_CASE("Several GPUs measure their collectives, and compute beside one") {
  Small small;
  GpuCampaignInputs inputs = small.inputs();
  executor::ThreadWorld world{2};
  inputs.gpu.count = 2;
  inputs.why_no_collectives.clear();
  inputs.rank = queued_rank(world);
  const GpuFindings found = campaign(std::move(inputs));
  CHECK(found.failures.empty());
  REQUIRE(found.collectives.size() == 6);
  CHECK(found.collectives[0].operation == "all_reduce");
  CHECK(found.collectives[0].ranks == 2);
  CHECK(found.collectives[0].times.points().size() == 2);
  REQUIRE(found.beside.size() == 4);  // three of page-locked copies
  CHECK(found.beside[3].other == "all_reduce 2 GPUs 4096 B");
  CHECK(found.beside_communication.value().kernel == found.beside[3].times.kernel);
  CHECK(found.launch.communication.value() > Time{});
  CHECK(found.launch.communication_ranks == 2);
}

TEST_CASE("A lone GPU measures what a communicator of one rank costs its host, and nothing else") {
  Small small;
  GpuCampaignInputs inputs = small.inputs();
  executor::ThreadWorld world{1};
  inputs.lone_rank = queued_rank(world);
  const GpuFindings found = campaign(std::move(inputs));
  CHECK(found.failures.empty());
  CHECK(found.launch.communication.value() > Time{});
  CHECK(found.launch.communication_ranks == 1);
  CHECK(found.collectives.empty());
  CHECK(found.raw.back()["name"] == "launch of all_reduce 1 GPUs 4096 B");
}

TEST_CASE("A page-locked copy whose bytes are lost is not timed") {
  /// Copies nothing.
  class Forgetful final : public executor::CpuDevice {
   public:
    void copy(const std::byte*, std::byte*, Bytes, models::Lane) override {}
  };
  Forgetful device;
  const PinnedPair pair{device, 64_B};
  CHECK_THROWS_WITH(pair.check(), "page-locked memory comes back with other numbers: not timed");
}

TEST_CASE("A product is compared before it is timed, in both layouts") {
  /// Adds to one element that is looked at: row (8 - 1) / 1, column (4 - 1) / 2.
  class Wrong final : public executor::CpuDevice {
   public:
    void run(const executor::Kernel& kernel) override {
      CpuDevice::run(kernel);
      reinterpret_cast<float*>(kernel.writes[0].data)[7 * 4 + 1] += 1;
    }
  };
  Small small;
  for (const bool transposed : {false, true}) {
    Block block = small.product;
    block.operations[0].gemm.transpose_b = transposed;
    if (transposed) block.operands[1].shape = {1, 4, 6};
    executor::CpuDevice right;
    const Operands operands{right, block, 1, 1};
    CHECK_NOTHROW(check_product(right, block, operands, small.model));
    Wrong wrong;
    const Operands others{wrong, block, 1, 1};
    CHECK_THROWS_WITH(check_product(wrong, block, others, small.model),
                      Catch::Matchers::Contains("is right: not timed"));
  }
}

// Of a rank: out = a w, da = dout w' and dw += a' dout, a in e4m3 and dout in e5m2.
TEST_CASE("A product in fp8 is compared with what its bytes mean, whichever format they are in") {
  using models::DType;
  Small small;
  for (const int which : {0, 1, 2}) {
    Block block = small.product;
    Operation& op = block.operations[0];
    op.dtype = DType::fp8;
    op.pass = which == 0 ? models::Pass::forward : models::Pass::backward;
    op.gemm.transpose_b = which == 1;
    op.gemm.transpose_a = op.gemm.accumulate = which == 2;
    block.operands[0].dtype = DType::fp8;
    block.operands[1].dtype = which == 2 ? DType::fp8 : DType::bf16;
    if (which == 1) block.operands[1].shape = {1, 4, 6};
    if (which == 2) block.operands[0].shape = {1, 6, 8};
    CHECK(footprint(block) == 768_B);  // three operands, each from a multiple of 256 on
    executor::CpuDevice device;
    const Operands operands{device, block, 1, 1};
    CHECK_NOTHROW(check_product(device, block, operands, small.model));
    op.pass = which == 0 ? models::Pass::backward : models::Pass::forward;
    const Block other = block;  // multiplied in other formats than it is compared in
    op.pass = which == 0 ? models::Pass::forward : models::Pass::backward;
    class Other final : public executor::CpuDevice {
     public:
      explicit Other(const Operation& op) : op_{op} {}
      void run(const executor::Kernel& kernel) override {
        executor::Kernel changed = kernel;
        changed.operation = &op_;
        CpuDevice::run(changed);
      }

     private:
      const Operation& op_;
    } wrong{other.operations[0]};
    const Operands others{wrong, block, 1, 1};
    CHECK_THROWS_WITH(check_product(wrong, block, others, small.model),
                      Catch::Matchers::Contains("is right: not timed"));
  }
}

TEST_CASE("Operands repeat one known sequence, whatever their length") {
  executor::CpuDevice device;
  Block block;
  block.operands.push_back({"x", Role::temporary, models::DType::bf16, {1, 3, Pattern::period}});
  const Operands operands{device, block, 2, 1};
  const Pattern pattern{models::DType::bf16, Numbers::both_signs, 1};
  for (const std::int64_t at :
       {std::int64_t{0}, Pattern::period - 1, Pattern::period, 3 * Pattern::period - 1}) {
    CHECK(element_of(device, operands.view(1, 0), at) == pattern.at(at));
    CHECK(std::abs(pattern.at(at)) <= 0.1001);
  }
}

// Uniform in +-0.1 of 65521 numbers: the mean is off zero by 0.1 / sqrt(3 x 65521) = 0.0002, five
// of which are far below what positive numbers would have, 0.055.
TEST_CASE("What is multiplied has both signs and a mean of zero; moments and sums are positive") {
  Block block;
  const auto operand = [&](Role role, models::DType dtype) {
    block.operands.push_back({"x", role, dtype, {1, 1, Pattern::period}});
  };
  operand(Role::input, models::DType::bf16);
  operand(Role::parameter, models::DType::bf16);
  operand(Role::gradient, models::DType::fp32);
  operand(Role::saved, models::DType::fp32);      // of a plan in fp32: multiplied
  operand(Role::optimizer, models::DType::fp32);  // under a root
  operand(Role::saved, models::DType::fp32);      // a loss's sums: divide
  Operation product;
  product.reads = {3, 1};
  product.writes = {2};
  block.operations.push_back(product);
  executor::CpuDevice device;
  const Operands operands{device, block, 1, 1};
  for (models::OperandId id = 0; id < 6; ++id) {
    INFO(id);
    double sum = 0, least = 1;
    for (std::int64_t i = 0; i < Pattern::period; ++i) {
      const double number = element_of(device, operands.view(0, id), i);
      sum += number;
      least = std::min(least, number);
    }
    if (id < 4) {
      CHECK(std::abs(sum / Pattern::period) < 0.001);
    } else {
      CHECK(least >= 0.0099);
    }
  }
}

TEST_CASE("All operands of a point lie in one piece of memory, each on 256 bytes") {
  class Counting final : public executor::CpuDevice {
   public:
    std::byte* allocate(Bytes size) override {
      ++allocations;
      return CpuDevice::allocate(size);
    }
    int allocations = 0;
  } device;
  Small small;
  const Operands operands{device, small.block, 3, 1};
  CHECK(device.allocations == 1);
  const std::byte* const first = operands.view(0, 0).data;
  CHECK(operands.view(0, 1).data - first == 256);
  CHECK(operands.view(2, 3).data - first == 2 * footprint(small.block).count() + 3 * 256);
}

TEST_CASE("A mark's own time is found among kernels, as marks stand in a step") {
  class Counting final : public executor::CpuDevice {
   public:
    void run(const executor::Kernel& kernel) override {
      adds += kernel.operation->kind == OpKind::add ? 1 : 0;
      CpuDevice::run(kernel);
    }
    int adds = 0;
  } device;
  const auto clock = machine_clock();
  Overseer nobody{nullptr};
  const QueueBench bench{device, *clock, nobody, tiny_bench()};
  CHECK(device.adds == 11 * tiny_bench().marks);  // a warm-up, then five looks with and without
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
  GpuCampaignInputs inputs = small.inputs();
  inputs.device = [] { return std::make_unique<Compiling>(); };
  inputs.launches.clear();
  inputs.loads.clear();
  inputs.copies.clear();
  inputs.rules.budget = 400_ms;
  const GpuFindings found = campaign(std::move(inputs));
  CHECK(found.setting_up > 1_s);
  CHECK(found.points_left_out == 0);
  CHECK(found.products.at(models::DType::fp32).size() == 2);
}

TEST_CASE("Points of the plans that are run next come first, and samples come one by one") {
  Small small;
  GpuCampaignInputs inputs = small.inputs();
  inputs.operations[1].first = true;  // experts
  std::vector<std::string> order;
  std::vector<std::size_t> parts;
  inputs.sample = [&](const Json& sample) { order.push_back(sample.at("name")); };
  inputs.part_done = [&](const GpuFindings& so_far) {
    parts.push_back(so_far.raw.size());
    CHECK(order.size() == so_far.raw.size());
  };
  const GpuFindings found = campaign(std::move(inputs));
  REQUIRE(order.size() == found.raw.size());
  const auto place = [&](const char* name) {
    return std::find(order.begin(), order.end(), name) - order.begin();
  };
  CHECK(place("experts") < place("load of gemm 8 x 4 x 6"));
  CHECK(place("load of gemm 8 x 4 x 6") < place("product"));
  CHECK(place("load of gemm 8 x 4 x 6") < place("small"));
  CHECK(parts.size() == 8);
  CHECK(parts.back() == found.raw.size());
}

TEST_CASE("Times are kept under the product that a Program names, whichever way it was run") {
  Small small;
  Block run = small.product;  // of [4, 8] there
  run.operations[0].gemm = {.m = 4, .n = 8, .k = 6};
  std::swap(run.operations[0].reads[0], run.operations[0].reads[1]);
  run.operands[0].shape = {1, 6, 8};
  run.operands[1].shape = {1, 4, 6};
  run.operands[2].shape = {1, 4, 8};
  GpuCampaignInputs inputs = small.inputs();
  inputs.blocks.clear();
  inputs.operations = {{"product", &run, &small.model, &small.product}};
  const GpuFindings found = campaign(std::move(inputs));
  CHECK(found.failures.empty());
  REQUIRE(found.products.at(models::DType::fp32).size() == 1);
  CHECK(found.products.at(models::DType::fp32)[0].shape.m == 8);
  CHECK(found.products.at(models::DType::fp32)[0].shape.n == 4);
}

// Times made from a curve of 0.7 at 128, 0.5 at 64, half of it at 400 tokens, backward at 0.8 of
// forward: the fit finds them again.
TEST_CASE("A curve of attention is found again from times made with it") {
  const FlopRate peak = 989_TFLOPS;
  hardware::AttentionCurve curve;
  curve.share_64 = 0.5;
  curve.share_128 = 0.7;
  curve.half_length = 400;
  curve.backward_ratio = 0.8;
  std::vector<AttentionPoint> points;
  for (const int head : {64, 128}) {
    for (std::int64_t seq = 512; seq <= 16384; seq *= 2) {
      for (const auto pass : {hardware::Pass::forward, hardware::Pass::backward}) {
        const hardware::AttentionCall call{
            .work = Flops{seq * seq * head * 256}, .seq = seq, .head_dim = head, .pass = pass};
        points.push_back({call, time_of(curve, peak, call)});
      }
    }
  }
  const AttentionFit fit = fit_attention(points, peak);
  CHECK(fit.curve.share_64 == Approx(0.5).epsilon(0.02));
  CHECK(fit.curve.share_128 == Approx(0.7).epsilon(0.02));
  CHECK(fit.curve.half_length == Approx(400).epsilon(0.05));
  CHECK(fit.curve.backward_ratio == Approx(0.8).epsilon(0.02));
  CHECK(fit.curve.causal_penalty == 0);  // nothing here tells one
  CHECK(fit.median_error_pct < 1);
  CHECK(*fit.leave_out_error_pct < 1);
}

TEST_CASE("Telemetry is summed up by medians and the worst") {
  const auto at = [](double megahertz, double watts, std::uint64_t reasons) {
    return Reading{Frequency{megahertz * 1e6}, Frequency{2e9}, Power{watts}, reasons};
  };
  const Conditions seen = summary({at(1900, 600, 0), at(1200, 700, power_cap), at(1500, 650, 0)});
  CHECK(seen.processor == Frequency{1.5e9});
  CHECK(seen.slowest_processor == Frequency{1.2e9});
  CHECK(seen.most_power == Power{700});
  CHECK(seen.power_capped == Approx(1.0 / 3));
  CHECK(throttled(hardware_slowdown));
  CHECK_FALSE(throttled(power_cap));
  CHECK(to_json(summary({})).is_null());
  CHECK_FALSE(Overseer{nullptr}.knows());
  CHECK(nvml_telemetry(std::string(32, '0')) == nullptr);  // a GPU that is nowhere
}

// 1000 GFLOP in 2 ms is 500 TFLOP/s of an H200's 989.
TEST_CASE("A profile of a known GPU is the catalogue's with measured curves and launches") {
  GpuFindings found;
  found.gpu = {.name = "NVIDIA H200",
               .memory = Bytes{std::int64_t{143771} << 20},
               .capability = 90,
               .versions = "CUDA 13.0"};
  for (std::int64_t m = 512; m <= 8192; m *= 2) {
    const Flops work{2 * m * 4096 * 4096};
    const Time time = from_seconds(static_cast<double>(work.count()) / 500e12) + 5_us;
    found.products[models::DType::bf16].push_back(
        {{m, 4096, 4096}, work, Bytes{2 * (2 * m * 4096 + 4096 * 4096)}, time});
    found.products[models::DType::fp8].push_back(
        {{m, 4096, 4096}, work, Bytes{m * (4096 + 2 * 4096) + 2 * 4096 * 4096}, time});
    found.kernels["norm"].push_back({Bytes{m * 4096 * 4}, Time{m * 20'000} + 2_us});
  }
  const models::ExpertsShape experts{.rows = {2100, 1996}, .k = 4096, .n = 4096};
  found.grouped.push_back(
      {experts_block(experts, models::ExpertsProduct::forward).operations.front(), 1_ms});
  found.beside_communication =
      Beside{.kernel = 100_us, .other = 50_us, .kernel_beside = 107_us, .other_beside = 49_us};
  found.launch.forward = 3_us;
  found.launch.graph = 2_us;
  found.launch.communication = 6_us;
  found.launch.communication_ranks = 1;
  for (const char* way : {"to the device, page-locked", "from the device, page-locked"}) {
    found.copies.push_back({way, 1_MB, 20_us});
    found.copies.push_back({way, 4000_B, 2_us});
  }
  for (const Time sustained : {12_us, 10_us, 11_us}) {  // 0.75, 0.9 and 0.82 of bursts' rate
    Load load;
    load.what = "gemm";
    load.isolated = 9_us;
    load.sustained = sustained;
    found.loads.push_back(load);
  }
  found.missing = {"collectives: there is one GPU"};
  const Json software{{"name", "orrery-cuda"}, {"host", {{"backward_launch", "4 us"}}}};
  const Profile profile = make_profile(found, software);
  const Json& gpu = profile.cluster.at("node").at("gpu");
  CHECK(gpu.at("name") == "h200-sxm-141gb");
  CHECK(gpu.at("measured").at("gemm").at("bf16").size() == 5);
  CHECK(gpu.at("measured").at("grouped_gemm").at("bf16").at(0).at(0) == 2048);  // the mean's rows
  // 275 us at 500 TFLOP/s and 5 us to begin: 1 ms is 3.57 times that.
  CHECK(gpu.at("notes").get<std::string>().find(
            "bf16 products of experts with even rows take 3.5") != std::string::npos);
  CHECK(gpu.at("measured").at("gemm").at("fp8").size() == 5);
  CHECK_THAT(gpu.at("sources").at("/gemm/fp8").get<std::string>(),
             Catch::Matchers::EndsWith("; with what quantises weights and turns operands in each "
                                       "product"));
  CHECK(gpu.at("sustained_share").get<double>() == Approx(9.0 / 11).epsilon(1e-3));
  CHECK(gpu.at("sources").at("/gemm/bf16").get<std::string>().find("NVIDIA H200; CUDA 13.0") !=
        std::string::npos);
  CHECK(gpu.at("notes").get<std::string>().find("unknown") != std::string::npos);
  CHECK(profile.cluster.at("software").at("host").at("forward_launch") == "3000 ns");
  const Json& stack = profile.cluster.at("software");
  CHECK(stack.at("host").at("backward_launch") == "4 us");
  CHECK(stack.at("host").at("graph_launch") == "2000 ns");
  CHECK(stack.at("host").at("communication_launch") == "6000 ns");
  CHECK(stack.at("source").get<std::string>().find(
            "; communication_launch of a communicator of one rank, the least that one costs") !=
        std::string::npos);
  const Json points =
      Json::array({Json::array({"4000 B", "2000 ns"}), Json::array({"1000000 B", "20000 ns"})});
  CHECK(gpu.at("measured").at("host_link") == Json{{"to_device", points}, {"from_device", points}});
  // Quicker beside the other than alone is noise.
  CHECK(gpu.at("measured").at("beside_communication") ==
        Json{{"compute", 1.07}, {"communication", 1.0}});
  CHECK(gpu.at("host_link") == "63 GB/s");  // the datasheet's, of which the laws take shares
  CHECK(profile.cluster.at("notes") == "not measured: collectives: there is one GPU.");

  Json cluster = profile.cluster;
  cluster.erase("software");  // of two members only
  const Document document = Document::from(cluster, "profile");
  const Document whole = Document::from(hardware::expand_cluster(document.root()), "profile");
  const hardware::Cluster read = hardware::read_cluster(whole.root());
  CHECK(read.node.gpus == 1);
  CHECK(read.gpu().calibration.kernel("norm") != nullptr);
  CHECK(read.gpu().calibration.host_link.value().from_device.at(1_MB) == 20_us);
  CHECK(read.gpu().gemm.at(models::DType::bf16).origin.borrowed.empty());
  CHECK(read.gpu().gemm.at(models::DType::fp8).origin.borrowed.empty());
}

TEST_CASE("A profile names the attention that ran") {
  GpuFindings found;
  found.machine.date = "2026-11-22";
  found.machine.processor = "a processor";
  found.machine.system = "a system";
  found.gpu = {.name = "NVIDIA H200",
               .memory = Bytes{std::int64_t{143771} << 20},
               .capability = 90,
               .versions = "CUDA 13.0"};
  found.products[models::DType::bf16].push_back(
      {{64, 64, 64}, Flops{2'000'000'000}, Bytes{1 << 20}, 10_us});
  hardware::AttentionCall call;
  call.work = Flops{4LL * 1024 * 1024 * 16 * 64};
  call.seq = 1024;
  call.head_dim = 64;
  found.attention.push_back({call, 10_us});
  const auto named = [&](const executor::FusedAttention& fused) {
    found.fused = fused;
    const Profile profile = make_profile(found, Json{{"name", "orrery-cuda"}});
    const std::string name =
        profile.cluster.at(Json::json_pointer{"/software/kernels/attention/default"});
    const Json& gpu = profile.cluster.at("node").at("gpu");
    CHECK(gpu.at("attention").contains(name));
    return name + ": " + gpu.at("sources").at("/attention/" + name).get<std::string>();
  };
  const std::string measured =
      "calibrated 2026-11-22 on NVIDIA H200; CUDA 13.0; a processor; a system; ";
  CHECK(named({"cuDNN 9.19.0", 15, 0}) == "cudnn: " + measured + "cuDNN 9.19.0");
  CHECK(named({"cuDNN 9.19.0", 12, 3}) ==
        "orrery: " + measured +
            "cuDNN 9.19.0 in 12 of 15 shapes, the executor's own kernels in the others");
  CHECK(named({"cuDNN 9.19.0", 0, 3}) == "orrery: " + measured + "the executor's own kernels");
  CHECK(named({"", 0, 3}) == "orrery: " + measured + "the executor's own kernels");
}

TEST_CASE("A GPU that the catalogue lacks has what was measured as its peaks") {
  GpuFindings found;
  found.gpu.name = "NVIDIA Toy 1";
  found.gpu.memory = 8_GiB;
  found.gpu.capability = 89;
  found.products[models::DType::fp16].push_back(
      {{64, 64, 64}, Flops{2'000'000'000}, Bytes{1 << 20}, 10_us});  // 200 TFLOP/s
  found.copies.push_back({"on the device", 1_MB, 4_us});             // 2 MB of traffic: 500 GB/s
  found.copies.push_back({"to the device, page-locked", 1_MB, 20_us});
  found.copies.push_back({"from the device, page-locked", 1_MB, 40_us});  // 25 GB/s, the slower way
  const Profile profile = make_profile(found, Json::object());
  const Json& gpu = profile.cluster.at("node").at("gpu");
  CHECK(gpu.at("name") == "nvidia-toy-1");
  CHECK(gpu.at("generation") == "ada");
  CHECK(gpu.at("dense_peak").at("fp16") == "200 TFLOP/s");
  CHECK(gpu.at("memory_bandwidth") == "500 GB/s");
  CHECK(gpu.at("host_link") == "25 GB/s");
}

}  // namespace orrery::calibrate

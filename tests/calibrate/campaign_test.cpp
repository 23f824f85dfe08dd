// A campaign with the CPU's own kernels: what it finds, never how fast.
#include "calibrate/campaign.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "calibrate/bench/kernels.hpp"
#include "calibrate/bench/messages.hpp"
#include "executor/device/cpu/cpu_device.hpp"
#include "executor/errors.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "tests/calibrate/small_block.hpp"

namespace orrery::calibrate {
namespace {

using models::OpKind;

/// A CPU whose products are wrong in one element.
class WrongDevice final : public executor::CpuDevice {
 public:
  void run(const executor::Kernel& kernel) override {
    CpuDevice::run(kernel);
    if (kernel.operation->kind != OpKind::gemm) return;
    auto* out = reinterpret_cast<float*>(kernel.writes[0].data);
    out[2 * 4 + 2] += 1;  // row 8 / 3, column 4 / 2: one of those that are checked
  }
};

struct Worlds {
  std::vector<std::unique_ptr<executor::ThreadWorld>> worlds;
  std::vector<std::unique_ptr<executor::Fabric>> make(int ranks) {
    worlds.push_back(std::make_unique<executor::ThreadWorld>(ranks));
    std::vector<std::unique_ptr<executor::Fabric>> fabrics;
    for (int rank = 0; rank < ranks; ++rank) fabrics.push_back(worlds.back()->fabric(rank));
    return fabrics;
  }
};

CampaignInputs small_campaign(const models::Block& block, const models::Model& model,
                              Worlds& worlds) {
  CampaignInputs inputs;
  inputs.blocks = {{"small", &block, &model, true}};
  inputs.ranks = {1, 2};
  inputs.device = [] { return std::make_unique<executor::CpuDevice>(); };
  inputs.world = [&worlds](int ranks) { return worlds.make(ranks); };
  inputs.folder = std::filesystem::temp_directory_path();
  inputs.rules.budget = 30_s;
  inputs.rules.point = 20_ms;
  inputs.rules.batch = 2_ms;
  return inputs;
}

TEST_CASE("A campaign finds kernels, ranks at once, collectives, memory and files", "[heavy]") {
  const models::Block block = small_block();
  const models::Model model;
  Worlds worlds;
  const auto clock = machine_clock();
  const Findings found = run_campaign(small_campaign(block, model, worlds), *clock);

  REQUIRE(found.products.size() == 1);
  CHECK(found.products[0].shape.k == 6);
  CHECK(found.products[0].time > Time{});
  CHECK(found.kernels.at("add").size() == 1);
  CHECK(found.kernels.at("add 2>1").front().traffic == 384_B);
  CHECK(found.copy_rate->count() > 0);
  REQUIRE(found.concurrency.size() == 1);
  CHECK(found.concurrency[0].ranks == 2);
  CHECK(found.storage.read->count() > 0);
  CHECK(found.storage.write->count() > 0);
  REQUIRE(found.collectives.size() == 6);  // with messages between the two
  CHECK(found.collectives[0].operation == "all_reduce");
  CHECK(found.collectives[0].times.points().size() == 9);
  CHECK(found.collectives[0].times.covers(256_B));
  CHECK(found.collectives[0].times.covers(16_MiB));
  CHECK(found.machine.library.find("1 thread") != std::string::npos);

  // Every run of every point is kept: the block alone and beside another, the copy, the files, and
  // 6 times 9 messages.
  CHECK(found.raw.size() == 2 + 1 + 1 + 54);
  for (const Json& point : found.raw) {
    for (const Json& part : point["parts"]) CHECK_FALSE(part["us"].empty());
  }
}

TEST_CASE("A campaign that is stopped keeps what it has") {
  const models::Block block = small_block();
  const models::Model model;
  Worlds worlds;
  CampaignInputs inputs = small_campaign(block, model, worlds);
  int asked = 0;
  inputs.watcher = [&](std::size_t, std::size_t) { return ++asked <= 2; };
  const auto clock = machine_clock();
  const Findings found = run_campaign(inputs, *clock);
  CHECK(found.products.size() == 1);
  CHECK(found.collectives.empty());
}

TEST_CASE("A kernel that computes wrongly is not timed") {
  const models::Block block = small_block();
  const models::Model model;
  Worlds worlds;
  CampaignInputs inputs = small_campaign(block, model, worlds);
  inputs.device = [] { return std::make_unique<WrongDevice>(); };
  const auto clock = machine_clock();
  CHECK_THROWS_WITH(run_campaign(inputs, *clock), Catch::Matchers::Contains("is right: not timed"));
}

}  // namespace
}  // namespace orrery::calibrate

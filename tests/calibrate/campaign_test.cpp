// A campaign with the CPU's own kernels: what it finds, never how fast.
#include "calibrate/campaign.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "calibrate/local_rendezvous.hpp"
#include "executor/device/cpu/cpu_device.hpp"
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
    reinterpret_cast<float*>(kernel.writes[0].data)[7 * 4 + 1] += 1;  // one that is compared
  }
};

CampaignInputs small_campaign(const models::Block& block, LocalRendezvous& rendezvous) {
  CampaignInputs inputs;
  inputs.points = {{.name = "small", .block = &block, .compared = true, .with_others = true}};
  inputs.sets = {2};
  inputs.copies = {1_MiB};
  for (Bytes size = 256_B; size <= 16_MiB; size = size * 4) inputs.messages.push_back(size);
  inputs.alone = inputs.rank = rendezvous.cores("threads");
  inputs.folder = std::filesystem::temp_directory_path();
  inputs.sizes = {.most_repeats = 1, .marks = 100};
  inputs.rules.budget = 30_s;
  inputs.rules.point = 20_ms;
  inputs.rules.batch = 2_ms;
  return inputs;
}

TEST_CASE("A campaign finds kernels, ranks at once, collectives, memory and files", "[heavy]") {
  const models::Block block = small_block();
  LocalRendezvous rendezvous;
  const auto clock = machine_clock();
  const Findings found = run_campaign(small_campaign(block, rendezvous), *clock);

  const auto& products = found.products.at(models::DType::fp32);
  REQUIRE(products.size() == 1);
  CHECK(products[0].shape.k == 6);
  CHECK(products[0].time > Time{});
  CHECK(found.kernels.at("add").size() == 1);
  CHECK(found.kernels.at("add 2>1").front().traffic == 384_B);
  CHECK(copy_rate(found)->count() > 0);
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

  // Every run of every point is kept: the block alone and next to another, the copy, the files,
  // decoding of text, and 6 times 9 messages.
  CHECK(found.raw.size() == 2 + 1 + 1 + 1 + 54);
  for (const Json& point : found.raw) {
    for (const Json& part : point["parts"]) CHECK_FALSE(part["us"].empty());
  }
}

TEST_CASE("A folder that was asked for is measured first, however short the budget") {
  const models::Block block = small_block();
  LocalRendezvous rendezvous;
  const auto clock = machine_clock();
  CampaignInputs inputs = small_campaign(block, rendezvous);
  inputs.rules.budget = 1_ms;  // spent by the first of them
  inputs.files_first = true;
  const Findings found = run_campaign(std::move(inputs), *clock);
  CHECK(found.storage.read);
  CHECK(found.products.empty());
  inputs = small_campaign(block, rendezvous);
  inputs.rules.budget = 1_ms;
  const Findings without = run_campaign(std::move(inputs), *clock);
  CHECK_FALSE(without.storage.read);
  REQUIRE_FALSE(without.missing.empty());
  CHECK(without.missing.front() == "storage: the budget was spent before; state a longer --budget");
}

TEST_CASE("A campaign that is stopped keeps what it has") {
  const models::Block block = small_block();
  LocalRendezvous rendezvous;
  CampaignInputs inputs = small_campaign(block, rendezvous);
  int asked = 0;
  inputs.watcher = [&](std::size_t, std::size_t) { return ++asked <= 2; };
  const auto clock = machine_clock();
  const Findings found = run_campaign(std::move(inputs), *clock);
  CHECK(found.products.size() == 1);
  CHECK(found.collectives.empty());
}

TEST_CASE("A kernel that computes wrongly is not timed") {
  const models::Block block = small_block();
  LocalRendezvous rendezvous;
  CampaignInputs inputs = small_campaign(block, rendezvous);
  inputs.alone = [](int, int) { return RankParts{.device = std::make_unique<WrongDevice>()}; };
  const auto clock = machine_clock();
  CHECK_THROWS_WITH(run_campaign(std::move(inputs), *clock),
                    Catch::Matchers::Contains("which should be"));
}

TEST_CASE("Ranks meet those of their own number, not those that an abandoned set left") {
  LocalRendezvous rendezvous;
  const RankSet::Make make = rendezvous.cores("threads");
  const RankParts abandoned = make(0, 3);
  const RankParts first = make(0, 2), second = make(1, 2);
  CHECK(first.fabric->ranks() == 2);
  CHECK(second.fabric->ranks() == 2);
  CHECK(make(0, 4).fabric->ranks() == 4);
}

}  // namespace
}  // namespace orrery::calibrate

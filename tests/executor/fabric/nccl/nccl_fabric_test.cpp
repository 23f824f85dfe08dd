// The NCCL fabric on a stand-in for CUDA and NCCL: its streams, events, communicators and ends.

#include <catch2/catch.hpp>
#include <future>
#include <mutex>

#include "executor/errors.hpp"
#include "executor/launch/store.hpp"
#include "tests/executor/cuts.hpp"
#include "tests/executor/fabric/nccl/stand_in.hpp"
#include "tests/executor/fabric/tcp/conformance.hpp"

namespace orrery::executor {
namespace {

using cuda::make_nccl_fabric;
using std::chrono::milliseconds;

constexpr milliseconds patience{20'000};

/// The store that ranks meet in; what joined it stays for as long as it does.
class Rendezvous {
 public:
  explicit Rendezvous(int ranks) : identity_{.job = "stand-in", .ranks = ranks} {}

  int ranks() const { return identity_.ranks; }
  Store& join(int rank) {
    auto joined = std::make_unique<Store>(server_.address(), identity_, rank, patience);
    const std::lock_guard guard{lock_};
    joined_.push_back(std::move(joined));
    return *joined_.back();
  }

 private:
  StoreIdentity identity_;
  StoreServer server_{{"127.0.0.1", 0}, identity_};
  std::mutex lock_;
  std::vector<std::unique_ptr<Store>> joined_;
};

/// A fabric together with what it stands on; its `wait` may be the host's too.
class OnStandIn final : public Fabric {
 public:
  enum class Wait { of_queues, of_host };

  OnStandIn(QueuedDevice& device, Rendezvous& meeting, int rank, Wait wait)
      : device_{device},
        wait_{wait},
        gpu_{device, rank},
        nccl_{make_nccl_fabric(gpu_.gpu(), meeting.join(rank), rank, meeting.ranks(), patience)} {}

  std::string_view name() const override { return nccl_->name(); }
  int rank() const override { return nccl_->rank(); }
  int ranks() const override { return nccl_->ranks(); }
  GroupId make_group(std::span<const int> members) override { return nccl_->make_group(members); }
  void connect(GroupId group, int from, int to) override { nccl_->connect(group, from, to); }
  Request start(const CollectiveCall& call) override { return nccl_->start(call); }
  Request transfer(const TransferCall& call, TransferEnd end) override {
    return nccl_->transfer(call, end);
  }
  bool test(Request request) override { return nccl_->test(request); }
  void wait(Request request) override {
    nccl_->wait(request);
    if (wait_ == Wait::of_host) device_.finish();
  }
  void abort(std::string_view why) noexcept override { nccl_->abort(why); }

 private:
  QueuedDevice& device_;
  Wait wait_;
  StandIn gpu_;
  std::unique_ptr<Fabric> nccl_;
};

TEST_CASE("NCCL's fabric keeps the contract of fabrics") {
  cuda::prepare_for_nccl();  // three ranks have ways that a pipe has not
  Rendezvous meeting{3};
  std::mutex lock;
  std::vector<std::string> wrong;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      std::vector<std::string> found;
      try {
        // The test's own memory comes and goes without the device: touches are not checked.
        QueuedDevice device{{.seed = static_cast<std::uint64_t>(rank), .checks = false}};
        OnStandIn fabric{device, meeting, rank, OnStandIn::Wait::of_host};
        found = broken_promises(fabric);
      } catch (const std::exception& error) {
        found = {error.what()};
      }
      const std::lock_guard guard{lock};
      wrong.insert(wrong.end(), found.begin(), found.end());
    });
  }
  for (std::thread& each : ranks) each.join();
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("Over NCCL's fabric every cut gives the bits of one rank, and no wait is missing") {
  std::uint64_t seed = 0;
  for (const Cut& each : cuts()) {
    const int ranks = static_cast<int>(each.plan.gpus());
    if (ranks < 2) continue;
    INFO(each.name);
    Rendezvous meeting{ranks};
    Job job{.model = each.model, .plan = each.plan, .arithmetic = Arithmetic::ring, .steps = 3};
    job.settings.trace = TraceDetail::none;
    ++seed;
    job.rig = [&](ThreadWorld&, int rank) {
      const QueuedSettings settings{.arithmetic = Arithmetic::ring,
                                    .seed = 100 * seed + static_cast<std::uint64_t>(rank)};
      auto device = std::make_unique<QueuedDevice>(settings);
      auto fabric = std::make_unique<OnStandIn>(*device, meeting, rank, OnStandIn::Wait::of_queues);
      return Rig{std::move(device), nullptr, std::move(fabric)};
    };
    const Outcome& one = reference(each, Arithmetic::ring);
    const Outcome many = run(job);
    CHECK(same_bits(many.parameters, one.parameters));
    CHECK(same_bits(many.first, one.first));
    CHECK(same_bits(many.second, one.second));
    CHECK(many.steps[2].ring_loss == one.steps[2].ring_loss);
    CHECK(many.steps[2].ring_norm == one.steps[2].ring_norm);
  }
}

TEST_CASE("Communicators are finalized by all members before they are destroyed") {
  const int before = destroyed_early();
  Rendezvous meeting{2};
  const auto leave = [&meeting](int rank, milliseconds later) {
    QueuedDevice device{{}};
    StandIn gpu{device, rank};
    const auto fabric = make_nccl_fabric(gpu.gpu(), meeting.join(rank), rank, 2, patience);
    const std::vector<int> both{0, 1}, own{rank};
    fabric->make_group(both);
    fabric->make_group(both);
    std::this_thread::sleep_for(later);
  };
  const auto other = std::async(std::launch::async, leave, 1, milliseconds{100});
  leave(0, milliseconds{0});
  other.wait();
  CHECK(destroyed_early() == before);
}

TEST_CASE("A rank whose peer never finalizes ends after a while") {
  Rendezvous meeting{2};
  std::promise<void> over;
  const auto begun = Clock::now();
  std::thread peer{[&meeting, ends = over.get_future()] {
    QueuedDevice device{{}};
    StandIn gpu{device, 1};
    const auto fabric = make_nccl_fabric(gpu.gpu(), meeting.join(1), 1, 2, patience);
    fabric->make_group(std::vector<int>{0, 1});
    ends.wait();
    fabric->abort("its peer has left");
  }};
  {
    QueuedDevice device{{}};
    StandIn gpu{device, 0};
    const auto fabric = make_nccl_fabric(gpu.gpu(), meeting.join(0), 0, 2, milliseconds{2000});
    fabric->make_group(std::vector<int>{0, 1});
  }
  CHECK(Clock::now() - begun < milliseconds{10'000});
  over.set_value();
  peer.join();
}

TEST_CASE("Calls that NCCL answers later are counted, and how long the host waits for them") {
  Rendezvous meeting{1};
  QueuedDevice device{{}};
  StandIn gpu{device, 0};
  const auto fabric = make_nccl_fabric(gpu.gpu(), meeting.join(0), 0, 1, patience);
  const GroupId group = fabric->make_group(std::vector<int>{0});
  const HostWaits before = fabric->host_waits().value();
  CHECK(before.late > 0);  // the group was met and tried
  std::byte* const sum = device.allocate(Bytes{4});
  const float number = 0;
  device.write(&number, sum, Bytes{4});
  for (int i = 0; i < 3; ++i) {
    fabric->wait(fabric->start({.group = group, .send = sum, .receive = sum, .count = 1}));
  }
  const HostWaits after = fabric->host_waits().value();
  CHECK(after.late == before.late + 3);        // each is in progress for two looks
  CHECK(after.calls == before.calls + 3 + 3);  // and each was asked after when it was waited for
  CHECK(after.waited > before.waited);
  device.release(sum);
}

TEST_CASE("A world of one rank has a communicator of its own, whose sum is what it gave") {
  Rendezvous meeting{1};
  QueuedDevice device{{}};
  StandIn gpu{device, 0};
  Store& store = meeting.join(0);
  const auto fabric = make_nccl_fabric(gpu.gpu(), store, 0, 1, patience);
  const std::vector<int> own{0};
  const GroupId group = fabric->make_group(own);
  CHECK(store.get("nccl/group/0", milliseconds{10}).size() == 128);  // an id of NCCL
  std::byte* const given = device.allocate(Bytes{4});
  std::byte* const sum = device.allocate(Bytes{4});
  const float number = 2.5F;
  device.write(&number, given, Bytes{4});
  fabric->wait(fabric->start({.group = group, .send = given, .receive = sum, .count = 1}));
  float found = 0;
  device.read(sum, &found, Bytes{4});
  CHECK(found == 2.5F);
  device.release(given);
  device.release(sum);
}

/// What the rank of a pair says whose peer made the group and never called again, while its
/// watchdog aborts.
std::string said_when_aborted(Rendezvous& meeting) {
  QueuedDevice device{{}};
  StandIn gpu{device, 0};
  const auto fabric = make_nccl_fabric(gpu.gpu(), meeting.join(0), 0, 2, patience);
  const std::vector<int> both{0, 1};
  const CollectiveCall call{.group = fabric->make_group(both),
                            .send = device.allocate(Bytes{4}),
                            .receive = device.allocate(Bytes{4}),
                            .count = 1};
  const auto watchdog = std::async(std::launch::async, [&fabric] {
    std::this_thread::sleep_for(milliseconds{100});
    fabric->abort("rank 1 is silent");
  });
  try {
    while (true) fabric->wait(fabric->start(call));
  } catch (const RunFailure& failure) {
    return std::string{meaning(failure.code())} + ": " + failure.what();
  }
}

TEST_CASE("An abort from another thread ends what waits for a peer, and every call after it") {
  Rendezvous meeting{2};
  std::promise<void> over;
  std::thread peer{[&meeting, ends = over.get_future()] {
    QueuedDevice device{{}};
    StandIn gpu{device, 1};
    const auto fabric = make_nccl_fabric(gpu.gpu(), meeting.join(1), 1, 2, patience);
    const std::vector<int> both{0, 1};
    fabric->make_group(both);
    ends.wait();
  }};
  CHECK(said_when_aborted(meeting) ==
        "a peer failed: start again from the checkpoint: rank 1 is silent");
  over.set_value();
  peer.join();
}

TEST_CASE("A wait for a rank that does not come, or that shares the GPU, says so") {
  Rendezvous alone{2};
  QueuedDevice device{{}};
  StandIn gpu{device, 3};
  CHECK_THROWS_WITH(make_nccl_fabric(gpu.gpu(), alone.join(0), 0, 2, milliseconds{50}),
                    Catch::Contains("no rank set 'nccl/gpu/1'"));

  Rendezvous crowded{2};
  const auto other = std::async(std::launch::async, [&crowded] {
    QueuedDevice same{{}};
    StandIn twin{same, 3};
    CHECK_THROWS_AS(make_nccl_fabric(twin.gpu(), crowded.join(1), 1, 2, patience), RunFailure);
  });
  CHECK_THROWS_WITH(make_nccl_fabric(gpu.gpu(), crowded.join(0), 0, 2, patience),
                    Catch::StartsWith("ranks 0 and 1 share GPU 0000:03:00.0 of "));
}

}  // namespace
}  // namespace orrery::executor

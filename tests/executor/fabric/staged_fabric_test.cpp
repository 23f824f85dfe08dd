#include "executor/fabric/staged/staged_fabric.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <mutex>
#include <thread>

#include "executor/device/cpu/cpu_device.hpp"
#include "tests/executor/cuts.hpp"
#include "tests/executor/fabric/tcp/conformance.hpp"
#include "tests/executor/far_device.hpp"
#include "tests/executor/queued_device.hpp"

namespace orrery::executor {
namespace {

using models::Collective;
using models::Plan;
using models::Zero;

/// Lets a test that knows only the host's memory use a fabric of a device: what a call touches
/// is laid out on the device as it is here, and fetched when the call is waited for.
class OnDevice final : public Fabric {
 public:
  OnDevice(Fabric& fabric, Device& device) : fabric_{fabric}, device_{device} {}

  std::string_view name() const override { return fabric_.name(); }
  int rank() const override { return fabric_.rank(); }
  int ranks() const override { return fabric_.ranks(); }
  GroupId make_group(std::span<const int> members) override {
    members_.push_back(static_cast<std::int64_t>(members.size()));
    return fabric_.make_group(members);
  }
  Request start(const CollectiveCall& call) override {
    const std::int64_t n = members_.at(call.group), size = call.count * size_of(call.element);
    const bool all = call.kind == Collective::all_to_all;
    const std::int64_t sent = size * (all || call.kind == Collective::reduce_scatter ? n : 1);
    const std::int64_t received = size * (all || call.kind == Collective::all_gather ? n : 1);
    std::byte* send = const_cast<std::byte*>(call.send);
    const bool apart = send + sent <= call.receive || call.receive + received <= send;
    CollectiveCall there = call;
    Open open;
    if (call.kind == Collective::all_to_all_v) {
      for (MemberPart& each : there.send_parts) each.at = laid_out(open, each.at, each.bytes);
      for (MemberPart& each : there.receive_parts) each.at = laid_out(open, each.at, each.bytes);
    } else if (apart) {
      there.send = laid_out(open, send, sent);
      there.receive = laid_out(open, call.receive, received);
    } else {
      std::byte* first = std::min(send, call.receive);
      std::byte* base = laid_out(open, first, std::max(sent, received));
      there.send = base + (send - first);
      there.receive = base + (call.receive - first);
    }
    return keep(std::move(open), fabric_.start(there));
  }
  Request transfer(const TransferCall& call, TransferEnd end) override {
    Open open;
    TransferCall there = call;
    there.buffer = laid_out(open, call.buffer, call.bytes);
    return keep(std::move(open), fabric_.transfer(there, end));
  }
  bool test(Request request) override { return fabric_.test(open_.at(request.id).request); }
  void wait(Request request) override {
    Open& open = open_.at(request.id);
    fabric_.wait(open.request);
    for (const Region& each : open.regions) {
      device_.read(each.there, each.here, Bytes{each.bytes});
      device_.release(each.there);
    }
    open_.erase(request.id);
  }
  void abort(std::string_view why) noexcept override { fabric_.abort(why); }

 private:
  struct Region {
    std::byte *here, *there;
    std::int64_t bytes;
  };
  struct Open {
    Request request{};
    std::vector<Region> regions{};
  };

  std::byte* laid_out(Open& open, std::byte* here, std::int64_t bytes) {
    std::byte* there = device_.allocate(Bytes{bytes});
    device_.write(here, there, Bytes{bytes});
    open.regions.push_back({here, there, bytes});
    return there;
  }
  Request keep(Open open, Request request) {
    open.request = request;
    open_[++last_] = std::move(open);
    return {last_};
  }

  Fabric& fabric_;
  Device& device_;
  std::vector<std::int64_t> members_;
  std::map<std::uint64_t, Open> open_;
  std::uint64_t last_ = 0;
};

TEST_CASE(
    "What is staged keeps the contract of fabrics, and touches nothing of the device itself") {
  ThreadWorld world{3, std::chrono::seconds{20}};
  std::mutex lock;
  std::vector<std::string> wrong;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      FarDevice device{std::make_unique<CpuDevice>()};
      const auto carrier = world.fabric(rank);
      StagedFabric staged{*carrier, device};
      OnDevice fabric{staged, device};
      const std::vector<std::string> found = broken_promises(fabric);
      const std::lock_guard guard{lock};
      wrong.insert(wrong.end(), found.begin(), found.end());
      if (staged.name() != "threads, staged") wrong.emplace_back("has another name");
    });
  }
  for (std::thread& each : ranks) each.join();
  CHECK(wrong == std::vector<std::string>{});
}

enum class Near { processor, queues };

MakeRig staged(Near near, Arithmetic arithmetic) {
  return [=](ThreadWorld& world, int rank) {
    Rig rig;
    std::unique_ptr<Device> device;
    if (near == Near::processor) {
      device = std::make_unique<CpuDevice>(arithmetic);
    } else {
      device = std::make_unique<QueuedDevice>(QueuedSettings{.arithmetic = arithmetic});
    }
    rig.device = std::make_unique<FarDevice>(std::move(device));
    rig.carrier = world.fabric(rank);
    rig.fabric = std::make_unique<StagedFabric>(*rig.carrier, *rig.device);
    return rig;
  };
}

/// One of each kind of thing that ranks say to each other.
std::vector<Cut> talkative_cuts() {
  std::vector<Cut> all;
  all.push_back(cut("tensor, data and pipeline", small_llama(), [](Plan& p) {
    p.tensor = p.data = p.pipeline = 2;
    p.sharding.zero = Zero::one;
    p.sharding.bucket = Bytes{1};
    p.sequence_parallel = true;
  }));
  all.push_back(cut("ZeRO-3", small_gpt(), [](Plan& p) {
    p.data = 2;
    p.sharding.zero = Zero::three;
  }));
  all.push_back(cut("interleaved", small_gpt(4), [](Plan& p) {
    p.pipeline = p.stages.virtual_stages = 2;
    p.stages.schedule = "interleaved-1f1b";
  }));
  return all;
}

TEST_CASE("A run whose fabric is staged gives the bits of one rank, whatever its device") {
  for (const Cut& each : talkative_cuts()) {
    for (const Near near : {Near::processor, Near::queues}) {
      INFO(each.name << (near == Near::queues ? " on queues" : ""));
      const Outcome& one = reference(each, Arithmetic::ring);
      const Outcome many = run({.model = each.model,
                                .plan = each.plan,
                                .arithmetic = Arithmetic::ring,
                                .steps = 3,
                                .rig = staged(near, Arithmetic::ring)});
      CHECK(same_bits(many.parameters, one.parameters));
      CHECK(same_bits(many.second, one.second));
      CHECK(many.steps[2].ring_loss == one.steps[2].ring_loss);
      CHECK(many.steps[2].ring_norm == one.steps[2].ring_norm);
    }
  }
}

/// A carrier that notes why it was aborted.
class Noting final : public Fabric {
 public:
  std::string_view name() const override { return "noting"; }
  int rank() const override { return 0; }
  int ranks() const override { return 2; }
  GroupId make_group(std::span<const int>) override { return 0; }
  Request start(const CollectiveCall&) override { return {1}; }
  Request transfer(const TransferCall&, TransferEnd end) override {
    return {end == TransferEnd::sends ? 2U : 3U};
  }
  bool test(Request) override { return false; }
  void wait(Request) override {}
  void abort(std::string_view reason) noexcept override { why = reason; }
  std::string why;
};

TEST_CASE("Who leaves with something on its way aborts it, for its memory goes") {
  CpuDevice device;
  Noting carrier;
  std::byte word[8] = {};
  {
    StagedFabric fabric{carrier, device};
    fabric.wait(fabric.receive({.buffer = word, .bytes = 8}));
  }
  CHECK(carrier.why.empty());
  {
    StagedFabric fabric{carrier, device};
    fabric.receive({.buffer = word, .bytes = 8});
  }
  CHECK(carrier.why == "a rank left in the middle of a step");
}

}  // namespace
}  // namespace orrery::executor

// The half of the interpreter that speaks to a device with queues, on queues that are threads.

#include "tests/executor/queued_device.hpp"

#include <catch2/catch.hpp>
#include <mutex>

#include "executor/errors.hpp"
#include "tests/executor/cuts.hpp"
#include "tests/executor/fabric/tcp/conformance.hpp"
#include "tests/executor/queued_rig.hpp"

namespace orrery::executor {
namespace {

using Catch::Contains;
using models::Compression;
using models::Lane;
using models::Plan;
using models::Zero;

TEST_CASE("Work is in order where a queue, a wait or the host puts it there, and nowhere else") {
  HappensBefore order;
  const std::byte memory[16] = {};
  const auto writes = [&](std::size_t lane, std::int64_t at, std::int64_t bytes) {
    order.begin(lane);
    order.touch(lane, "fill", memory + at, bytes, true);
  };
  const auto reads = [&](std::size_t lane, std::int64_t at, std::int64_t bytes) {
    order.begin(lane);
    order.touch(lane, "look", memory + at, bytes, false);
  };
  writes(1, 0, 8);
  reads(1, 4, 4);
  writes(2, 12, 4);
  CHECK_THROWS_WITH(reads(2, 7, 2), "lane 2 'look' reads what lane 1 'fill' may still write");
  CHECK_THROWS_WITH(writes(3, 12, 1), "lane 3 'fill' writes what lane 2 'fill' may still write");
  const HappensBefore::Clock mark = order.now(1);
  reads(1, 0, 4);  // after the mark
  order.join(2, mark);
  reads(2, 0, 8);
  CHECK_THROWS_WITH(writes(2, 0, 8), "lane 2 'fill' writes what lane 1 'look' may still read");
  writes(2, 4, 4);
  order.join(3, order.now(2));  // lane 1's mark comes with it
  reads(3, 0, 8);
  order.join(HappensBefore::host, order.now(3));
  writes(HappensBefore::host, 4, 12);
  writes(1, 4, 12);  // what is enqueued comes after what the host has seen
  CHECK_THROWS_WITH(writes(HappensBefore::host, 0, 1),
                    "lane 0 'fill' writes what lane 1 'look' may still read");
}

TEST_CASE("Queues do what they were given in their order, after the marks that they wait for") {
  QueuedDevice device{{}};
  std::byte* const from = device.allocate(Bytes{8});
  std::byte* const to = device.allocate(Bytes{8});
  const std::uint64_t seven = 7;
  std::uint64_t found = 0;
  device.write(&seven, from, Bytes{8});
  device.zero(to, Bytes{8});
  device.wait(Lane::data, device.mark(Lane::compute));
  device.copy(from, to, Bytes{8}, Lane::data);
  device.read(to, &found, Bytes{8});
  CHECK(found == 7);

  device.zero(from, Bytes{8});
  CHECK_THROWS_WITH(device.write(&seven, from, Bytes{8}),
                    "lane 0 'write' writes what lane 1 'zero' may still write");
  CHECK_THROWS_WITH(device.copy(from, to, Bytes{8}, Lane::data),
                    "lane 4 'copy' reads what lane 1 'zero' may still write");
  device.finish();
  device.write(&seven, from, Bytes{8});

  models::Operation op;
  op.kind = models::OpKind::copy;
  Kernel kernel;
  kernel.operation = &op;
  device.run(kernel);
  CHECK_THROWS_WITH(device.finish(), "the CPU was given an operation that it refuses");
  device.release(from);
  device.release(to);
}

/// Waits as the host does on a fabric without queues.
class Waiting final : public Fabric {
 public:
  Waiting(Fabric& fabric, Device& device) : fabric_{fabric}, device_{device} {}

  std::string_view name() const override { return fabric_.name(); }
  int rank() const override { return fabric_.rank(); }
  int ranks() const override { return fabric_.ranks(); }
  GroupId make_group(std::span<const int> members) override { return fabric_.make_group(members); }
  Request start(const CollectiveCall& call) override { return fabric_.start(call); }
  Request transfer(const TransferCall& call, TransferEnd end) override {
    return fabric_.transfer(call, end);
  }
  bool test(Request request) override { return fabric_.test(request); }
  void wait(Request request) override {
    fabric_.wait(request);
    device_.finish();
  }
  void abort(std::string_view why) noexcept override { fabric_.abort(why); }

 private:
  Fabric& fabric_;
  Device& device_;
};

TEST_CASE("The fabric on queues keeps the contract of fabrics") {
  ThreadWorld world{3, std::chrono::seconds{20}};
  std::mutex lock;
  std::vector<std::string> wrong;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      // The test's own memory comes and goes without the device's knowledge: touches are not
      // checked.
      QueuedDevice device{{.seed = static_cast<std::uint64_t>(rank), .checks = false}};
      QueuedFabric queues{world, rank, device};
      Waiting fabric{queues, device};
      const std::vector<std::string> found = broken_promises(fabric);
      const std::lock_guard guard{lock};
      wrong.insert(wrong.end(), found.begin(), found.end());
    });
  }
  for (std::thread& each : ranks) each.join();
  CHECK(wrong == std::vector<std::string>{});
}

void check_bits_of_one_rank(const Cut& each, std::uint64_t seed, TraceDetail detail) {
  INFO(each.name << ", seed " << seed);
  const Outcome& one = reference(each, Arithmetic::ring);
  Job job{.model = each.model, .plan = each.plan, .arithmetic = Arithmetic::ring, .steps = 3};
  job.settings.trace = detail;
  job.rig = queued({.arithmetic = Arithmetic::ring, .seed = seed});
  const Outcome many = run(job);
  check_bits(many, one);
}

TEST_CASE("On queues every cut gives the bits of one rank, and no wait is missing", "[heavy]") {
  std::uint64_t seed = 0;
  for (const Cut& each : cuts()) check_bits_of_one_rank(each, ++seed, TraceDetail::none);
}

TEST_CASE("On queues every cut gives the bits of one rank, whatever the delays", "[slow]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    for (const Cut& each : cuts()) check_bits_of_one_rank(each, 100 + seed, TraceDetail::none);
  }
}

/// With all kinds of queues and ways at once.
Cut busy() {
  return cut("tensor, data and pipeline", small_llama(4), [](Plan& p) {
    p.tensor = p.data = p.pipeline = p.stages.virtual_stages = 2;
    p.stages.schedule = "interleaved-1f1b";
    p.sharding.zero = Zero::one;
    p.sharding.bucket = Bytes{1};
    p.sequence_parallel = true;
  });
}

TEST_CASE("What is recorded on queues is what is recorded without, each in its time") {
  Job job{.model = busy().model, .plan = busy().plan, .steps = 2};
  const Outcome straight = run(job);
  job.rig = queued({});
  const Outcome queues = run(job);
  CHECK(same_bits(queues.parameters, straight.parameters));
  REQUIRE(queues.traces.size() == straight.traces.size());
  for (std::size_t rank = 0; rank < queues.traces.size(); ++rank) {
    const std::vector<TraceRecord>& records = queues.traces[rank].records();
    CHECK(records.size() == straight.traces[rank].records().size());
    for (const TraceRecord& each : records) {
      if (each.start < Time{} || each.duration < Time{}) FAIL_CHECK(each.id << " ends first");
    }
  }
}

TEST_CASE("On queues a narrow run has the bits that it has without, loss and norm too") {
  for (const models::Precision precision : {models::Precision::bf16, models::Precision::fp16}) {
    Job job{.model = busy().model, .plan = busy().plan, .steps = 3};
    job.plan.formats.precision = precision;
    const Outcome straight = run(job);
    job.rig = queued({.seed = 3});
    const Outcome queues = run(job);
    CHECK(same_bits(queues.parameters, straight.parameters));
    for (std::size_t step = 0; step < 3; ++step) {
      CHECK(queues.steps[step].loss == straight.steps[step].loss);
      CHECK(queues.steps[step].gradient_norm == straight.steps[step].gradient_norm);
    }
  }
}

TEST_CASE("On queues compressed gradients have the bits that they have without") {
  for (const Compression compression :
       {Compression::fp16, Compression::top_k, Compression::power_sgd}) {
    Job job{.model = small_gpt(), .plan = small_plan(), .steps = 3};
    job.plan.data = 4;
    job.plan.sharding.bucket = Bytes{1};
    job.plan.compression.kind = compression;
    job.plan.compression.share = 0.1;
    const Outcome straight = run(job);
    for (const std::uint64_t seed : {1, 2, 3}) {
      job.rig = queued({.seed = seed});
      CHECK(same_bits(run(job).parameters, straight.parameters));
    }
  }
}

TEST_CASE("On queues nothing reads what was freed") {
  Job job{.model = busy().model, .plan = busy().plan, .steps = 2};
  const Outcome straight = run(job);
  job.settings.freed = Freed::poisoned;
  job.rig = queued({.seed = 7});
  CHECK(same_bits(run(job).parameters, straight.parameters));
}

TEST_CASE("A wait that is left out is caught, whichever queue it was for") {
  const auto without = [](const Cut& of, Lane waits, Lane marked) {
    Job job{.model = of.model, .plan = of.plan};
    job.settings.trace = TraceDetail::none;
    QueuedSettings settings;
    settings.forget = [=](Lane a, Lane b) { return a == waits && b == marked; };
    job.rig = queued(settings);
    run(job);
  };
  const Cut data = cut("data", small_gpt(), [](Plan& p) {
    p.data = 2;
    p.sharding.bucket = Bytes{1};
  });
  const Cut tensor = cut("tensor", small_gpt(), [](Plan& p) { p.tensor = 2; });
  const Cut shards = cut("ZeRO-3", small_gpt(), [](Plan& p) {
    p.data = 2;
    p.sharding.zero = Zero::three;
  });
  const auto caught = Contains("may still");
  CHECK_THROWS_WITH(without(data, Lane::data, Lane::compute), caught);
  CHECK_THROWS_WITH(without(data, Lane::compute, Lane::data), caught);
  CHECK_THROWS_WITH(without(shards, Lane::data, Lane::compute), caught);
  CHECK_THROWS_WITH(without(shards, Lane::compute, Lane::data), caught);
  CHECK_THROWS_WITH(without(tensor, Lane::tensor, Lane::compute), caught);
  CHECK_THROWS_WITH(without(tensor, Lane::compute, Lane::tensor), caught);
  CHECK_NOTHROW(without(tensor, Lane::tensor, Lane::data));
}

}  // namespace
}  // namespace orrery::executor

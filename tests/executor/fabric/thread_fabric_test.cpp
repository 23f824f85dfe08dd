#include "executor/fabric/threads/thread_fabric.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "executor/device/half.hpp"
#include "executor/errors.hpp"
#include "executor/fabric/sums.hpp"

namespace orrery::executor {
namespace {

using models::Collective;

void on_ranks(ThreadWorld& world, const std::function<void(Fabric&)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto fabric = world.fabric(rank);
      work(*fabric);
    });
  }
  for (std::thread& each : threads) each.join();
}

/// What rank r of three has after a collective of two elements each, which begin as 10 r + i.
std::vector<std::vector<float>> after(Collective kind, std::size_t sent, std::size_t received) {
  ThreadWorld world{3};
  std::vector<std::vector<float>> results(3);
  on_ranks(world, [&](Fabric& fabric) {
    const std::vector<int> all{0, 1, 2};
    CollectiveCall call;
    call.kind = kind;
    call.group = fabric.make_group(all);
    call.count = 2;
    call.root = 1;
    const int rank = fabric.rank();
    std::vector<float> send(sent);
    for (std::size_t i = 0; i < sent; ++i) {
      send[i] = static_cast<float>(10 * rank + static_cast<int>(i));
    }
    auto& receive = results[static_cast<std::size_t>(rank)];
    receive.resize(received);
    call.send = reinterpret_cast<const std::byte*>(send.data());
    call.receive = reinterpret_cast<std::byte*>(receive.data());
    fabric.wait(fabric.start(call));
  });
  return results;
}

using Rows = std::vector<std::vector<float>>;

TEST_CASE("Collectives of threads do what their names say") {
  CHECK(after(Collective::all_reduce, 2, 2) == Rows{{30, 33}, {30, 33}, {30, 33}});
  CHECK(after(Collective::reduce_scatter, 6, 2) == Rows{{30, 33}, {36, 39}, {42, 45}});
  const std::vector<float> whole{0, 1, 10, 11, 20, 21};
  CHECK(after(Collective::all_gather, 2, 6) == Rows{whole, whole, whole});
  CHECK(after(Collective::broadcast, 2, 2) == Rows{{10, 11}, {10, 11}, {10, 11}});
  CHECK(after(Collective::all_to_all, 6, 6) ==
        Rows{{0, 1, 10, 11, 20, 21}, {2, 3, 12, 13, 22, 23}, {4, 5, 14, 15, 24, 25}});
}

TEST_CASE("Sums are taken in the order of the ranks") {
  // 2^24 + 1 is 2^24 in fp32, and 1 + 1 + 2^24 is 2^24 + 2.
  const float large = 16777216.0F;
  const std::array<float, 3> values{large, 1, 1};
  const auto summed = [&](int a, int b, int c) {
    std::array<const std::byte*, 3> from{};
    const std::array<int, 3> order{a, b, c};
    for (std::size_t i = 0; i < 3; ++i) {
      from[i] = reinterpret_cast<const std::byte*>(&values[static_cast<std::size_t>(order[i])]);
    }
    float sum = 0;
    sum_in_order(Element::fp32, from, reinterpret_cast<std::byte*>(&sum), 1);
    return sum;
  };
  CHECK(summed(0, 1, 2) == large);
  CHECK(summed(1, 2, 0) == large + 2);
}

TEST_CASE("The k-th send meets the k-th receive, whichever comes first") {
  ThreadWorld world{2};
  std::vector<int> got;
  on_ranks(world, [&](Fabric& fabric) {
    const std::vector<int> both{0, 1};
    const GroupId group = fabric.make_group(both);
    std::array<int, 3> values{7, 8, 9};
    std::vector<Request> open;
    for (int& value : values) {
      if (fabric.rank() == 1) value = 0;
      const TransferCall call{.group = group,
                              .peer = 1 - fabric.rank(),
                              .buffer = reinterpret_cast<std::byte*>(&value),
                              .bytes = 4};
      open.push_back(fabric.rank() == 0 ? fabric.send(call) : fabric.receive(call));
    }
    for (const Request& each : open) fabric.wait(each);
    if (fabric.rank() == 1) got.assign(values.begin(), values.end());
  });
  CHECK(got == std::vector<int>{7, 8, 9});
}

TEST_CASE("An abort ends the wait of every rank, and a deadline that of a lone one") {
  ThreadWorld world{2};
  std::string said;
  on_ranks(world, [&](Fabric& fabric) {
    const std::vector<int> both{0, 1};
    CollectiveCall call;
    call.group = fabric.make_group(both);
    float value = 0;
    call.send = call.receive = reinterpret_cast<std::byte*>(&value);
    call.count = 1;
    if (fabric.rank() == 1) return fabric.abort("rank 1 has had enough");
    try {
      fabric.wait(fabric.start(call));
    } catch (const RunFailure& failure) {
      CHECK(failure.code() == Exit::peer_failed);
      said = failure.what();
    }
  });
  CHECK(said == "rank 1 has had enough");

  ThreadWorld lonely{2, std::chrono::milliseconds{20}};
  const auto fabric = lonely.fabric(0);
  const std::vector<int> both{0, 1};
  CollectiveCall call;
  call.group = fabric->make_group(both);
  std::byte byte{};
  call.send = call.receive = &byte;
  const Request request = fabric->start(call);
  CHECK_FALSE(fabric->test(request));
  CHECK_THROWS_WITH(fabric->wait(request), "the other ranks did not come before the deadline");
}

TEST_CASE("Sixteen bits widen exactly and are rounded to nearest, ties to even") {
  const auto through = [](auto half, float value) {
    narrow(value, half);
    return widened(half);
  };
  CHECK(through(Bf16{}, 1.0F) == 1.0F);
  CHECK(through(Bf16{}, 1.0F + 0x1p-8F) == 1.0F);            // a tie, to the even 1
  CHECK(through(Bf16{}, 1.0F + 0x3p-8F) == 1.0F + 0x1p-6F);  // a tie, to the even 1 + 4/256
  CHECK(through(Fp16{}, 1.0F + 0x1p-11F) == 1.0F);
  CHECK(through(Fp16{}, 1.0F + 0x3p-11F) == 1.0F + 0x1p-9F);
  CHECK(through(Fp16{}, 65504.0F) == 65504.0F);  // the largest
  CHECK(through(Fp16{}, 65520.0F) == std::numeric_limits<float>::infinity());
  CHECK(through(Fp16{}, 0x1p-24F) == 0x1p-24F);  // the smallest
  CHECK(through(Fp16{}, 0x1p-25F) == 0.0F);
  CHECK(through(Fp16{}, -0x3p-25F) == -0x1p-23F);
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {  // every finite number
    Fp16 half{static_cast<std::uint16_t>(bits)}, again;
    narrow(widened(half), again);
    if (again.bits != bits) FAIL("fp16 " << bits << " becomes " << again.bits);
  }
}

}  // namespace
}  // namespace orrery::executor

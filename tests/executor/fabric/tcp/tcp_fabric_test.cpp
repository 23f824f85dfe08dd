#include "executor/fabric/tcp/tcp_fabric.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <mutex>
#include <thread>

#include "executor/errors.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/launch/private_folder.hpp"
#include "tests/executor/fabric/tcp/conformance.hpp"

namespace orrery::executor {

namespace {

using namespace std::chrono_literals;

/// Runs `body` on ranks that are threads of this process and communicate over TCP; what they throw,
/// by rank.
std::vector<std::string> on_tcp_ranks(int ranks,
                                      const std::function<void(TcpFabric&, Store&)>& body,
                                      const Address& where = {"127.0.0.1", 0}) {
  const StoreServer server{where, {.job = "test", .ranks = ranks}};
  std::vector<std::string> failures(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Store store{server.address(), {.job = "test", .ranks = ranks}, rank, 10s};
        TcpFabric fabric{store, {.patience = 10s}};
        body(fabric, store);
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return failures;
}

Request all_reduce(Fabric& fabric, GroupId group, std::vector<float>& buffer) {
  auto* at = reinterpret_cast<std::byte*>(buffer.data());
  return fabric.start({.group = group,
                       .send = at,
                       .receive = at,
                       .count = static_cast<std::int64_t>(buffer.size())});
}

GroupId world_of(Fabric& fabric) {
  std::vector<int> all;
  for (int rank = 0; rank < fabric.ranks(); ++rank) all.push_back(rank);
  return fabric.make_group(all);
}

}  // namespace

TEST_CASE("Sockets keep a fabric's contract, whatever the number of ranks") {
  const int ranks = GENERATE(1, 2, 3, 4);
  const Address where = GENERATE(Address{"127.0.0.1", 0}, unused_socket());
  std::mutex lock;
  std::vector<std::string> wrong;
  const auto failures = on_tcp_ranks(
      ranks,
      [&](TcpFabric& fabric, Store&) {
        const auto mine = broken_promises(fabric);
        const std::lock_guard guard{lock};
        wrong.insert(wrong.end(), mine.begin(), mine.end());
      },
      where);
  CHECK(wrong == std::vector<std::string>{});
  CHECK(failures == std::vector<std::string>(static_cast<std::size_t>(ranks)));
}

TEST_CASE("Threads keep a fabric's contract") {
  const int ranks = 3;
  ThreadWorld world{ranks};
  std::mutex lock;
  std::vector<std::string> wrong;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto fabric = world.fabric(rank);
      const auto mine = broken_promises(*fabric);
      const std::lock_guard guard{lock};
      wrong.insert(wrong.end(), mine.begin(), mine.end());
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == std::vector<std::string>{});
}

TEST_CASE("Sums of the ring have the same bits on all ranks and every time") {
  // Addends of very different size, whose sum depends on the order.
  std::mutex lock;
  std::vector<std::vector<float>> results;
  const auto failures = on_tcp_ranks(3, [&](TcpFabric& fabric, Store&) {
    const GroupId group = world_of(fabric);
    for (int round = 0; round < 3; ++round) {
      std::vector<float> buffer(100'003);
      for (std::size_t i = 0; i < buffer.size(); ++i) {
        const auto seed = static_cast<std::uint32_t>(i * 2654435761U + fabric.rank() * 40503U);
        buffer[i] = static_cast<float>(seed % 1000) * (seed % 7 == 0 ? 1e6F : 1e-3F);
      }
      fabric.wait(all_reduce(fabric, group, buffer));
      const std::lock_guard guard{lock};
      results.push_back(buffer);
    }
  });
  CHECK(failures == std::vector<std::string>(3));
  REQUIRE(results.size() == 9);
  for (const auto& each : results) CHECK((each == results.front()));
}

TEST_CASE("A rank that goes ends those who wait for it, by name") {
  const auto begin = Clock::now();
  const auto failures = on_tcp_ranks(3, [&](TcpFabric& fabric, Store&) {
    const GroupId group = world_of(fabric);
    std::vector<float> buffer(10);
    fabric.wait(all_reduce(fabric, group, buffer));
    if (fabric.rank() == 1) return;  // its sockets close
    fabric.wait(all_reduce(fabric, group, buffer));
  });
  // Closed, or reset where something was still on its way. Rank 0 or 2 may fail first and go too.
  using Catch::Matchers::Matches;
  CHECK(failures[1].empty());
  for (const std::size_t rank : {0, 2}) {
    CHECK_THAT(failures[rank], Matches("rank [012] (closed its connection|vanished .*)"));
  }
  CHECK(Clock::now() - begin < 10s);
}

TEST_CASE("A rank that has done its part may go while others finish") {
  const auto failures = on_tcp_ranks(2, [&](TcpFabric& fabric, Store&) {
    const GroupId group = world_of(fabric);
    std::vector<std::byte> buffer(5'000'000, std::byte{7});
    const TransferCall call{.group = group,
                            .peer = 1 - fabric.rank(),
                            .buffer = buffer.data(),
                            .bytes = static_cast<std::int64_t>(buffer.size())};
    if (fabric.rank() == 0) return fabric.wait(fabric.send(call));
    std::this_thread::sleep_for(100ms);
    fabric.wait(fabric.receive(call));
  });
  CHECK(failures == std::vector<std::string>(2));
}

TEST_CASE("An abort from another thread ends a wait with its reason") {
  const auto failures = on_tcp_ranks(2, [&](TcpFabric& fabric, Store& store) {
    const GroupId group = world_of(fabric);
    if (fabric.rank() == 0) return store.barrier("end", 10s);
    std::thread other{[&] {
      std::this_thread::sleep_for(50ms);
      fabric.abort("rank 5 ran out of memory");
    }};
    std::vector<float> buffer(10);
    std::string why;
    try {
      fabric.wait(all_reduce(fabric, group, buffer));
    } catch (const RunFailure& failure) {
      why = failure.what();
      if (failure.code() != Exit::peer_failed) why = "another exit code";
    }
    other.join();
    store.barrier("end", 10s);
    if (why != "rank 5 ran out of memory") throw std::runtime_error{"found: " + why};
  });
  CHECK(failures == std::vector<std::string>(2));
}

TEST_CASE("Ranks that never come are named") {
  const StoreServer server{{"127.0.0.1", 0}, {.job = "test", .ranks = 4}};
  std::string zero, one;
  std::thread other{[&] {
    try {
      Store store{server.address(), {.job = "test", .ranks = 4}, 1, 1s};
      const TcpFabric fabric{store, {.patience = 500ms}};
    } catch (const RunFailure& failure) {
      one = failure.what();
    }
  }};
  try {
    Store store{server.address(), {.job = "test", .ranks = 4}, 0, 1s};
    const TcpFabric fabric{store, {.patience = 500ms}};
  } catch (const RunFailure& failure) {
    zero = failure.what();
  }
  other.join();
  CHECK(zero == "ranks 2 3 did not connect within 1 s");
  CHECK(one == "ranks 2 3 did not connect within 1 s");
}

TEST_CASE("A connection of another program is passed over") {
  const StoreServer server{{"127.0.0.1", 0}, {.job = "test", .ranks = 2}};
  std::thread one{[&] {
    Store store{server.address(), {.job = "test", .ranks = 2}, 1, 5s};
    const Address address = parse_address(store.get("tcp/0", 5s), "tcp/0");
    const Socket other = connect_to(address, Clock::now() + 1s);
    send_all(other, "GET / HTTP/1.1\r\n\r\n", 18, Clock::now() + 1s, "rank 0");
    TcpFabric fabric{store, {.patience = 5s}};
    std::vector<float> buffer{2};
    fabric.wait(all_reduce(fabric, world_of(fabric), buffer));
  }};
  Store store{server.address(), {.job = "test", .ranks = 2}, 0, 5s};
  TcpFabric fabric{store, {.patience = 5s}};
  std::vector<float> buffer{1};
  fabric.wait(all_reduce(fabric, world_of(fabric), buffer));
  one.join();
  CHECK(buffer == std::vector<float>{3});
}

}  // namespace orrery::executor

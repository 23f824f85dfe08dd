#include "executor/launch/store.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/executor/launch/failure.hpp"

namespace orrery::executor {

namespace {

using namespace std::chrono_literals;

const Address free_port{.host = "127.0.0.1", .port = 0};

Store join(const StoreServer& server, int rank, int ranks, const LastWill& will = {}) {
  return Store{
      server.address(), {.job = "test", .ranks = ranks}, Claims{rank, PeerRole::rank, will}, 5s};
}

}  // namespace

TEST_CASE("What one rank sets the others find") {
  const StoreServer server{free_port, {.job = "test", .ranks = 2}};
  Store zero = join(server, 0, 2), one = join(server, 1, 2);
  CHECK_FALSE(one.find("key").has_value());
  zero.set("key", "value");
  CHECK(one.find("key") == "value");
  CHECK(one.get("key", 1s) == "value");
  CHECK(one.first("key", "other") == "value");
  CHECK(one.first("fresh", "mine") == "mine");
  CHECK(zero.add("count", 5) == 5);
  CHECK(one.add("count", -7) == -2);
  zero.erase("key");
  CHECK_FALSE(one.find("key").has_value());
}

TEST_CASE("A value of 8 MiB with every byte in it survives the wire") {
  const StoreServer server{free_port, {.job = "test", .ranks = 1}};
  Store store = join(server, 0, 1);
  std::string large(8 << 20, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31);
  store.set("large", large);
  CHECK((store.get("large", 1s) == large));
}

TEST_CASE("A get waits for the set; a barrier for the last rank, time after time") {
  const StoreServer server{free_port, {.job = "test", .ranks = 3}};
  std::atomic<int> arrived{0};
  std::atomic<bool> early{false};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      Store store = join(server, rank, 3);
      if (rank == 2) {
        std::this_thread::sleep_for(50ms);
        store.set("late", "yes");
      } else if (store.get("late", 5s) != "yes") {
        early = true;
      }
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        store.barrier("round", 5s);
        if (arrived < 3 * round) early = true;
        store.barrier("checked", 5s);
      }
    });
  }
  for (std::thread& each : ranks) each.join();
  CHECK_FALSE(early);
}

TEST_CASE("Who is missing when time is up is said by name") {
  const StoreServer server{free_port, {.job = "test", .ranks = 4}};
  Store zero = join(server, 0, 4), one = join(server, 1, 4);
  CHECK(failure([&] { zero.get("tcp/3", 1s); }) ==
        "no rank set 'tcp/3' within 1 s; missing: ranks 2 3");
  CHECK(failure([&] { one.barrier("start", 50ms); }) ==
        "barrier 'start' was not reached within 1 s by ranks 0 2 3");
  Store two = join(server, 2, 4), three = join(server, 3, 4);
  CHECK(failure([&] { zero.get("nothing", 20ms); }) == "no rank set 'nothing' within 1 s");
}

TEST_CASE("A rank that dies without goodbye leaves its will, one that leaves does not") {
  const StoreServer server{free_port, {.job = "test", .ranks = 3}};
  Store zero = join(server, 0, 3);
  {
    Store one = join(server, 1, 3, {"abort", "rank 1 vanished"});
    one.leave();
  }
  CHECK_FALSE(zero.find("abort").has_value());
  { const Store two = join(server, 2, 3, {"abort", "rank 2 vanished"}); }
  CHECK(zero.get("abort", 5s) == "rank 2 vanished");
}

TEST_CASE("A store that vanishes ends a wait at once") {
  auto server = std::make_unique<StoreServer>(free_port, StoreIdentity{.job = "test", .ranks = 2});
  const std::string name = "rank 0's store at " + text_of(server->address());
  Store one = join(*server, 1, 2);
  std::thread end{[&] {
    std::this_thread::sleep_for(50ms);
    server.reset();
  }};
  const auto begin = Clock::now();
  CHECK(failure([&] { one.get("never", 30s); }) == name + " closed its connection");
  CHECK(Clock::now() - begin < 5s);
  end.join();
}

TEST_CASE("One listener serves IPv6 and IPv4") {
  const StoreServer server{{.host = "", .port = 0}, {.job = "test", .ranks = 1}};
  const std::uint16_t port = server.address().port;
  for (const char* host : {"127.0.0.1", "::1", "localhost"}) {
    Store store{{host, port}, {.job = "test", .ranks = 1}, 0, 5s};
    store.set(host, "reached");
    CHECK(store.find(host) == "reached");
    CHECK(is_loopback(store.local().host));
  }
}

TEST_CASE("A port that is taken is said, not shared") {
  const StoreServer server{free_port, {.job = "test", .ranks = 1}};
  CHECK(failure([&] { StoreServer(server.address(), {.job = "other", .ranks = 1}); }) ==
        "cannot listen on " + text_of(server.address()) + ": Address already in use");
}

TEST_CASE("Nobody at an address is said with the reason") {
  Address closed;
  {
    const Socket listener = listen_on(free_port);
    closed = local_address(listener);
  }
  CHECK(failure([&] { connect_to(closed, Clock::now() + 100ms); }) ==
        "no answer at " + text_of(closed) + " (Connection refused)");
}

TEST_CASE("Clocks of one machine are found to be equal") {
  const StoreServer server{free_port, {.job = "test", .ranks = 1}};
  Store store = join(server, 0, 1);
  // Half the quickest round trip is the error; a loaded machine still answers once in 5 ms.
  CHECK(std::chrono::abs(store.clock_offset()) < 5ms);
}

TEST_CASE("A long list of ranks is cut") {
  CHECK(text_of_ranks({7}) == "rank 7");
  CHECK(text_of_ranks({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) == "ranks 0 1 2 3 4 5 6 7 and 2 more");
}

}  // namespace orrery::executor

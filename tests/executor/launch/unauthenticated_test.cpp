// What a process can do that reaches the store and does not belong to the run.

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <ctime>
#include <fstream>
#include <thread>
#include <vector>

#include "executor/launch/frame.hpp"
#include "executor/launch/store.hpp"
#include "executor/launch/store_table.hpp"
#include "executor/session/watchdog.hpp"
#include "tests/executor/launch/failure.hpp"

namespace orrery::executor {
namespace {

using namespace std::chrono_literals;

const Address local_port{.host = "127.0.0.1", .port = 0};

/// What is answered to these bytes until the connection ends, or for as long as a test waits.
std::string answer_of(const Socket& socket, std::chrono::milliseconds patience = 2000ms) {
  std::string all;
  char buffer[256];
  for (;;) {
    pollfd ready{socket.descriptor(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(patience.count())) != 1) return all + " and waits";
    const ssize_t got = ::recv(socket.descriptor(), buffer, sizeof buffer, 0);
    if (got <= 0) return all;
    all.append(buffer, static_cast<std::size_t>(got));
  }
}

bool is_closed(const Socket& socket) {
  return answer_of(socket, 0ms).find("and waits") == std::string::npos;
}

Socket caller_at(const Address& server, const std::string& says) {
  Socket socket = connect_to(server, Clock::now() + 1s);
  send_all(socket, says.data(), says.size(), Clock::now() + 1s, "the store");
  return socket;
}

StoreIdentity secretly(int ranks) {
  return {.job = "test", .ranks = ranks, .secret = parse_secret(std::string(32, 's'))};
}

/// What is wrong with a greeting.
struct Flaw {
  std::string magic = "ORRERYST", job = "test";
  std::uint64_t version = 2, ranks = 2, rank = 1, role = 0, size_more = 0;
  StoreIdentity identity = secretly(2);
};

std::string answer_to(const StoreServer& server, const Flaw& flaw) {
  const std::string nonce(32, 'n');
  const Socket socket = caller_at(
      server.address(), flaw.magic + FrameWriter{}.number(flaw.version, 4).bytes() + nonce);
  std::string theirs(32, '\0');
  receive_all(socket, theirs.data(), theirs.size(), Clock::now() + 2s, "the store");
  if (theirs == HandshakeServer::refusal()) return theirs + answer_of(socket);
  const std::string claims = FrameWriter{}
                                 .number(flaw.ranks, 4)
                                 .number(flaw.rank, 4)
                                 .number(flaw.role, 1)
                                 .text(flaw.job)
                                 .text("")
                                 .text("")
                                 .bytes();
  const std::string shown = FrameWriter{}.number(claims.size() + flaw.size_more, 4).bytes() +
                            claims +
                            proof(flaw.identity.secret, "cORRERYST" + nonce + theirs + claims);
  send_all(socket, shown.data(), shown.size(), Clock::now() + 1s, "the store");
  return answer_of(socket);
}

}  // namespace

TEST_CASE("Every refusal is the same answer, whatever was wrong") {
  const StoreServer server{local_port, secretly(2)};
  const Store one{server.address(), secretly(2), 1, 2s};
  StoreIdentity another = secretly(2);
  another.secret = parse_secret(std::string(32, 't'));
  const Flaw flaws[] = {
      {.magic = "GET / HT"},
      {.magic = "ORRERYTW"},
      {.version = 1},
      {.job = "other"},
      {.ranks = 3},
      {.rank = 2},
      {.rank = std::uint64_t{1} << 31},
      {.role = 2},
      {.rank = 0, .identity = another},
      {.rank = 0, .identity = {}},
      {.size_more = 1 << 20},
      {.rank = 1},  // is there already
  };
  for (const Flaw& each : flaws) CHECK(answer_to(server, each) == HandshakeServer::refusal());
  // Nothing is wrong with this one, which is admitted and may send requests.
  CHECK(answer_to(server, {.rank = 0}).find(" and waits") == 32);
}

TEST_CASE("A rank that is refused says what must agree, and learns nothing") {
  const StoreServer server{local_port, secretly(2)};
  const std::string refused =
      "rank 0's store at " + text_of(server.address()) +
      " refuses this rank: job 'b', 2 ranks, ORRERY_SECRET and the version of orrery must match "
      "those of rank 0, and there can be only one rank 1";
  CHECK(failure([&] { Store(server.address(), {.job = "b", .ranks = 2}, 1, 1s); }) == refused);
}

TEST_CASE("A server without the secret is no store of the run") {
  // It answers the greeting in form, but cannot prove anything.
  const Socket listener = listen_on(local_port);
  const Address where = local_address(listener);
  std::thread impostor{[&] {
    const Socket caller{::accept(listener.descriptor(), nullptr, nullptr)};
    std::string heard(8 + 4 + 32, '\0');
    receive_all(caller, heard.data(), heard.size(), Clock::now() + 2s, "caller");
    const std::string said(64, 'x');
    send_all(caller, said.data(), said.size(), Clock::now() + 2s, "caller");
  }};
  CHECK(failure([&] { Store(where, secretly(2), 1, 1s); }) ==
        "rank 0's store at " + text_of(where) + " does not know the run's secret");
  impostor.join();
}

TEST_CASE("Nobody sets a key, ends the run or beats for a rank before it is let in") {
  const StoreServer server{local_port, secretly(2)};
  Store zero{server.address(), secretly(2), 0, 2s};
  const std::string set = FrameWriter{}
                              .number(0, 1)
                              .number(0, 4)
                              .text("abort")
                              .text(text_of(Verdict{Exit::done, 0, "ended"}))
                              .framed();
  const Socket early = caller_at(server.address(), set + set);
  CHECK(answer_of(early).find(HandshakeServer::refusal()) == 0);
  CHECK_FALSE(zero.find("abort").has_value());
}

TEST_CASE(
    "Unfinished frames, large headers and silence of many cost no memory and keep no rank out") {
  const StoreServer server{local_port, secretly(2)};
  const auto resident = [] {
    long pages = 0, ours = 0;
    std::ifstream{"/proc/self/statm"} >> pages >> ours;
    return ours * sysconf(_SC_PAGESIZE);
  };
  const std::string much = FrameWriter{}.number(64 << 20, 4).bytes() + std::string(1 << 20, 'x');
  const long before = resident();
  std::vector<Socket> callers;
  for (int i = 0; i < 30; ++i) {
    callers.push_back(connect_to(server.address(), Clock::now() + 1s));
    // As much of it as the system takes.
    ::send(callers.back().descriptor(), much.data(), much.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  for (int i = 0; i < 30; ++i) callers.push_back(caller_at(server.address(), "ORRERY"));
  Store zero{server.address(), secretly(2), 0, 2s};
  zero.set("here", "yes");
  CHECK(resident() - before < 8 << 20);
  // Four may greet at a time in a run of two ranks; the oldest went for the newest.
  CHECK(is_closed(callers.at(30)));
}

TEST_CASE("A rank whose handshake is dropped tries again") {
  Address where;
  std::thread flooded;
  {
    const Socket listener = listen_on(local_port);
    where = local_address(listener);
    flooded = std::thread{[&where] { CHECK_NOTHROW(Store(where, secretly(2), 0, 5s)); }};
    for (int i = 0; i < 2; ++i) {
      const Socket dropped{::accept(listener.descriptor(), nullptr, nullptr)};
    }
  }
  const StoreServer server{where, secretly(2)};
  flooded.join();
}

TEST_CASE("A caller who says nothing is sent away after five seconds", "[slow]") {
  const StoreServer server{local_port, secretly(2)};
  const auto begin = Clock::now();
  const Socket silent = connect_to(server.address(), begin + 1s);
  CHECK(answer_of(silent, 8s).empty());
  CHECK(Clock::now() - begin > 4s);
  CHECK(Clock::now() - begin < 7s);
}

TEST_CASE("Without descriptors no peer is accepted for a while, without spinning") {
  StoreServer server{local_port, secretly(8)};
  Store zero{server.address(), secretly(8), 0, 2s};
  const Address where = server.address();
  const pid_t attacker = fork();
  if (attacker == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<Socket> held;
    for (int i = 0; i < 40; ++i) held.push_back(connect_to(where, Clock::now() + 1s));
    pause();
  }
  rlimit before{}, few{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  few = before;
  few.rlim_cur = static_cast<rlim_t>(Socket{::eventfd(0, 0)}.descriptor()) + 2;
  const int limited = setrlimit(RLIMIT_NOFILE, &few);
  std::this_thread::sleep_for(200ms);
  const std::clock_t begin = std::clock();
  std::this_thread::sleep_for(500ms);
  const double busy = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  zero.set("still", "here");
  const auto found = zero.find("still");
  const int lifted = setrlimit(RLIMIT_NOFILE, &before);
  kill(attacker, SIGKILL);
  waitpid(attacker, nullptr, 0);
  REQUIRE((limited == 0 && lifted == 0));
  CHECK(found == "here");
  CHECK(busy < 0.25);
  Store one{where, secretly(8), 1, 5s};
  CHECK(one.find("still") == "here");
}

TEST_CASE("A role of a rank has one connection; who leaves may come again") {
  const StoreServer server{local_port, secretly(2)};
  Store one{server.address(), secretly(2), 1, 2s};
  const Store watchdog{server.address(), secretly(2), Claims{1, PeerRole::watchdog, {}}, 2s};
  CHECK(failure([&] { Store(server.address(), secretly(2), 1, 1s); }).find("only one rank 1") !=
        std::string::npos);
  one.leave();
  std::string why = "not tried";
  for (int i = 0; i < 100 && !why.empty(); ++i) {  // the server sees the end in its own time
    why = failure([&] { Store(server.address(), secretly(2), 1, 1s); });
  }
  CHECK(why.empty());
}

TEST_CASE("A rank that asks what cannot be read is lost, and no other") {
  const StoreServer server{local_port, secretly(2)};
  Store zero{server.address(), secretly(2), 0, 2s};
  const auto asked = GENERATE(
      as<std::string>{}, FrameWriter{}.number(0xFFFFFFFF, 4).bytes(),
      FrameWriter{}.text("").framed(), FrameWriter{}.framed(),
      FrameWriter{}.number(99, 1).number(0, 4).text("").text("").framed(),
      FrameWriter{}.number(0, 1).number(0, 4).text(std::string(257, 'k')).text("").framed(),
      FrameWriter{}.number(0, 1).number(0, 4).text("k").text("v").number(1, 1).framed());
  const Socket one = connect_to(server.address(), Clock::now() + 1s);
  const Claims claims{.rank = 1, .role = PeerRole::rank, .will = {"gone", "yes"}};
  REQUIRE(handshake(one, Service::store, secretly(2), claims, Clock::now() + 2s).empty());
  send_all(one, asked.data(), asked.size(), Clock::now() + 1s, "the store");
  CHECK(answer_of(one).empty());
  CHECK(zero.get("gone", 2s) == "yes");
}

TEST_CASE("A store has room for so many keys and no more") {
  const StoreServer server{local_port, secretly(1)};
  Store zero{server.address(), secretly(1), 0, 2s};
  const std::string why = failure([&] {
    for (int i = 0; i < 2000; ++i) zero.set(std::to_string(i), "");
  });
  CHECK(why == "the store has no room for keys");
  zero.set("0", "what is there may change");
  zero.erase("1");
  zero.set("another", "");
}

TEST_CASE("A store listens on the address that it was given alone") {
  const StoreServer server{local_port, secretly(1)};
  const Address other{"127.0.0.2", server.address().port};
  CHECK(failure([&] { connect_to(other, Clock::now() + 60ms); }) ==
        "no answer at " + text_of(other) + " (Connection refused)");
}

}  // namespace orrery::executor

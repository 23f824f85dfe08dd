#include "executor/launch/socket.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <thread>

#include "executor/launch/interruption.hpp"
#include "executor/launch/private_folder.hpp"
#include "executor/launch/store.hpp"
#include "tests/executor/launch/failure.hpp"

namespace orrery::executor {
namespace {

using namespace std::chrono_literals;

const Address any_port{.host = "127.0.0.1", .port = 0};
const StoreIdentity alone{.job = "test", .ranks = 1};
const StoreIdentity identity{.job = "test", .ranks = 2};

}  // namespace

TEST_CASE("A Unix socket has no owner until it is served, and is gone afterwards") {
  const Address where = unused_socket();
  {
    const StoreServer server{where, alone};
    Store zero{where, alone, 0, 2s};
    zero.set("key", "value");
    CHECK(zero.find("key") == "value");
    CHECK(failure([&] { listen_on(where); }) ==
          "cannot listen on " + where.path + ": Address already in use");
  }
  CHECK_FALSE(std::filesystem::exists(where.path));
  { const Socket killed = listen_on(where); }  // leaves its file
  CHECK(std::filesystem::exists(where.path));
  const StoreServer again{where, alone};
  const Store zero{where, alone, 0, 2s};
}

TEST_CASE("An interruption ends the wait for a rank that never comes") {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const Socket reads{pipe[0]}, writes{pipe[1]};
  const Interruptible interruptible{reads.descriptor()};
  const StoreServer server{any_port, identity};
  Store zero{server.address(), identity, 0, 2s};
  std::thread signal{[&] {
    std::this_thread::sleep_for(50ms);
    CHECK(::write(writes.descriptor(), "x", 1) == 1);
  }};
  const auto begin = Clock::now();
  CHECK(failure([&] { zero.get("never", 30s); }) == "interrupted while ranks connect");
  CHECK(failure([&] { Store(unused_socket(), identity, 1, 30s); }) ==
        "interrupted while ranks connect");
  CHECK(Clock::now() - begin < 5s);
  signal.join();
}

TEST_CASE("A process that was paused has not waited meanwhile") {
  // It would wait for 300 ms, is paused after 100 ms for a second and a half, and gets its answer
  // right after that.
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Socket ours{ends[0]}, theirs{ends[1]};
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    const std::string why =
        failure([&] { receive_all(theirs, &byte, 1, Clock::now() + 300ms, "the test"); });
    _exit(why.empty() ? 0 : 1);
  }
  std::this_thread::sleep_for(100ms);
  kill(child, SIGSTOP);
  std::this_thread::sleep_for(1500ms);
  kill(child, SIGCONT);
  std::this_thread::sleep_for(50ms);
  send_all(ours, "x", 1, Clock::now() + 1s, "the child");
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

}  // namespace orrery::executor

#include "executor/session/watchdog.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <memory>
#include <vector>

namespace orrery::executor {

namespace {

using namespace std::chrono_literals;

/// Ranks that only beat; what each was aborted with.
class Pack {
 public:
  explicit Pack(int ranks) : server_{{"127.0.0.1", 0}, {.job = "test", .ranks = ranks}} {
    for (int rank = 0; rank < ranks; ++rank) {
      places_.push_back(std::make_unique<Place>());
      dogs_.push_back(nullptr);
    }
  }

  struct Place {
    std::mutex lock;
    Progress progress{.step = 0, .instruction = 0, .waits_for = "", .text = "nothing"};
    std::string aborted;
    std::atomic<int> resorts{0};
  };

  void start(int rank, WatchdogSettings settings = {}) {
    Place& place = *places_[static_cast<std::size_t>(rank)];
    settings.beat = 20ms;
    settings.progress = [&place] {
      const std::lock_guard guard{place.lock};
      return place.progress;
    };
    settings.abort = [&place](std::string_view why) {
      const std::lock_guard guard{place.lock};
      place.aborted = why;
    };
    settings.last_resort = [&place](const Verdict&) { ++place.resorts; };
    dogs_[static_cast<std::size_t>(rank)] = std::make_unique<Watchdog>(
        server_.address(), StoreIdentity{.job = "test", .ranks = ranks()}, rank, settings);
  }
  int ranks() const { return static_cast<int>(places_.size()); }
  Watchdog& dog(int rank) { return *dogs_[static_cast<std::size_t>(rank)]; }
  Place& place(int rank) { return *places_[static_cast<std::size_t>(rank)]; }

  /// What a rank was aborted with, waiting for it.
  std::string aborted(int rank) {
    for (int i = 0; i < 500; ++i) {
      {
        const std::lock_guard guard{place(rank).lock};
        if (!place(rank).aborted.empty()) return place(rank).aborted;
      }
      std::this_thread::sleep_for(10ms);
    }
    return "";
  }
  const StoreServer& server() const { return server_; }

 private:
  StoreServer server_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<std::unique_ptr<Watchdog>> dogs_;
};

}  // namespace

TEST_CASE("The first failure of a rank ends all of them with its reason") {
  Pack pack{3};
  for (int rank = 0; rank < 3; ++rank) pack.start(rank);
  const Verdict verdict = pack.dog(1).fail(Exit::local_failure, "the disk is full");
  CHECK(verdict.teller == 1);
  for (int rank = 0; rank < 3; ++rank) CHECK(pack.aborted(rank) == "the disk is full");
  // The machine of rank 1 is at fault; the others may run again.
  CHECK(exit_of(verdict, 1) == Exit::local_failure);
  CHECK(exit_of(verdict, 0) == Exit::peer_failed);
  // A later failure is a consequence of the first.
  CHECK(pack.dog(2).fail(Exit::peer_failed, "rank 1 closed").why == "the disk is full");
}

TEST_CASE("A rank that is killed is named at once") {
  Pack pack{2};
  const pid_t child = fork();
  if (child == 0) {
    const Watchdog other{pack.server().address(), {.job = "test", .ranks = 2}, 1, {.beat = 20ms}};
    pause();
  }
  pack.start(0);
  Store store{pack.server().address(), {.job = "test", .ranks = 2}, 0, 1s};
  store.get("beat/1", 5s);
  const auto begin = Clock::now();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(pack.aborted(0) == "rank 1 vanished: killed, or its machine is lost");
  CHECK(Clock::now() - begin < 3s);
  CHECK(exit_of(*pack.dog(0).verdict(), 0) == Exit::peer_failed);
  store.leave();
}

TEST_CASE("A rank that leaves in order ends no other") {
  Pack pack{2};
  pack.start(0);
  {
    const Watchdog other{pack.server().address(), {.job = "test", .ranks = 2}, 1, {.beat = 20ms}};
    std::this_thread::sleep_for(60ms);
  }
  std::this_thread::sleep_for(100ms);
  CHECK_FALSE(pack.dog(0).verdict().has_value());
}

TEST_CASE("A rank that stands still is named with its instruction, not those who wait for it") {
  Pack pack{3};
  for (int rank = 0; rank < 3; ++rank) {
    Pack::Place& place = pack.place(rank);
    place.progress = {.step = 4,
                      .instruction = 7,
                      .waits_for = rank == 2 ? "" : "receive from rank 2",
                      .text = "step 4, instruction 7 of rank " + std::to_string(rank)};
  }
  for (int rank = 0; rank < 3; ++rank) {
    pack.place(rank).progress.limit = 400ms;
    pack.start(rank);
  }
  for (int rank = 0; rank < 3; ++rank) {
    CHECK_THAT(pack.aborted(rank),
               Catch::Matchers::Matches(
                   "rank 2 is stuck: no progress for [01] s: step 4, instruction 7 of rank 2"));
  }
  CHECK(pack.dog(0).verdict()->code == Exit::peer_failed);
}

TEST_CASE("A rank that is alone is stuck by its own fault, and is warned of before") {
  Pack pack{1};
  pack.place(0).progress = {.waits_for = "", .text = "the reading of tokens", .limit = 300ms};
  std::string warned;
  pack.start(0, {.warn = [&](std::string_view what) { warned = what; }});
  CHECK_THAT(pack.aborted(0), Catch::Matchers::Matches(
                                  "rank 0 is stuck: no progress for 0 s: the reading of tokens"));
  CHECK(pack.dog(0).verdict()->code == Exit::local_failure);
  CHECK(warned == "rank 0 has made no progress for 0 s (limit 0 s): the reading of tokens");
}

TEST_CASE("CPU time of its own work is a sign of life, of a wait it is not") {
  std::atomic<int> burned{0};
  const auto burning = [&] { return std::chrono::milliseconds{burned += 5}; };
  Pack works{1};
  works.place(0).progress = {
      .waits_for = "", .text = "a slow kernel", .works = true, .limit = 200ms};
  works.start(0, {.cpu_time = burning});
  std::this_thread::sleep_for(500ms);
  CHECK_FALSE(works.dog(0).verdict().has_value());
  Pack waits{1};
  waits.place(0).progress = {
      .waits_for = "", .text = "a device that hangs", .works = false, .limit = 200ms};
  waits.start(0, {.cpu_time = burning});
  CHECK_THAT(waits.aborted(0), Catch::Matchers::EndsWith(" s: a device that hangs"));
}

TEST_CASE("Work between steps is no standing still") {
  Pack pack{1};
  pack.place(0).progress.limit = 300ms;
  pack.start(0);
  for (int i = 0; i < 40; ++i) {
    pack.dog(0).alive();
    std::this_thread::sleep_for(20ms);
  }
  CHECK_FALSE(pack.dog(0).verdict().has_value());
}

TEST_CASE("A rank that falls silent is lost, though its connection stands") {
  Pack pack{2};
  Store frozen{pack.server().address(), {.job = "test", .ranks = 2}, 1, 1s};
  frozen.set("beat/1", text_of(Beat{.number = 1}));
  pack.start(0, {.silence = 300ms});
  CHECK_THAT(pack.aborted(0), Catch::Matchers::Matches("rank 1 has been silent for [01] s"));
  frozen.leave();
}

TEST_CASE("What a rank writes of itself may be anything, and ends the run in order") {
  Pack pack{2};
  Store one{pack.server().address(), {.job = "test", .ranks = 2}, 1, 1s};
  one.set("beat/1", "x");  // shorter than a beat's number
  pack.start(0);
  CHECK(pack.aborted(0) == "rank 1 wrote a heartbeat that cannot be read");
  CHECK(pack.dog(0).verdict()->code == Exit::peer_failed);
  one.leave();
}

TEST_CASE("A verdict of `done`, of no rank or with another code is none: no run ends well by it") {
  const auto written =
      GENERATE(as<std::string>{}, "", "x", text_of(Verdict{Exit::done, 1, "ended"}),
               text_of(Verdict{static_cast<Exit>(99), 1, "ended"}),
               text_of(Verdict{Exit::peer_failed, 2, "of rank 2 of 2"}),
               text_of(Verdict{Exit::peer_failed, 1, "longer"}) + "x");
  CHECK_FALSE(parse_verdict(written, 2).has_value());
  Pack pack{2};
  Store one{pack.server().address(), {.job = "test", .ranks = 2}, 1, 1s};
  one.set("abort", written);
  pack.start(0);
  CHECK(pack.aborted(0) == "a rank ended the run with a reason that cannot be read");
  CHECK(exit_of(*pack.dog(0).verdict(), 0) == Exit::peer_failed);
  one.leave();
}

TEST_CASE("A deadline ends a run with where it was, and Ctrl-C with who pressed it") {
  Pack late{1};
  late.place(0).progress.text = "step 3, FWD";
  late.start(0, {.deadline = Clock::now() + 50ms});
  CHECK(late.aborted(0) == "the deadline has passed: step 3, FWD");
  CHECK(late.dog(0).verdict()->code == Exit::deadline);

  Pack stopped{2};
  std::atomic<bool> pressed{false};
  stopped.start(0);
  stopped.start(1, {.end_request = [&]() -> std::optional<Verdict> {
                  if (!pressed) return std::nullopt;
                  return Verdict{Exit::interrupted, 1, "interrupted"};
                }});
  pressed = true;
  CHECK(stopped.aborted(0) == "interrupted");
  CHECK(exit_of(*stopped.dog(0).verdict(), 0) == Exit::interrupted);
}

TEST_CASE("A rank that does not end when asked to is ended") {
  Pack pack{1};
  pack.start(0, {.grace = 50ms});
  pack.dog(0).fail(Exit::peer_failed, "enough");
  std::this_thread::sleep_for(400ms);
  CHECK(pack.place(0).resorts == 1);
}

}  // namespace orrery::executor

#include "executor/launch/roll_call.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace orrery::executor {

namespace {

using namespace std::chrono_literals;

/// Ranks that beat once a second while rank 0 looks; time passes by hand.
class Hour {
 public:
  explicit Hour(int ranks) : call_{ranks, 1s, 7s, now_} {
    beats_.resize(static_cast<std::size_t>(ranks));
    for (std::size_t rank = 0; rank < beats_.size(); ++rank) {
      beats_[rank].place = "at " + std::to_string(rank);
      beats_[rank].text = "instruction " + std::to_string(rank);
    }
    pass(1s);
  }
  Beat& beat(int rank) { return beats_[static_cast<std::size_t>(rank)]; }
  void silence(int rank) { silent_ = rank; }
  /// Rank 0 looks every second, after the beats.
  void pass(std::chrono::seconds span) {
    for (auto left = span; left > 0s; left -= 1s) {
      now_ += 1s;
      call_.look(now_);
      hear_all();
    }
  }
  /// Nobody does anything, and then all go on.
  void pause(std::chrono::seconds span) {
    now_ += span;
    call_.look(now_);
    hear_all();
  }
  RollCall& call() { return call_; }
  std::string stuck() const {
    const auto found = call_.stuck();
    return found ? *found : "";
  }
  std::string lost() const {
    const auto found = call_.lost();
    return found ? *found : "";
  }

 private:
  void hear_all() {
    for (std::size_t rank = 0; rank < beats_.size(); ++rank) {
      if (static_cast<int>(rank) == silent_) continue;
      ++beats_[rank].number;
      call_.hear(static_cast<int>(rank), beats_[rank]);
    }
  }
  RollCall::Time now_{};
  RollCall call_;
  std::vector<Beat> beats_;
  int silent_ = -1;
};

}  // namespace

TEST_CASE("A rank that stands still is stuck after its own limit, those who wait for it are not") {
  Hour hour{3};
  hour.beat(0).waits = hour.beat(2).waits = "receive from rank 1";
  hour.beat(1).limit = 100s;
  hour.pass(99s);  // the waiters' limit of 60 s has long passed
  CHECK(hour.stuck().empty());
  hour.pass(2s);
  CHECK(hour.stuck() == "rank 1 is stuck: no progress for 101 s: instruction 1");
}

TEST_CASE("Ranks that all wait for each other are stuck") {
  Hour hour{2};
  hour.beat(0).waits = "receive from rank 1";
  hour.pass(30s);
  hour.beat(1).waits = "receive from rank 0";
  hour.beat(1).place = "at the receive";
  hour.pass(60s);
  CHECK(hour.stuck().empty());  // rank 1 has waited for less than a minute
  hour.pass(3s);
  CHECK(hour.stuck() == "rank 0 is stuck: no progress for 93 s: instruction 0");
}

TEST_CASE("Who moves or burns CPU time is not stuck") {
  Hour hour{1};
  for (int i = 0; i < 200; ++i) {
    hour.beat(0).place = std::to_string(i);
    hour.pass(1s);
  }
  CHECK(hour.stuck().empty());
  // A rank that gets a tenth of a core is slow; one that gets a thousandth does nothing.
  for (int i = 0; i < 200; ++i) {
    hour.beat(0).worked += 100ms;
    hour.pass(1s);
  }
  CHECK(hour.stuck().empty());
  for (int i = 0; i < 62; ++i) {
    hour.beat(0).worked += 1ms;
    hour.pass(1s);
  }
  CHECK_FALSE(hour.stuck().empty());
}

TEST_CASE(
    "A rank that burns CPU time at one place is warned of after five minutes, stuck after ten") {
  // Its limit is 60 s; busy ranks get 10 minutes at least.
  Hour hour{2};
  std::vector<std::string> warnings;
  const auto spin = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      hour.beat(0).worked += 900ms;
      hour.beat(1).place = std::to_string(i);  // the other one moves
      hour.pass(1s);
      for (std::string& each : hour.call().warnings()) warnings.push_back(std::move(each));
    }
  };
  spin(300);
  CHECK(warnings.empty());
  spin(299);
  CHECK(warnings ==
        std::vector<std::string>{
            "rank 0 has been busy at one place for 301 s (limit 600 s): instruction 0"});
  CHECK(hour.stuck().empty());
  spin(2);
  CHECK(hour.stuck() == "rank 0 is stuck: busy at one place for 601 s: instruction 0");
  hour.beat(0).place = "the next instruction";
  hour.pass(1s);
  CHECK(hour.stuck().empty());
}

TEST_CASE("A rank that is predicted to be busy for an hour may be") {
  Hour hour{1};
  hour.beat(0).limit = 3600s;
  for (int i = 0; i < 3500; ++i) {
    hour.beat(0).worked += 900ms;
    hour.pass(1s);
  }
  CHECK(hour.stuck().empty());
  for (int i = 0; i < 200; ++i) {
    hour.beat(0).worked += 900ms;
    hour.pass(1s);
  }
  CHECK_FALSE(hour.stuck().empty());
}

TEST_CASE("A pause of the whole job makes no rank silent or stuck") {
  Hour hour{2};
  hour.silence(1);
  hour.pass(3s);
  hour.pause(3600s);  // two seconds of it count: one look may be late by one beat
  CHECK(hour.lost().empty());
  CHECK(hour.stuck().empty());
  hour.pass(2s);
  CHECK(hour.lost().empty());
  hour.pass(1s);
  CHECK(hour.lost() == "rank 1 has been silent for 8 s");
}

TEST_CASE("A rank that is silent is stuck before one that beats") {
  Hour hour{3};
  for (int rank = 0; rank < 3; ++rank) hour.beat(rank).limit = 5s;
  hour.pass(1s);
  hour.silence(2);
  hour.pass(5s);
  CHECK(hour.stuck() == "rank 2 is stuck: no progress for 6 s: instruction 2");
}

TEST_CASE("A rank that fell silent at its start is held to what the others are held to by now") {
  Hour hour{2};
  for (int rank = 0; rank < 2; ++rank) hour.beat(rank).limit = 600s;
  hour.pass(1s);
  hour.silence(1);
  hour.beat(0).limit = 4s;
  hour.beat(0).waits = "receive from rank 1";
  hour.pass(3s);
  CHECK(hour.stuck().empty());
  hour.pass(1s);
  CHECK(hour.stuck() == "rank 1 is stuck: no progress for 5 s: instruction 1");
}

TEST_CASE("A rank is warned of once, at half of its limit") {
  Hour hour{1};
  hour.pass(30s);
  CHECK(hour.call().warnings().empty());
  hour.pass(1s);
  CHECK(
      hour.call().warnings() ==
      std::vector<std::string>{"rank 0 has made no progress for 31 s (limit 60 s): instruction 0"});
  hour.pass(5s);
  CHECK(hour.call().warnings().empty());
  hour.beat(0).place = "on its way again";
  hour.pass(32s);
  CHECK(hour.call().warnings().size() == 1);
}

}  // namespace orrery::executor

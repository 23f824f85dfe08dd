#include "sim/engine.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/stream.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery {
namespace {

/// What fired, and when: the whole observable behaviour of a program of events.
using Log = std::vector<std::pair<std::int64_t, int>>;

/// How much later the k-th event is than the one that schedules it: many ties, some far ahead.
std::int64_t increment(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return static_cast<std::int64_t>(random() % 3);
    case 2:
      return static_cast<std::int64_t>(random() % 1000) * 500;
    default:
      return static_cast<std::int64_t>(random() % (std::uint64_t{1} << 40));
  }
}

/// A random program: 20 events at the start, and each that fires schedules up to two more, until
/// there are 500. What follows depends on the order of firing, so one slip changes all the rest.
template <class Schedule>
struct RandomProgram {
  Schedule schedule;  // (increment, id)
  std::mt19937_64 random;
  int events = 0;

  void start() {
    for (int i = 0; i < 20; ++i) schedule(increment(random), events++);
  }
  void fired() {
    for (std::uint64_t more = random() % 3; more > 0 && events < 500; --more) {
      schedule(increment(random), events++);
    }
  }
};

Log reference_run(std::uint64_t seed) {
  using Item = std::tuple<std::int64_t, std::int64_t, int>;  // time, sequence, id
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  std::int64_t now = 0;
  std::int64_t sequence = 0;
  const auto schedule = [&](std::int64_t delay, int id) {
    queue.emplace(now + delay, sequence++, id);
  };
  RandomProgram<decltype(schedule)> program{schedule, std::mt19937_64{seed}};
  program.start();
  Log log;
  while (!queue.empty()) {
    const Item item = queue.top();
    queue.pop();
    now = std::get<0>(item);
    log.emplace_back(now, std::get<2>(item));
    program.fired();
  }
  return log;
}

/// The same program on the engine; odd events are signals, even ones handlers.
class EngineProgram {
 public:
  EngineProgram(Engine& engine, std::uint64_t seed)
      : engine_{engine},
        kind_{engine.add_kind<&EngineProgram::hear>(*this)},
        program_{[this](std::int64_t delay, int id) { schedule(delay, id); },
                 std::mt19937_64{seed}} {
    program_.start();
  }
  const Log& log() const { return log_; }

 private:
  void schedule(std::int64_t delay, int id) {
    if (id % 2 == 1) {
      engine_.signal(engine_.now() + Time{delay}, kind_, static_cast<Engine::Word>(id));
    } else {
      engine_.after(Time{delay}, [this, id] { hear(static_cast<Engine::Word>(id)); });
    }
  }
  void hear(Engine::Word id) {
    log_.emplace_back(engine_.now().count(), static_cast<int>(id));
    program_.fired();
  }

  Engine& engine_;
  Engine::Kind kind_;
  RandomProgram<std::function<void(std::int64_t, int)>> program_;
  Log log_;
};

TEST_CASE("Events fire in time, and in the order scheduled among ties") {
  Engine engine;
  std::vector<int> fired;
  engine.at(2_ns, [&] { fired.push_back(3); });
  engine.at(1_ns, [&] { fired.push_back(1); });
  engine.at(1_ns, [&] { fired.push_back(2); });
  engine.at(2_ns, [&] { fired.push_back(4); });
  engine.run();
  CHECK(fired == std::vector<int>{1, 2, 3, 4});
  CHECK(engine.now() == 2_ns);
}

TEST_CASE("Any program of events fires as on a queue sorted by time and sequence") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Engine engine;
    EngineProgram program{engine, seed};
    engine.run();
    REQUIRE(program.log() == reference_run(seed));
    REQUIRE(engine.pending() == 0);
  }
}

TEST_CASE("Running in slices fires the same as running at once") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Engine engine;
    EngineProgram program{engine, seed};
    std::mt19937_64 random{seed};
    while (engine.pending() > 0) {
      const Time until = engine.now() + Time{increment(random)};
      engine.run_until(until);
      REQUIRE(engine.now() == until);
    }
    REQUIRE(program.log() == reference_run(seed));
  }
}

TEST_CASE("Two engines interleaved do not know of each other") {
  Engine left;
  Engine right;
  EngineProgram left_program{left, 1};
  EngineProgram right_program{right, 2};
  for (Time until{}; left.pending() + right.pending() > 0; until += 700_us) {
    left.run_until(until);
    right.run_until(until);
  }
  CHECK(left_program.log() == reference_run(1));
  CHECK(right_program.log() == reference_run(2));
}

TEST_CASE("Running until a time fires what is due then and nothing later") {
  Engine engine;
  std::vector<int> fired;
  engine.at(10_ps, [&] { fired.push_back(10); });
  engine.at(20_ps, [&] { fired.push_back(20); });
  engine.at(21_ps, [&] { fired.push_back(21); });
  engine.run_until(20_ps);
  CHECK(fired == std::vector<int>{10, 20});
  CHECK(engine.pending() == 1);

  // The clock stands between events, and what is scheduled there comes before what is later.
  engine.at(20_ps, [&] { fired.push_back(200); });
  engine.run();
  CHECK(fired == std::vector<int>{10, 20, 200, 21});
}

TEST_CASE("An instant at which the clock was stopped has not ended yet") {
  Engine engine;
  std::vector<int> log;
  engine.at(7_ps, [&] { log.push_back(7); });
  engine.run_until(20_ps);
  engine.at_instant_end([&] { log.push_back(21); });
  engine.at(20_ps, [&] { log.push_back(20); });
  engine.run();
  CHECK(log == std::vector<int>{7, 20, 21});
}

TEST_CASE("A cancelled event neither fires nor moves the clock") {
  Engine engine;
  int fired = 0;
  engine.at(1_ns, [&] { ++fired; });
  const Event late = engine.at(5_ns, [&] { ++fired; });
  CHECK(engine.pending() == 2);
  CHECK(engine.cancel(late));
  CHECK_FALSE(engine.cancel(late));
  CHECK(engine.pending() == 1);
  engine.run();
  CHECK(fired == 1);
  CHECK(engine.now() == 1_ns);

  // The time of the cancelled event has not passed: there is room before it, and order.
  std::vector<Time> times;
  engine.at(6_ns, [&] { times.push_back(engine.now()); });
  engine.at(2_ns, [&] { times.push_back(engine.now()); });
  engine.run();
  CHECK(times == std::vector<Time>{2_ns, 6_ns});
}

TEST_CASE("The name of an event that has fired cancels nothing, not even its slot's next tenant") {
  Engine engine;
  const Event first = engine.at(1_ns, [] {});
  engine.run();
  bool fired = false;
  engine.at(2_ns, [&] { fired = true; });  // takes the slot that the first one left
  CHECK_FALSE(engine.cancel(first));
  CHECK_FALSE(engine.cancel(Event{}));
  engine.run();
  CHECK(fired);
}

TEST_CASE("Cancelling any subset leaves exactly the others, in their order") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random{seed};
    Engine engine;
    Log log;
    std::vector<Event> events;
    std::vector<std::int64_t> times;
    for (int id = 0; id < 200; ++id) {
      times.push_back(increment(random));
      events.push_back(engine.at(
          Time{times.back()}, [&log, &engine, id] { log.emplace_back(engine.now().count(), id); }));
    }
    Log expected;
    for (int id = 0; id < 200; ++id) {
      const auto index = static_cast<std::size_t>(id);
      if (random() % 2 == 0) {
        REQUIRE(engine.cancel(events[index]));
      } else {
        expected.emplace_back(times[index], id);
      }
    }
    // By time, then by id, which is the order scheduled.
    std::sort(expected.begin(), expected.end());
    engine.run();
    REQUIRE(log == expected);
  }
}

TEST_CASE("Captures are destroyed when an event has fired or is cancelled") {
  Engine engine;
  const auto held = std::make_shared<int>(7);
  engine.at(1_ns, [held] {});
  const Event cancelled = engine.at(2_ns, [held] {});
  CHECK(held.use_count() == 3);
  engine.cancel(cancelled);
  CHECK(held.use_count() == 2);
  engine.run();
  CHECK(held.use_count() == 1);
}

TEST_CASE("The end of an instant comes after all its events, and again if more are added") {
  Engine engine;
  std::vector<std::string> log;
  engine.at(1_ns, [&] {
    log.emplace_back("first");
    engine.at_instant_end([&] {
      log.emplace_back("end");
      engine.at(engine.now(), [&] {
        log.emplace_back("late");
        engine.at_instant_end([&] { log.emplace_back("end again"); });
      });
    });
  });
  engine.at(1_ns, [&] { log.emplace_back("second"); });
  engine.at(1001_ps, [&] { log.emplace_back("next"); });
  engine.run();
  CHECK(log == std::vector<std::string>{"first", "second", "end", "late", "end again", "next"});
}

TEST_CASE("What has no time left to happen is refused") {
  Engine engine;
  engine.at(7_ps, [] {});
  engine.run();
  CHECK(refusal([&] { engine.at(5_ps, [] {}); }) == "scheduled for 5 ps, but it is already 7 ps");
  CHECK(refusal([&] { engine.after(Time{-1}, [] {}); }) ==
        "scheduled for 6 ps, but it is already 7 ps");
  CHECK(refusal([&] { engine.run_until(6_ps); }) == "scheduled for 6 ps, but it is already 7 ps");
  CHECK(refusal([&] { engine.at(8_ps, Engine::Handler{}); }) == "an event needs a handler");
  CHECK(engine.pending() == 0);
}

TEST_CASE("A handler may not run the engine that runs it") {
  Engine engine;
  std::string reported;
  engine.at(1_ps, [&] { reported = refusal([&] { engine.run(); }); });
  engine.run();
  CHECK(reported == "the engine is already running: a handler may not run it");
}

struct Ear {
  void hear(Engine::Word word) { heard = word; }
  Engine::Word heard = 0;
};

TEST_CASE("A signal carries a word of 56 bits to one of 255 kinds") {
  Engine engine;
  Ear ear;
  const Engine::Kind kind = engine.add_kind<&Ear::hear>(ear);
  const Engine::Word largest = (Engine::Word{1} << 56) - 1;
  engine.signal(1_ps, kind, largest);
  engine.run();
  CHECK(ear.heard == largest);
  CHECK(refusal([&] { engine.signal(2_ps, kind, largest + 1); }) ==
        "a signal carries a word below 2^56");
  for (int i = 1; i < 255; ++i) engine.add_kind<&Ear::hear>(ear);
  CHECK(refusal([&] { engine.add_kind<&Ear::hear>(ear); }) ==
        "an engine knows at most 255 kinds of signals");
}

TEST_CASE("A stream runs one thing after another, and idles until there is work") {
  // 3 ns and 4 ns enqueued at 0 end at 3 and 7 ns; 2 ns enqueued at 10 ns end at 12 ns.
  Engine engine;
  Stream stream{engine};
  std::vector<Time> ends;
  const auto note = [&] { ends.push_back(engine.now()); };
  stream.enqueue(3_ns, note);
  stream.enqueue(4_ns, note);
  engine.at(10_ns, [&] { stream.enqueue(2_ns, note); });
  engine.run();
  CHECK(ends == std::vector<Time>{3_ns, 7_ns, 12_ns});
  CHECK(stream.busy_until() == 12_ns);
  CHECK(refusal([&] { stream.enqueue(Time{-1}, note); }) == "work lasts no less than 0 ps");
}

}  // namespace
}  // namespace orrery

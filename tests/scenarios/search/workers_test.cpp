#include "scenarios/search/workers.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

namespace orrery::scenarios {

TEST_CASE("Every piece of work is done once, whatever the number of threads") {
  for (const unsigned threads : {1U, 2U, 5U}) {
    std::vector<std::atomic<int>> done(100);
    CHECK(Workers{threads, {}}.work_through(100, [&](std::size_t i, unsigned member) {
      CHECK(member < threads);
      ++done[i];
    }));
    for (const std::atomic<int>& each : done) CHECK(each == 1);
  }
}

TEST_CASE("No work is done at once") {
  CHECK(Workers{2, {}}.work_through(0, [](std::size_t, unsigned) { FAIL("there is no piece"); }));
}

TEST_CASE("What a piece throws ends the work and comes out of it") {
  std::atomic<int> done{0};
  const auto work = [&](std::size_t i, unsigned) {
    if (i == 3) throw std::runtime_error{"piece 3"};
    ++done;
  };
  CHECK_THROWS_WITH((Workers{1, {}}.work_through(100, work)), "piece 3");
  CHECK(done == 3);  // one thread works in order
}

TEST_CASE("Work stops when progress says so, and says that not all was done") {
  // The only piece that is ever begun waits until progress was asked.
  std::atomic<bool> asked{false};
  const Workers workers{1, [&](std::size_t done, std::size_t all) {
                          CHECK(done <= 1);
                          CHECK(all == 1000);
                          asked = true;
                          return false;
                        }};
  std::atomic<int> begun{0};
  CHECK(!workers.work_through(1000, [&](std::size_t, unsigned) {
    ++begun;
    while (!asked) {
    }
  }));
  CHECK(begun >= 1);
  CHECK(begun < 1000);
}

}  // namespace orrery::scenarios

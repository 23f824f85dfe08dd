// The harness against a clock and subjects that do as they are asked.
#include "calibrate/harness/harness.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

namespace orrery::calibrate {
namespace {

/// Time passes when a subject runs, and in the reference work: 100 us, or as scripted.
class FakeClock : public Clock {
 public:
  Time now() override { return now_; }
  Time reference_work() override {
    const Time took = scaled(100_us, slow ? slow(now_) : 1.0);
    now_ += took;
    return took;
  }
  Time busy() override { return now_; }
  void pass(Time time) { now_ += time; }

  std::function<double(Time)> slow;  // factor of the reference work at a time

 private:
  Time now_{};
};

/// Takes the times of a list in turn, over and over.
class FakeSubject : public Subject {
 public:
  FakeSubject(FakeClock& clock, std::string name, std::vector<Time> times)
      : clock_{clock}, name_{std::move(name)}, times_{std::move(times)} {}
  std::string name() const override { return name_; }
  std::size_t parts() const override { return 1; }
  void prepare() override { ++prepared; }
  bool run(std::vector<Time>& times) override {
    times[0] = times_[static_cast<std::size_t>(runs++) % times_.size()];
    clock_.pass(times[0]);
    return !preempted || !preempted(runs);
  }
  void finish() override { ++finished; }

  int prepared = 0, runs = 0, finished = 0;
  std::function<bool(int)> preempted;  // whether the n-th run was

 private:
  FakeClock& clock_;
  std::string name_;
  std::vector<Time> times_;
};

Rules rules() {
  Rules rules;
  rules.batch = 1_ms;
  rules.point = 100_ms;
  rules.budget = 1_s;
  return rules;
}

TEST_CASE("A steady subject is measured once its runs agree, after the warm-up") {
  FakeClock clock;
  FakeSubject steady{clock, "steady", {100_us}};
  Harness harness{clock, rules(), 1};
  const auto found = harness.measure({&steady}, 1);
  REQUIRE(found.size() == 1);
  CHECK(found[0].settled);
  CHECK(found[0].runs() == 10);  // one batch of 1 ms settles it
  CHECK(found[0].median(0) == 100_us);
  CHECK(steady.runs == 12);  // and two to warm up
  CHECK(steady.prepared == 1);
  CHECK(steady.finished == 1);
  CHECK(harness.discarded_runs() == 0);
}

TEST_CASE("A subject that does not settle takes its time and no more") {
  FakeClock clock;
  FakeSubject jumping{clock, "jumping", {100_us, 200_us}};
  Harness harness{clock, rules(), 1};
  const Time begin = clock.now();
  const auto found = harness.measure({&jumping}, 1);
  CHECK_FALSE(found[0].settled);
  // Quartiles at 100 and 200 us around a median between them.
  CHECK(found[0].spread >= 0.5);
  const Time took = clock.now() - begin;
  CHECK(took >= 100_ms);
  CHECK(took <= 102_ms);  // a batch and two looks at the reference beyond the limit
}

TEST_CASE("Batches next to a disturbed reference are discarded and counted") {
  FakeClock clock;
  // The machine is slow for its first 5 ms, after the harness has seen it at its best.
  FakeSubject steady{clock, "steady", {100_us}};
  Harness harness{clock, rules(), 1};
  const Time disturbed_until = clock.now() + 5_ms;
  clock.slow = [=](Time now) { return now < disturbed_until ? 1.5 : 1.0; };
  const auto found = harness.measure({&steady}, 1);
  CHECK(found[0].settled);
  CHECK_FALSE(found[0].disturbed);
  // Batches of 1 ms with 0.15 ms before and after them: 0.2 ms of warm-up, then 1.3 ms each, the
  // fourth begins before 5 ms.
  CHECK(found[0].discarded_runs == 40);
  CHECK(harness.discarded_runs() == 40);
  CHECK(found[0].runs() == 10);
}

TEST_CASE("Runs that lost the processor are discarded one by one") {
  FakeClock clock;
  FakeSubject subject{clock, "subject", {100_us}};
  subject.preempted = [](int run) { return run % 2 == 0; };
  Harness harness{clock, rules(), 1};
  const auto found = harness.measure({&subject}, 1);
  CHECK(found[0].settled);
  CHECK(found[0].runs() == 5);  // of the ten of one batch
  CHECK(found[0].discarded_runs == 5);
}

TEST_CASE("Where every run lost the processor, such runs are kept and reported") {
  FakeClock clock;
  FakeSubject subject{clock, "subject", {100_us}};
  subject.preempted = [](int) { return true; };
  Harness harness{clock, rules(), 1};
  const auto found = harness.measure({&subject}, 1);
  CHECK(found[0].disturbed);
  CHECK(found[0].runs() == 10);
}

TEST_CASE("On a machine that never calms down the least disturbed batch is kept and reported") {
  FakeClock clock;
  FakeSubject steady{clock, "steady", {100_us}};
  Harness harness{clock, rules(), 1};
  const Time calmest = clock.now() + 50_ms;
  clock.slow = [=](Time now) { return 1.5 + std::abs(seconds(now - calmest)); };
  const auto found = harness.measure({&steady}, 1);
  CHECK(found[0].disturbed);
  CHECK(found[0].runs() == 10);
}

TEST_CASE("The budget is shared by what is left to measure, and kept within a tenth") {
  FakeClock clock;
  std::vector<std::unique_ptr<FakeSubject>> jumping;
  std::vector<Subject*> subjects;
  for (int i = 0; i < 50; ++i) {
    jumping.push_back(
        std::make_unique<FakeSubject>(clock, "jumping", std::vector<Time>{100_us, 200_us}));
    subjects.push_back(jumping.back().get());
  }
  Harness harness{clock, rules(), 1};
  const Time begin = clock.now();
  CHECK(harness.measure(subjects, 1).size() == 50);
  CHECK(ratio(clock.now() - begin, 1_s) == Approx(1).margin(0.1));
}

TEST_CASE("Half of the budget is half of what is left") {
  FakeClock clock;
  FakeSubject a{clock, "a", {100_us, 200_us}};
  Rules generous = rules();
  generous.point = 10_s;
  generous.most_runs = 100'000;
  Harness harness{clock, generous, 1};
  harness.measure({&a}, 0.5);
  CHECK(ratio(harness.left(), 1_s) == Approx(0.5).margin(0.01));
}

TEST_CASE("Interrupted, what was measured is kept in the order given") {
  FakeClock clock;
  FakeSubject a{clock, "a", {100_us}}, b{clock, "b", {100_us}}, c{clock, "c", {100_us}};
  Harness harness{clock, rules(), 1};
  const auto found =
      harness.measure({&a, &b, &c}, 1, [](std::size_t done, std::size_t) { return done < 2; });
  REQUIRE(found.size() == 2);
  CHECK(found[0].name < found[1].name);
}

TEST_CASE("The order of points is random and repeatable") {
  const auto order_of = [](std::uint64_t seed) {
    FakeClock clock;
    std::vector<std::unique_ptr<FakeSubject>> owned;
    std::vector<Subject*> subjects;
    for (int i = 0; i < 8; ++i) {
      owned.push_back(std::make_unique<FakeSubject>(clock, "s", std::vector<Time>{100_us}));
      subjects.push_back(owned.back().get());
    }
    std::vector<int> seen;
    Harness harness{clock, rules(), seed};
    harness.measure(subjects, 1, [&](std::size_t, std::size_t) {
      for (int i = 0; i < 8; ++i) {
        const bool new_one = owned[static_cast<std::size_t>(i)]->finished == 1 &&
                             std::find(seen.begin(), seen.end(), i) == seen.end();
        if (new_one) seen.push_back(i);
      }
      return true;
    });
    return seen;
  };
  const auto first = order_of(1);
  CHECK(first.size() == 8);
  CHECK(first == order_of(1));
  CHECK(first != order_of(2));
}

TEST_CASE("Quantiles lie on a line between the values around them") {
  CHECK(quantile(std::vector{4_us, 1_us, 3_us, 2_us}, 0.5) == Time{2'500'000});
  CHECK(quantile(std::vector{1_us, 2_us, 3_us, 4_us, 5_us}, 0.25) == 2_us);
  // (4 - 2) / 3
  CHECK(relative_spread({1_us, 2_us, 3_us, 4_us, 5_us}) == Approx(2.0 / 3));
  CHECK(relative_spread({7_us}) == 0);
}

}  // namespace
}  // namespace orrery::calibrate

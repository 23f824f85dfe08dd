#include "scenarios/whole_run/renewal.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/mean_and_spread.hpp"

namespace orrery::scenarios {

namespace {

constexpr double hour = 3600;

Seconds hours(double count) {
  return Seconds{count * hour};
}

Recovery of_stages(std::vector<RestartStage> stages) {
  Recovery recovery;
  recovery.stages = std::move(stages);
  return recovery;
}

/// The five stages of golden G4: 8.5 min in all.
Recovery five_stages() {
  return of_stages({{"detect", Seconds{120}, 1},
                    {"reschedule", Seconds{60}, 4},
                    {"start", Seconds{60}, 4},
                    {"load", Seconds{120}, 4},
                    {"warm_up", Seconds{150}, 4}});
}

/// Mean length of simulated runs in hours, its standard error, and the sum of their ledgers.
struct Ensemble {
  MeanAndSpread length;
  RunLedger ledger;
  std::int64_t failures = 0;
};
Ensemble simulated(const Recovery& recovery, const Segments& segments, Seconds between, int runs,
                   std::optional<Spares> spares = std::nullopt) {
  const RenewalProcess process{recovery, spares};
  Ensemble made;
  std::vector<double> lengths;
  for (int i = 0; i < runs; ++i) {
    Draws draws{7, static_cast<std::uint64_t>(i)};
    SimulatedRun run;
    process.simulate(segments, {.between_failures = between}, draws, run);
    lengths.push_back(in_seconds(run.ledger.total()).count() / hour);
    made.ledger += run.ledger;
    made.failures += run.failures;
  }
  made.length = mean_and_spread(lengths);
  return made;
}

/// Standard errors between the simulated mean and an expected length in hours.
double z_of(const Ensemble& ensemble, double expected) {
  return (ensemble.length.mean - expected) / ensemble.length.error;
}

Segments segments_of(Seconds work, Seconds interval, Seconds stall) {
  return {.work = run_time(work), .interval = run_time(interval), .stall = run_time(stall)};
}

}  // namespace

TEST_CASE("Draws: exponential and tables have the moments of their distributions") {
  // E[x] = 1, E[x^2] = 2; the error of a mean of 10^6 is 0.001 and 0.0045.
  Draws draws{1};
  double sum = 0, squares = 0;
  constexpr int count = 1'000'000;
  for (int i = 0; i < count; ++i) {
    const double x = draws.exponential();
    sum += x;
    squares += x * x;
  }
  CHECK(sum / count == Approx(1).margin(0.0035));
  CHECK(squares / count == Approx(2).margin(0.016));
  CHECK(gamma_table(4).mean() == Approx(1).epsilon(1e-9));
  CHECK(weibull_table(0.7).mean() == Approx(1).epsilon(1e-9));
  CHECK(weibull_table(1).at(0.5) == Approx(std::log(2)).epsilon(1e-3));
  CHECK(log_normal_table(3, 0.5).at(0.5) == Approx(3).epsilon(1e-6));
  CHECK(observed_table({1, 2, 3, 6}).mean() == Approx(1));
  CHECK(sum_table(five_stages().stages).mean() == Approx(510).epsilon(1e-4));
}

// tau* = M (1 + W0(-e^{-1-delta/M})); reliability_cost A6 has tau*/M for three delta/M.
TEST_CASE("The best interval is exact, whatever a restart takes") {
  CHECK(best_interval(Seconds{1000}, Seconds{1}).count() == Approx(44.057).epsilon(1e-5));
  CHECK(best_interval(Seconds{1}, Seconds{0.01}).count() == Approx(0.134835).epsilon(1e-5));
  CHECK(best_interval(Seconds{1}, Seconds{0.1}).count() == Approx(0.383183).epsilon(1e-5));
  CHECK(best_interval(Seconds{1}, Seconds{1}).count() == Approx(0.841406).epsilon(1e-5));
  CHECK(best_interval(Seconds{1}, Seconds{1e-14}).count() ==
        Approx(std::sqrt(2e-14)).epsilon(1e-4));
}

TEST_CASE("G1: Daly's segment with a constant restart, by formula and by simulation") {
  const Recovery recovery = of_stages({{"all", hours(0.1), 0}});
  const double phi = restart_transform(recovery, hours(3));
  CHECK(phi == Approx(std::exp(-0.1 / 3)));
  // Two segments, the last without a checkpoint: 1.25602 h and (3/phi)(e^{1/3} - 1).
  const Segments two = segments_of(hours(2), hours(1), hours(0.02));
  const double last = 3 / phi * std::expm1(1.0 / 3);
  CHECK(expected_length(two, hours(3), phi).count() / hour - last == Approx(1.25602).epsilon(1e-5));
  const Segments many = segments_of(hours(200), hours(1), hours(0.02));
  const double expected = expected_length(many, hours(3), phi).count() / hour;
  CHECK(expected == Approx(199 * 1.25602 + last).epsilon(1e-5));
  CHECK(std::abs(z_of(simulated(recovery, many, hours(3), 2000), expected)) < 3.5);
}

TEST_CASE("G2: restarts of gamma stages") {
  const Recovery recovery =
      of_stages({{"a", hours(0.05), 1}, {"b", hours(0.2), 2}, {"c", hours(0.1), 4}});
  const double phi = restart_transform(recovery, hours(3));
  CHECK(phi == Approx(0.891095068).epsilon(1e-9));
  CHECK(3 / phi * std::expm1(1.02 / 3) == Approx(1.363314437).epsilon(1e-9));
  Segments many = segments_of(hours(200), hours(1), hours(0.02));
  const auto z = [&](const Recovery& of) {
    const double transform = restart_transform(of, hours(3));
    return z_of(simulated(of, many, hours(3), 2000),
                expected_length(many, hours(3), transform).count() / hour);
  };
  CHECK(std::abs(z(recovery)) < 3.5);
  SECTION("with a lag until a checkpoint is durable") {
    many.lag = run_time(hours(0.3));
    CHECK(std::abs(z(recovery)) < 3.5);
  }
  SECTION("with attempts that fail, a limit of retries, and people") {
    Recovery retried = recovery;
    retried.succeeds = 0.7;
    retried.retries = 3;
    retried.human_share = 0.1;
    retried.human = {"a person", hours(0.5), 1};
    CHECK(std::abs(z(retried)) < 3.5);
    // Without a limit: phi' = a phi / (1 - (1 - a) phi).
    retried.retries = 1'000'000;
    retried.human_share = 0;
    CHECK(restart_transform(retried, hours(3)) == Approx(0.7 * phi / (1 - 0.3 * phi)));
  }
}

TEST_CASE("G3: two levels of checkpoints, soft and hard failures") {
  Recovery recovery = of_stages({{"soft", hours(0.05), 0}});
  recovery.hard_stages = {{"hard", hours(0.3), 0}};
  recovery.soft = 0.75;
  Segments segments = segments_of(hours(400), hours(0.1), hours(0.002));
  segments.durable_every = 10;
  segments.durable_stall = run_time(hours(0.05));
  const double soft = std::exp(-0.05 / 3), hard = std::exp(-0.3 / 3);
  const double period = expected_period(segments, hours(3), 0.75, soft, hard).count() / hour;
  CHECK(period == Approx(1.179373462).epsilon(1e-9));
  CHECK(1 / period == Approx(0.847907836).epsilon(1e-9));
  // The last of 400 periods has no checkpoint at its end: about 0.05 h less.
  const Ensemble runs = simulated(recovery, segments, hours(3), 2000);
  CHECK(std::abs(z_of(runs, 400 * period - 0.06)) < 3.5);
}

// Uptime at tau*: 2,048 nodes, 5 s of stall, five stages.
TEST_CASE("G4, G5: a large run at four failure rates") {
  struct Golden {
    double rate, ettr;
  };
  for (const auto& [rate, ettr] :
       {Golden{3.79, 0.926966275}, {2.34, 0.9494}, {4.27, 0.9199}, {6.50, 0.8889}}) {
    const Seconds between{86'400 * 1000 / rate / 2048};
    const Seconds interval = best_interval(between, Seconds{5});
    const double phi = restart_transform(five_stages(), between);
    const double segment =
        between.count() / phi * std::expm1((interval.count() + 5) / between.count());
    CHECK(interval.count() / segment == Approx(ettr).margin(rate == 3.79 ? 5e-10 : 5e-5));
    if (rate == 3.79) {
      CHECK(between.count() == Approx(11131.2665).epsilon(1e-8));
      CHECK(interval.count() == Approx(330.310553).epsilon(1e-8));
      CHECK(phi == Approx(0.955314391).epsilon(1e-8));
    }
    const Segments segments = segments_of(Seconds{48.5 * 86'400}, interval, Seconds{5});
    const Ensemble runs = simulated(five_stages(), segments, between, 500);
    const double expected = expected_length(segments, between, phi).count() / hour;
    INFO(rate);
    CHECK(std::abs(z_of(runs, expected)) < 3.5);
  }
}

// RSC-1 (arXiv 2410.21680): 6.50 failures per 1000 node-days of 8 GPUs; Llama 3 405B: 3.093 h
// between failures, uptime above 0.90. Stalls and restarts as stated; checkpoints at the best
// interval.
TEST_CASE("Uptimes of published fleets follow from their failures, stalls and restarts") {
  const auto uptime = [](Seconds between, double stall, double restart) {
    const Seconds interval = best_interval(between, Seconds{stall});
    const double phi = restart_transform(of_stages({{"all", Seconds{restart}, 0}}), between);
    const double each = (interval.count() + stall) / between.count();
    return interval.count() * phi / between.count() / std::expm1(each);
  };
  const auto of_gpus = [](double gpus) { return Seconds{86'400 * 1000 / 6.50 / (gpus / 8)}; };
  CHECK(of_gpus(16'384).count() / hour == Approx(1.803).margin(0.0005));
  CHECK(of_gpus(131'072).count() / hour == Approx(0.225).margin(0.0005));
  CHECK(best_interval(of_gpus(16'384), Seconds{300}).count() / 60 == Approx(29.6).margin(0.1));
  CHECK(uptime(of_gpus(1024), 300, 1200) == Approx(0.915).margin(0.001));
  CHECK(uptime(of_gpus(16'384), 300, 300) == Approx(0.693).margin(0.001));
  CHECK(uptime(of_gpus(16'384), 10, 300) == Approx(0.903).margin(0.001));
  CHECK(uptime(of_gpus(65'536), 300, 1200) == Approx(0.243).margin(0.001));
  CHECK(uptime(of_gpus(131'072), 300, 1200) == Approx(0.084).margin(0.001));
  CHECK(uptime(hours(3.093), 5, 600) == Approx(0.919).margin(0.001));
  CHECK(uptime(hours(3.093), 20, 300) == Approx(0.916).margin(0.001));
  CHECK(uptime(hours(3.093), 30, 300) == Approx(0.904).margin(0.001));
  CHECK(uptime(hours(3.093), 60, 180) == Approx(0.885).margin(0.001));
}

TEST_CASE("Without failures a run is its work and its checkpoints, exactly") {
  const Segments segments = segments_of(hours(10), hours(1), Seconds{7});
  const RenewalProcess process{five_stages(), std::nullopt};
  Draws draws{1};
  SimulatedRun run;
  process.simulate(segments, {.between_failures = Seconds{HUGE_VAL}}, draws, run);
  CHECK(run.failures == 0);
  CHECK(run.ledger.useful == run_time(hours(10)));
  CHECK(run.ledger.checkpoints == run_time(Seconds{9 * 7}));
  CHECK(run.ledger.total() == run.ledger.useful + run.ledger.checkpoints);
  CHECK(expected_length(segments, Seconds{HUGE_VAL}, 1).count() == Approx(36'000 + 63));
}

// Restart 0, stall 0, every step a checkpoint: a failure costs less than a step.
TEST_CASE("With a checkpoint at every step and no restart a failure costs less than a step") {
  const Segments segments = segments_of(Seconds{100'000}, Seconds{10}, Seconds{0});
  const RenewalProcess process{Recovery{}, std::nullopt};
  Draws draws{3};
  SimulatedRun run;
  process.simulate(segments, {.between_failures = Seconds{500}}, draws, run);
  CHECK(run.failures > 100);
  CHECK(run.ledger.lost.count() < run.failures * run_time(Seconds{10}).count());
  CHECK(run.ledger.useful == segments.work);
  CHECK(run.ledger.total() == run.ledger.useful + run.ledger.lost);
}

TEST_CASE("Two levels with n = 1 are one level, and equal hard and soft failures are of one kind") {
  const Segments one = segments_of(hours(100), hours(0.5), hours(0.01));
  Recovery mixed = five_stages();
  mixed.soft = 0.4;
  mixed.hard_stages = mixed.stages;
  const double phi = restart_transform(five_stages(), hours(3));
  CHECK(restart_transform(mixed, hours(3)) == Approx(phi));
  const double segment = 3 / phi * std::expm1(0.51 / 3);
  for (const double soft : {0.0, 0.4, 1.0}) {
    CHECK(expected_period(one, hours(3), soft, phi, phi).count() / hour == Approx(segment));
  }
  // Every failure soft: periods of n segments are n segments.
  Segments ten = one;
  ten.durable_every = 10;
  CHECK(expected_period(ten, hours(3), 1, phi, phi).count() / hour == Approx(10 * segment));
}

// The same failures at the same running times: what follows a failure draws no fewer numbers.
TEST_CASE("Shorter restarts and more spares never make a run later, failure by failure") {
  const Segments segments = segments_of(hours(300), hours(0.5), Seconds{5});
  const auto length = [&](double scale, std::optional<std::int64_t> spares, double repair) {
    Recovery recovery = five_stages();
    recovery.soft = 0.2;
    std::optional<Spares> pool;
    if (spares) pool = Spares{*spares, hours(repair), hours(repair / 3), 1};
    const RenewalProcess process{recovery, pool};
    std::vector<RunTime> lengths;
    for (std::uint64_t i = 0; i < 50; ++i) {
      Draws draws{11, i};
      SimulatedRun run;
      // Restarts here are far shorter than the interval to the next failure.
      process.simulate(segments, {.between_failures = hours(10), .restart_scale = scale}, draws,
                       run);
      lengths.push_back(run.ledger.total());
    }
    return lengths;
  };
  const auto never_later = [](const std::vector<RunTime>& better,
                              const std::vector<RunTime>& worse) {
    int later = 0;
    for (std::size_t i = 0; i < better.size(); ++i) later += better[i] > worse[i] ? 1 : 0;
    return later == 0;
  };
  CHECK(never_later(length(1, 4, 40), length(1, 1, 40)));
  CHECK(never_later(length(1, 1, 20), length(1, 1, 40)));
  double sooner = 0;
  for (const RunTime each : length(0.5, std::nullopt, 1)) sooner += in_seconds(each).count();
  double later = 0;
  for (const RunTime each : length(1, std::nullopt, 1)) later += in_seconds(each).count();
  CHECK(sooner < later);
}

// 2,048 nodes at 4.27, 80 % of failures need the node replaced, repair of mean 5.54 d, median 0.85
// d.
TEST_CASE("Spares: the knee is at 1.6 to 2 %") {
  struct Golden {
    std::int64_t spares;
    double ettr;
  };
  Recovery recovery = five_stages();
  recovery.soft = 0.2;
  const Seconds between{86'400 * 1000 / 4.27 / 2048};
  const Segments segments =
      segments_of(Seconds{52 * 86'400.0}, best_interval(between, Seconds{5}), Seconds{5});
  for (const auto& [nodes, ettr] :
       {Golden{0, 0.024}, {8, 0.273}, {16, 0.562}, {24, 0.801}, {32, 0.905}, {64, 0.920}}) {
    const Spares spares{nodes, hours(5.54 * 24), hours(0.85 * 24), 1};
    const Ensemble runs = simulated(recovery, segments, between, 60, spares);
    INFO(nodes);
    CHECK(ratio(runs.ledger.useful, runs.ledger.total()) == Approx(ettr).margin(0.02));
  }
}

// FT-HSDP: a failure in 18 min, 3 min stall, 12 replicas out for 10 or 15 min. Published: 80 %.
TEST_CASE("Replicas that go on without one") {
  const auto share = [](const Replicas& replicas) {
    RunLedger sum;
    for (std::uint64_t i = 0; i < 40; ++i) {
      Draws draws{1, i};
      const SimulatedRun run =
          simulate_replicas(run_time(Seconds{20 * 86'400.0}), replicas, Seconds{1080}, draws);
      sum += run.ledger;
    }
    return ratio(sum.useful, sum.total());
  };
  const auto formula = [](double out) {
    // (1 / (1 + l s)) (1 - l (o - s) / n), l the rate of replicas in service
    const double rate = 1.0 / 1080 * (1 - (out - 180) / 1080 / 12);
    return 1 / (1 + rate * 180) * (1 - rate * (out - 180) / 12);
  };
  const double fast = share({12, Seconds{180}, Seconds{600}});
  const double slow = share({12, Seconds{180}, Seconds{900}});
  CHECK(fast == Approx(formula(600)).margin(0.005));
  CHECK(slow == Approx(formula(900)).margin(0.005));
  CHECK(slow == Approx(0.80).margin(0.04));
  // Synchronous, 10 min for each failure in 18 min of wall time: 8/18 = 0.444. Published: 44 %.
  const Segments segments = segments_of(hours(200), Seconds{570}, Seconds{5});
  const Recovery recovery = of_stages({{"all", Seconds{600}, 0}});
  const Ensemble runs = simulated(recovery, segments, Seconds{1080}, 300);
  CHECK(ratio(runs.ledger.useful, runs.ledger.total()) == Approx(0.431).margin(0.005));
}

TEST_CASE("All times longer by a factor make a run longer by it") {
  const auto length = [](double factor) {
    Recovery recovery = of_stages({{"a", Seconds{factor * 100}, 0}});
    const Segments segments =
        segments_of(Seconds{factor * 50'000}, Seconds{factor * 500}, Seconds{factor * 5});
    Draws draws{5};
    SimulatedRun run;
    RenewalProcess{recovery, std::nullopt}.simulate(
        segments, {.between_failures = Seconds{factor * 2000}}, draws, run);
    return std::pair{run.failures, in_seconds(run.ledger.total()).count()};
  };
  const auto [failures, once] = length(1);
  const auto [same, eight_times] = length(8);
  CHECK(failures == same);
  CHECK(eight_times == Approx(8 * once).epsilon(1e-9));
}

}  // namespace orrery::scenarios

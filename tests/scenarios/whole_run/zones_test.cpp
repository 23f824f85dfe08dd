// Nodes of several pools: zones, reservations and markets, each with its price and availability.

#include <catch2/catch.hpp>
#include <cmath>

#include "scenarios/whole_run/whole_run.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

/// 5,000 steps of 10 s on 16 nodes of 8 GPUs; nothing fails and nothing is unknown.
RunModel model_of_pools(std::vector<NodePool> pools) {
  RunModel model;
  model.phases = {{.tokens = 1e9,
                   .seq_len = 1000,
                   .global_batch = 16,
                   .gpus = 128,
                   .nodes = 16,
                   .paid_gpus = 128,
                   .steps = 5'000,
                   .step = Seconds{10},
                   .mfu = 0.4}};
  model.recovery.stages = {{"all", Seconds{600}, 2}};
  model.rate = {1, HUGE_VAL};
  model.interval = model.optimum = Seconds{1000};
  model.stall = Seconds{2};
  model.residual_median = 1;
  model.residual_spread = model.restart_spread = 0;
  model.paid_gpus = 128;
  model.price = Price{0};
  for (const NodePool& each : pools) {
    model.price = *model.price + *each.price * (static_cast<double>(each.nodes) / 16);
    if (each.spot) model.spot = SpotInputs{};
  }
  model.pools = std::move(pools);
  model.sizes.unit = 1;
  model.sizes.reconfigure = run_time(Seconds{60});
  return model;
}

NodePool fixed_pool(std::int64_t nodes, double price) {
  return {.name = "fixed", .nodes = nodes, .price = Price{price}, .market = {.nodes = nodes}};
}
NodePool spot_pool(std::int64_t nodes, double price, double rate) {
  return {.name = "spot",
          .nodes = nodes,
          .price = Price{price},
          .market = {.nodes = nodes, .per_node_hour = rate, .drop = 2, .refill = Seconds{1800}},
          .spot = true};
}

WholeRun runs_of_pools(const RunModel& model) {
  return simulate_runs(model, 40, 1, {.threads = 1, .progress = {}});
}

}  // namespace

// 50,000 s of work on 128 GPUs, a checkpoint of 2 s after each 1,000 s but the last: 50,098 s.
// 6 nodes at $3 and 10 at $1: $1.75 on average.
TEST_CASE("Fixed pools are one pool at the mean of their prices") {
  const WholeRun run = runs_of_pools(model_of_pools({fixed_pool(6, 3), fixed_pool(10, 1)}));
  const double hours = 50'098.0 / 3600;
  CHECK(run.days.p50 == Approx(hours / 24));
  CHECK(run.cost->p50 == Approx(hours * (48 * 3 + 80 * 1)));
  CHECK(run.pool_hours[0].first == Approx(hours * 48));
  CHECK(run.pool_hours[1].first == Approx(hours * 80));
  CHECK(run.pool_hours[1].second == 1);
}

TEST_CASE("A reserved pool and a spot market: each is paid at its price while it is there") {
  // A market that takes nothing is there all the time.
  const WholeRun calm = runs_of_pools(model_of_pools({fixed_pool(8, 3), spot_pool(8, 1, 0)}));
  CHECK(calm.pool_hours[0].second == Approx(1));
  CHECK(calm.pool_hours[1].second == Approx(1));
  CHECK(calm.cost->p50 == Approx(calm.days.p50 * 24 * 64 * (3 + 1)).epsilon(1e-6));
  // Nodes are taken at 0.5 an hour and return after half an hour: there 1 / (1 + 0.5 x 0.5) of the
  // time or so, since drops come at the rate of the whole market.
  const RunModel model = model_of_pools({fixed_pool(8, 3), spot_pool(8, 1, 0.5)});
  const WholeRun taken = runs_of_pools(model);
  CHECK(taken.pool_hours[0].second == Approx(1));
  CHECK(taken.pool_hours[1].second == Approx(0.8).margin(0.05));
  CHECK(taken.days.p50 > calm.days.p50);
  double mean = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    mean += taken.pool_hours[i].first * model.pools[i].price->count();
  }
  CHECK(taken.cost->mean == Approx(mean).epsilon(1e-9));
  // Hours of all pools are the hours that are paid for.
  CHECK(taken.gpu_hours.mean ==
        Approx(taken.pool_hours[0].first + taken.pool_hours[1].first).epsilon(1e-6));
  // Half of it reserved is never slower than all of it on the market.
  const WholeRun all_spot = runs_of_pools(model_of_pools({spot_pool(16, 1, 0.5)}));
  CHECK(taken.days.p50 < all_spot.days.p50);
}

TEST_CASE("Two markets at one price and rate are paid as one of both") {
  const WholeRun two = runs_of_pools(model_of_pools({spot_pool(8, 2, 0.2), spot_pool(8, 2, 0.2)}));
  RunModel one = model_of_pools({spot_pool(16, 2, 0.2)});
  const WholeRun both = runs_of_pools(one);
  CHECK(two.days.mean == Approx(both.days.mean).epsilon(0.03));
  CHECK(two.cost->mean == Approx(both.cost->mean).epsilon(0.03));
  one.pools.clear();
  one.spot->market = {.nodes = 16, .per_node_hour = 0.2, .drop = 2, .refill = Seconds{1800}};
  const WholeRun plain = runs_of_pools(one);
  CHECK(plain.days.mean == Approx(both.days.mean).epsilon(0.03));
  CHECK(plain.cost->mean == Approx(both.cost->mean).epsilon(0.03));
}

// Llama 3 8B: 8.03e9 parameters of 4 bytes; two zones: 2 x 1/2 x 32.1 GB over 12.5 GB/s, and twice
// 1 ms.
TEST_CASE("Gradients cross the network between zones once a step") {
  const std::string base = "train llama3-8b-reserved-64-h100 --samples 30 --json ";
  const std::string zones =
      "--set /run/price=null "
      "--set '/run/pools=[{\"name\":\"a\",\"nodes\":4,\"price\":\"$2/h\"},"
      "{\"name\":\"b\",\"nodes\":4,\"price\":\"$3/h\"}]' ";
  const Json alone = parsed(orrery(base).out);
  const Json here = parsed(orrery(base + zones).out);
  CHECK(here["phases"][0]["step_time_s"] == alone["phases"][0]["step_time_s"]);
  CHECK(here["price"]["usd_per_gpu_hour"].get<double>() == 2.5);
  CHECK(here["cost_usd"]["p50"].get<double>() ==
        Approx(here["gpu_hours"]["p50"].get<double>() * 2.5));
  const Json apart =
      parsed(orrery(base + zones +
                    "--set '/run/between={\"bandwidth\":\"100 Gb/s\",\"latency\":\"1 ms\"}'")
                 .out);
  const double extra = apart["phases"][0]["step_time_s"].get<double>() -
                       alone["phases"][0]["step_time_s"].get<double>();
  CHECK(extra == Approx(4 * 8.03e9 / 12.5e9 + 0.002).epsilon(1e-3));
  // A cent a gigabyte and direction: 2 x 32.1 GB x $0.01 a step.
  const Json paid =
      parsed(orrery(base + zones +
                    "--set '/run/between={\"bandwidth\":\"100 Gb/s\",\"latency\":\"1 ms\","
                    "\"dollars_per_gb\":0.01}'")
                 .out);
  CHECK(paid["cost_usd"]["p50"].get<double>() - apart["cost_usd"]["p50"].get<double>() ==
        Approx(2 * 4 * 8.03 * 0.01 * paid["steps"].get<double>()).epsilon(1e-3));
  // 2 x 32.1 GB a step leave the two zones.
  CHECK(paid["between_pools"]["gb"].get<double>() ==
        Approx(2 * 4 * 8.03 * paid["steps"].get<double>()).epsilon(1e-3));
  CHECK(paid["between_pools"]["cost_usd"].get<double>() ==
        Approx(0.01 * paid["between_pools"]["gb"].get<double>()));
  CHECK(apart["between_pools"]["cost_usd"] == 0);
  CHECK(!here.contains("between_pools"));
  const std::string text = unwrapped(orrery("train llama3-8b-two-zones-64-h100 --samples 30").out);
  CHECK(text.find("that leave a pool, in the cost") != std::string::npos);
  // An exchange after every 100 local steps: a hundredth of its time, bytes and dollars.
  const Json local =
      parsed(orrery(base + zones +
                    "--set '/run/between={\"bandwidth\":\"100 Gb/s\",\"latency\":\"1 ms\","
                    "\"dollars_per_gb\":0.01,\"every\":100}'")
                 .out);
  CHECK(local["phases"][0]["step_time_s"].get<double>() -
            alone["phases"][0]["step_time_s"].get<double>() ==
        Approx(extra / 100).epsilon(1e-3));
  CHECK(local["between_pools"]["cost_usd"].get<double>() ==
        Approx(paid["between_pools"]["cost_usd"].get<double>() / 100));
  CHECK(local["days"]["p50"] < paid["days"]["p50"]);
  const std::string bad = "train llama3-8b-reserved-64-h100 ";
  CHECK(refused_line(bad + "--set '/run/pools=[{\"name\":\"a\",\"nodes\":4}]'")
            .find("/run/price: not with /run/pools") != std::string::npos);
  CHECK(
      refused_line(bad + "--set /run/price=null --set '/run/pools=[{\"name\":\"a\",\"nodes\":4}]'")
          .ends_with("/run/pools: have 4 nodes in all, the plan runs on 8"));
  CHECK(refused_line(bad + "--set '/run/between={\"bandwidth\":\"1 GB/s\"}'")
            .find("/run/between: is the network between /run/pools") != std::string::npos);
}

// Half a minute and the check for the 73.3 % that is checked, ten minutes for the rest.
TEST_CASE("Health checks decide how soon a failure is detected") {
  const auto detect = [](const std::string& checks) {
    const Json json = parsed(orrery("train llama3-8b-8-h100 --tokens 100B --samples 50 --json "
                                    "--set /run/restart/health_checks=" +
                                    checks)
                                 .out);
    for (const Json& each : json["assumptions"]) {
      const std::string words = each;
      const std::size_t at = words.find("detect ");
      if (words.starts_with("/run/restart: ")) return std::stod(words.substr(at + 7));
    }
    return -1.0;
  };
  CHECK(detect("true") == 120);
  CHECK(detect("false") == 600);
  const double covered = 307.0 / 419;
  CHECK(detect("'{}'") == Approx(40 * covered + 600 * (1 - covered)).epsilon(0.01));
  CHECK(detect("'{\"every\":\"10 s\",\"check\":\"1 s\",\"links\":false}'") ==
        Approx(6 * 265.0 / 419 + 600 * (1 - 265.0 / 419)).epsilon(0.01));
}

}  // namespace orrery::scenarios

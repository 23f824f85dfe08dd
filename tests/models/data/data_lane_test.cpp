// The lane of a step's input: rates of its stages, waits, and the tandem of batches.

#include <catch2/catch.hpp>
#include <cmath>

#include "models/data/data_lane.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {

namespace {

/// One loader and one step; deviations over means.
double rate_of(double loader, double step, double of_loader, double of_step, std::int64_t buffer) {
  const Tandem tandem{
      .stations = {{from_seconds(loader), of_loader}, {from_seconds(step), of_step}},
      .buffer = buffer,
      .batches = 200'000,
      .seed = 7};
  return 1 / seconds(run_tandem(tandem).interval);
}

/// 100 samples of 1 MB for one node with 8 GPUs; nothing to decode, copies at once.
DataRequest plain_request() {
  DataRequest request;
  request.format = "raw-rgb";
  request.bytes = request.decoded_bytes = 1e6;
  request.store.bandwidth = 1_GBps;
  request.copy = Bandwidth{1e21};
  request.spread = 0;
  return request;
}
constexpr DataDemand one_node{1, 100, 12.5};

}  // namespace

// mu (1 - P0), P0 = (1 - r) / (1 - r^(n+3)); at balance (n + 2) / (n + 3): 3/4, 4/5, 5/6, 7/8,
// 11/12.
TEST_CASE("A loader, a buffer and a step that all vary go as M/M/1 with n + 2 places") {
  for (const std::int64_t n : {0, 1, 2, 3, 5, 9}) {
    INFO(n);
    const double places = static_cast<double>(n);
    CHECK(rate_of(1, 1, 1, 1, n) == Approx((places + 2) / (places + 3)).epsilon(0.01));
    // A loader twice as fast: r = 2.
    const double idle = (1 - 2) / (1 - std::pow(2, places + 3));
    CHECK(rate_of(0.5, 1, 1, 1, n) == Approx(1 - idle).epsilon(0.01));
  }
}

// Simulated independently, a million batches: constant steps of 1 s.
TEST_CASE("With a constant step fewer batches wait for the loader") {
  const std::pair<std::int64_t, std::pair<double, double>> known[] = {{1, {0.823, 0.907}},
                                                                      {2, {0.869, 0.948}},
                                                                      {3, {0.896, 0.970}},
                                                                      {5, {0.926, 0.989}},
                                                                      {9, {0.953, 0.9985}}};
  for (const auto& [n, rates] : known) {
    INFO(n);
    CHECK(rate_of(1, 1, 1, 0, n) == Approx(rates.first).margin(0.006));
    CHECK(rate_of(0.8, 1, 1, 0, n) == Approx(rates.second).margin(0.006));
  }
}

TEST_CASE("Without jitter a tandem is as slow as its slowest station, to the picosecond") {
  for (const std::int64_t buffer : {0, 1, 4}) {
    const Tandem tandem{.stations = {{300_ms, 0}, {500_ms, 0}, {200_ms, 0}, {400_ms, 0}},
                        .buffer = buffer,
                        .batches = 256,
                        .seed = 1};
    CHECK(run_tandem(tandem).interval == 500_ms);
    CHECK(run_tandem(tandem).error_seconds == 0);
  }
}

TEST_CASE("A wide buffer hides jitter, and a deeper one never waits longer") {
  double before = 0;
  for (const std::int64_t n : {0, 1, 2, 4, 8, 16, 32, 256}) {
    const double rate = rate_of(0.9, 1, 1, 0.3, n);
    CHECK(rate >= before);
    before = rate;
  }
  CHECK(before == Approx(1).epsilon(0.005));
}

TEST_CASE("A long step does not overflow the time of many batches") {
  // 2 h x 100,000 batches are 8,333 days; Time holds 106.
  const Tandem tandem{.stations = {{Time{3'600'000'000'000'000 * 2}, 0}, {1_s, 0}},
                      .buffer = 2,
                      .batches = 100'000,
                      .seed = 1};
  CHECK(seconds(run_tandem(tandem).interval) == Approx(7200));
}

TEST_CASE("A step waits for the slowest stage, or hides it") {
  // 100 MB over 1 GB/s: 0.1 s.
  const DataRequest request = plain_request();
  const DataAnswer hidden = data_lane(request, one_node, 200_ms);
  CHECK(hidden.step == 200_ms);
  CHECK(hidden.wait() == Time{});
  CHECK(hidden.longest == 100_ms);
  const DataAnswer waiting = data_lane(request, one_node, 40_ms);
  CHECK(waiting.step == 100_ms);
  CHECK(waiting.wait() == 60_ms);
  CHECK(waiting.utilisation() == Approx(0.4));
  CHECK(waiting.slowest() == "read");
  CHECK(waiting.read_limit == "bandwidth");
  SECTION("loaded when it is asked for, it waits for every stage") {
    DataRequest asked = request;
    asked.background = false;
    asked.per_core = 1000;
    asked.cores = 2;  // 50 ms
    CHECK(data_lane(asked, one_node, 200_ms).step == 350_ms);
    asked.background = true;
    CHECK(data_lane(asked, one_node, 200_ms).step == 200_ms);
  }
  SECTION("a store is shared by its readers, and a node reads at most at its own rate") {
    DataRequest shared = request;
    shared.store.shared_by = 5;
    CHECK(data_lane(shared, one_node, 40_ms).step == 500_ms);
    shared.store.shared_by = 0;
    shared.store.of_node = Bandwidth{5e8};
    CHECK(data_lane(shared, one_node, 40_ms).step == 200_ms);
  }
  SECTION("requests and their latency are limits of their own") {
    DataRequest small = request;
    small.bytes = 1000;
    small.store.requests_per_second = 500;
    CHECK(data_lane(small, one_node, 40_ms).step == 200_ms);
    CHECK(data_lane(small, one_node, 40_ms).read_limit == "requests");
    small.store.requests_per_second = 0;
    small.store.latency = 10_ms;
    small.store.in_flight = 4;  // 100 / 4 x 10 ms
    CHECK(data_lane(small, one_node, 40_ms).step == 250_ms);
    CHECK(data_lane(small, one_node, 40_ms).read_limit == "latency");
  }
  SECTION("decoding on the GPU takes its share of the kernels, and copies what is stored") {
    DataRequest gpu = request;
    gpu.decoded_on = DecodePlace::gpu;
    gpu.per_gpu = 125;  // 0.1 s
    gpu.gpu_share = 0.25;
    const DataAnswer answer = data_lane(gpu, one_node, 200_ms);
    CHECK(answer.gpu_time == 25_ms);
    CHECK(answer.step == 225_ms);
  }
}

// Store 1 GB/s, cache 20 GB/s. Hits 0.153: 1 / 0.847 = 1.18 GB/s; 0.95: 20 overlapped (limited by
// the store at 1 / 0.05 = 20 and the cache at 20 / 0.95 = 21.05), 1 / (0.95/20 + 0.05/1) = 10.26
// one after the other.
TEST_CASE("A cache answers its share, next to the store or before it") {
  DataRequest request = plain_request();
  const auto rate = [&](double hit, bool overlapped) {
    request.cache = DataCache{hit, 20_GBps, overlapped};
    return 0.1 / seconds(data_lane(request, one_node, 1_ps).longest);
  };
  CHECK(rate(0.153, true) == Approx(1.18).epsilon(0.002));
  CHECK(rate(0.95, true) == Approx(20).epsilon(1e-6));
  CHECK(rate(0.95, false) == Approx(10.256).epsilon(1e-3));
  CHECK(rate(1, true) == Approx(20).epsilon(1e-6));
  // Half of the data in a page cache hits 15 % of the reads of a shuffled epoch.
  CHECK(lru_hits(0.5) == Approx(0.1534).margin(5e-5));
  CHECK(lru_hits(0.8) == Approx(0.4781).margin(5e-5));
  CHECK(lru_hits(0) == 0);
  CHECK(lru_hits(1) == 1);
}

TEST_CASE("Law: more bandwidth, more cores, more hits and a deeper buffer never lengthen a step") {
  DataRequest request = plain_request();
  request.per_core = 200;
  request.augmented_per_core = 300;
  request.cores = 4;
  request.cache = DataCache{0.3, 20_GBps, true};
  request.jitter = {.read = 1, .decode = 0.5, .copy = 0, .step = 0.1};
  const auto step = [&](const DataRequest& asked) {
    return data_lane(asked, one_node, 150_ms).step;
  };
  const Time base = step(request);
  const auto better = [&](auto change) {
    DataRequest changed = request;
    change(changed);
    CHECK(step(changed) <= base);
  };
  better([](DataRequest& each) { each.store.bandwidth = 2_GBps; });
  better([](DataRequest& each) { each.cores = 8; });
  better([](DataRequest& each) { each.cache->hit = 0.6; });
  better([](DataRequest& each) { each.prefetch = 8; });
  better([](DataRequest& each) { each.jitter.read = 0.3; });
  CHECK(data_lane(request, one_node, 150_ms).step == base);  // the same draws
}

TEST_CASE("The ranks of the first stage read: a tensor group once, a context group in parts") {
  // 512 sequences. TP8 PP2 DP2 of 4 nodes of 8: 16 ranks read, 2 nodes, 256 sequences each.
  DataRequest request = plain_request();
  Question asked = question("gpt2-medium", "dgx-h100 x 4", "tensor=8,pipeline=2,global_batch=512");
  CHECK(demand_of(request, asked.plan, 8).nodes == 2);
  CHECK(demand_of(request, asked.plan, 8).samples_of_node == 256);
  CHECK(demand_of(request, asked.plan, 8).samples_of_gpu == 256);
  request.samples = 3;  // pictures of a sequence
  CHECK(demand_of(request, asked.plan, 8).samples_of_node == 768);
}

TEST_CASE("A predicted step with its data: the parts add up, and more time is waiting") {
  Question asked = question("gpt2-medium", "dgx-h100", "zero=1,micro_batch=4,global_batch=256");
  const Prediction without = predict(asked);
  DataRequest request = plain_request();
  request.bytes = 4e6;  // 256 x 4 MB over 1 GB/s: 1.024 s
  asked.data = request;
  const Prediction with = predict(asked);
  REQUIRE(without.step < 1_s);
  CHECK(with.step == 1024_ms);
  CHECK(with.data_wait() == 1024_ms - without.step);
  CHECK(with.breakdown == without.breakdown);
  CHECK(with.bottleneck_name() == "data");
  Time sum;
  for (const WaterfallPart& part : with.waterfall) sum += part.time;
  CHECK(sum == with.step);
  CHECK(with.uncertainty.p10 == 1024_ms);
  CHECK(with.uncertainty.p90 >= with.uncertainty.p50);
  CHECK(with.tokens_per_second ==
        Approx(without.tokens_per_second * ratio(without.step, with.step)));
  CHECK(with.energy > without.energy);
  CHECK(estimate(asked).step == with.step);
  // 8 of 10 lanes are between e^-0.256 and e^0.256 of it.
  asked.data->spread = 0.2;
  const Prediction range = predict(asked);
  CHECK(range.step == with.step);
  CHECK(seconds(range.uncertainty.p10) == Approx(1.024 * std::exp(-0.2563)).epsilon(1e-4));
  CHECK(seconds(range.uncertainty.p90) == Approx(1.024 * std::exp(0.2563)).epsilon(1e-4));
  // A token of two bytes is no burden: 256 sequences of 1,024.
  asked.data->bytes = 2 * 1024;
  CHECK(predict(asked).step == without.step);
  CHECK(predict(asked).uncertainty.p90 == without.uncertainty.p90);
}

TEST_CASE("Every format states what it is of and where its figures are from") {
  REQUIRE(data_formats().size() >= 12);
  for (const DataFormat& each : data_formats()) {
    INFO(each.name);
    CHECK(each.bytes > 0);
    CHECK(each.decoded_bytes > 0);
    CHECK(each.source.size() > 10);
    CHECK((each.kind == "text" || each.kind == "image" || each.kind == "sample"));
    CHECK((each.kind == "image") == (each.pixels > 0));
  }
  CHECK_THROWS_WITH(data_format("jpg"),
                    Catch::StartsWith("unknown data format 'jpg'; known: tokens"));
}

}  // namespace orrery::models

// `orrery collective`: its figures, its choice, its files and its errors.

#include <catch2/catch.hpp>

#include "scenarios/collective/collective_request.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

/// 32 hosts of one GPU and one NIC of 50 GB/s, 16 a leaf, 500 ns a cable, no software.
constexpr const char* ideal_hosts =
    R"({"name": "ideal", "node": {"like": "gh200-1x", "gpus": 1, "nics": 1}, "nodes": 32,
        "fabric": {"kind": "fat_tree", "levels": 2, "nodes_per_leaf": 16, "spines": 16,
                   "bandwidth": "50 GB/s", "hop_latency": "500 ns", "routing": "d-mod-k",
                   "latency_class": "ideal"}})";

std::string written(const std::string& name, const std::string& text) {
  static const Scratch scratch;  // until the tests have ended
  return scratch.write(name, text);
}

CollectiveRequest ideal_request(const std::string& operation, const std::string& network) {
  return {.cluster = written("ideal.json", ideal_hosts),
          .operation = operation,
          .sizes = {"64MiB"},
          .network = network};
}

MeasuredPoint measured(Bytes size, Time time, std::string operation = "all_reduce") {
  return {.operation = std::move(operation),
          .size = size,
          .time = time,
          .ranks = 8,
          .device = "NVIDIA H100 80GB HBM3",
          .place = "log.txt:line 12"};
}

}  // namespace

TEST_CASE("All forms of the network agree where a closed form holds") {
  // Ring: 62 * (2 MiB / 50 GB/s + 2 us).
  for (const char* network : {"static", "events", "steps"}) {
    CollectiveRequest request = ideal_request("all_reduce", network);
    request.algorithm = "ring";
    const CollectiveReport report = answer(request);
    CAPTURE(network);
    CHECK(seconds(report.rows.at(0).price.time) == Approx(62 * (41.94304e-6 + 2e-6)).epsilon(1e-9));
  }
  const Json json = to_json(answer(ideal_request("all_to_all", "steps")), true);
  CHECK(json["rows"][0]["transfers"] == 32 * 31);
  CHECK(json["rows"][0]["time_s"].get<double>() == Approx(1.30023424e-3 + 1e-6).epsilon(1e-6));
  CHECK(json["wall_time_s"]["simulate"].get<double>() > 0);
  CHECK(json["rows"][0]["algorithm"] == "pairwise");
}

TEST_CASE("Sizes are one, a list or a range, and a table has nccl-tests' columns") {
  CollectiveRequest request{.cluster = "dgx-h100 x 1", .sizes = {"8B:1KiB:2", "1MiB,2MiB"}};
  const CollectiveReport report = answer(request);
  CHECK(report.rows.size() == 10);
  CHECK(report.group.ranks == 8);
  const std::string text = text_of(report, false, false);
  for (const char* word : {"algbw (GB/s)", "busbw (GB/s)", "limited by", "all 8 GPUs"}) {
    CHECK(text.find(word) != std::string::npos);
  }
  for (const char* wrong : {"1", "8B:4B", "8B:1GiB:1", "8B:1GiB:2:3", "x"}) {
    request.sizes = {wrong};
    CHECK_THROWS_WITH(answer(request), Catch::StartsWith("--sizes: expected sizes such as"));
  }
}

TEST_CASE("A choice as NCCL's environment makes it is kept, or refused with what runs") {
  CollectiveRequest request{
      .cluster = "dgx-h100 x 1", .sizes = {"1GiB"}, .algorithm = "ring", .protocol = "ll"};
  const CollectiveReport forced = answer(request);
  CHECK(forced.rows[0].price.protocol == models::Protocol::ll);
  request.algorithm = "collnet";
  CHECK_THROWS_WITH(answer(request),
                    Catch::Contains("does not support all_reduce of 8 ranks on 1 node"));
  request.algorithm = "rings";
  CHECK_THROWS_WITH(answer(request), Catch::StartsWith("--algo: expected one of nvls_tree"));
  request.algorithm = {};
  request.ranks = 9;
  CHECK_THROWS_WITH(answer(request), "--ranks: expected 2 to 8, found 9");
}

TEST_CASE("A fabric whose switches reduce all-reduces in one hop, and only such a fabric") {
  std::string hosts = ideal_hosts;
  hosts.insert(hosts.find("\"latency_class\""), "\"reduces\": true, ");
  CollectiveRequest request{
      .cluster = written("reduces.json", hosts), .sizes = {"1GiB"}, .algorithm = "collnet"};
  // 2^30 B once at 50 GB/s, and the longest path.
  CHECK(seconds(answer(request).rows.at(0).price.time) ==
        Approx(21.474836480e-3 + 2e-6).epsilon(1e-9));
  request.algorithm = {};
  CHECK(answer(request).rows.at(0).price.algorithm == "collnet");
  request.cluster = written("ideal.json", ideal_hosts);
  CHECK(answer(request).rows.at(0).price.algorithm == "tree");
}

TEST_CASE("Counts of an all-to-all-v are a line per sender") {
  CollectiveRequest request = ideal_request("all_to_all_v", "steps");
  request.ranks = 2;
  request.sizes = {};
  request.counts = written("counts.csv", "0, 5000000\n1000000, 0\n");
  // The larger one: 100 us and two cables.
  CHECK(answer(request).rows.at(0).price.time == 101_us);
  request.counts = written("short.csv", "0, 5000000\n1000000\n");
  CHECK_THROWS_WITH(answer(request), request.counts +
                                         ":line 2: expected 2 counts, one for each receiver, "
                                         "found 1");
  request.operation = "all_to_all";
  CHECK_THROWS_WITH(answer(request),
                    "--counts: only all_to_all_v has distinct sizes, found --op all_to_all");
}

TEST_CASE("A measured log stands next to the prediction with the constants that explain it") {
  // Made of 10 us and 400 GB/s of bus bandwidth (1.75 x size), its all-gathers of half the latency.
  CollectiveRequest request{.cluster = "dgx-h100 x 1"};
  for (const std::int64_t size : {1 << 10, 1 << 20, 1 << 30}) {
    const double bus = static_cast<double>(size) * 1.75 / 400e9;
    request.against.push_back(measured(Bytes{size}, from_seconds(10e-6 + bus)));
    request.against.push_back(measured(Bytes{size}, from_seconds(5e-6 + bus / 2), "all_gather"));
  }
  const CollectiveReport report = answer(request);
  REQUIRE(report.rows.size() == 3);
  CHECK(report.rows[0].measured);
  REQUIRE(report.constants);
  CHECK(seconds(report.constants->latency) == Approx(10e-6).epsilon(1e-3));
  CHECK(report.constants->bus.count() == Approx(400e9).epsilon(1e-3));
  REQUIRE(report.constants->siblings.size() == 1);
  CHECK(report.constants->siblings[0].median_error < 0.1);
  request.cluster = "dgx-a100-80gb x 1";
  CHECK_THROWS_WITH(answer(request),
                    "log.txt:line 12: measured on NVIDIA H100 80GB HBM3, and the "
                    "cluster has a100-sxm-80gb");
}

TEST_CASE("NCCL's tuner chooses, within what its environment allows; times stay the cost models'") {
  CollectiveRequest request{.cluster = "dgx-h100 x 4", .sizes = {"64MiB"}};
  request.choice = "nccl";
  const CollectiveReport tuned = answer(request);
  CHECK(tuned.rows[0].price.algorithm == "nvls_tree");
  CHECK(tuned.assumptions.back().find("NCCL 2.30's tuner chooses") != std::string::npos);
  request.sizes = {"1GiB"};
  request.environment = {"NCCL_ALGO=^NVLSTree", "NCCL_PROTO=Simple"};
  const CollectiveReport without = answer(request);
  CHECK(without.rows[0].price.algorithm == "ring");
  request.cluster = "dgx-a100-80gb x 4";
  request.environment = {"NCCL_ALGO=Tree"};
  const CollectiveReport tree = answer(request);
  CHECK(tree.rows[0].price.algorithm == "tree");
  // The same as a user who names it.
  CollectiveRequest named{.cluster = "dgx-a100-80gb x 4", .sizes = {"1GiB"}};
  named.algorithm = "tree";
  CHECK(answer(named).rows[0].price.time == tree.rows[0].price.time);
}

TEST_CASE("With an environment NCCL's tuner chooses, unless another choice is stated: refused") {
  CollectiveRequest request{.cluster = "dgx-a100-80gb x 4", .sizes = {"1GiB"}};
  request.environment = {"NCCL_ALGO=Tree"};
  CHECK(answer(request).rows[0].price.algorithm == "tree");
  request.choice = "fastest";
  CHECK_THROWS_WITH(answer(request),
                    "--choice: expected nccl, whose environment is stated with --env, found "
                    "'fastest'");
  request.environment = {};
  CHECK_NOTHROW(answer(request));
  request.choice = "slowest";
  CHECK_THROWS_WITH(answer(request), "--choice: expected fastest or nccl, found 'slowest'");
}

TEST_CASE("The help of --env names every variable that is read") {
  const std::string help = orrery("collective --help").out;
  for (const char* name : {"NCCL_ALGO=", "NCCL_PROTO=", "NCCL_MAX_NCHANNELS=", "NCCL_MAX_CTAS="}) {
    CHECK(help.find(name) != std::string::npos);
  }
}

TEST_CASE("What NCCL's environment does not know is refused") {
  const auto refused = [](std::vector<std::string> environment) {
    CollectiveRequest request{.cluster = "dgx-h100 x 4", .sizes = {"1MiB"}};
    request.environment = std::move(environment);
    try {
      answer(request);
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{"nothing"};
  };
  CHECK(refused({"NCCL_DEBUG=INFO"}).find("--env: expected NCCL_ALGO, NCCL_PROTO") == 0);
  CHECK(refused({"NCCL_PROTO=fast"}) ==
        "--env: NCCL_PROTO: expected one or more of LL, LL128, Simple, found 'fast'");
  CHECK(refused({"NCCL_MAX_NCHANNELS=0"}).find("expected 1 to 64, found '0'") != std::string::npos);
  CHECK(refused({"NCCL_ALGO=Ring", "NCCL_ALGO=Tree"}) == "--env: NCCL_ALGO is given twice");
}

}  // namespace orrery::scenarios

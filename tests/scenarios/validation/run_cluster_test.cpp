#include "scenarios/validation/runs/run_cluster.hpp"

#include <catch2/catch.hpp>

namespace orrery::scenarios {

namespace {

hardware::Cluster rack_of(std::int64_t gpus, const char* network,
                          const char* inside = "NVLink5, NVL72 rack domain") {
  MeasuredRun run;
  run.run = "a rack";
  run.gpu = "gb200";
  run.gpus = gpus;
  run.gpus_per_node = 4;
  run.intra_node = inside;
  run.network = network;
  RunClusters clusters;
  std::vector<std::string> assumptions;
  return clusters.of(run, assumptions);
}

}  // namespace

// A publication counts the NICs of a tray of 4 GPUs; the domain is the rack.
TEST_CASE("A rack has the NICs of all its trays") {
  const hardware::Cluster two = rack_of(128, "4x 400Gb/s per 4-GPU node class");
  CHECK(two.nodes == 2);
  CHECK(two.node.gpus == 64);
  CHECK(two.node.nics == 64);
  CHECK(two.nic_bandwidth() == Bandwidth{50e9});
  const hardware::Cluster part = rack_of(32, "4x ConnectX-7 IB NDR 400Gb/s");
  CHECK(part.node.gpus == 32);
  CHECK(part.node.nics == 32);
  CHECK(rack_of(128, "1600 Gb/s per node RoCE").node_bandwidth() == Bandwidth{16 * 200e9});
}

TEST_CASE("Trays of 4 whose GPUs a switch joins are a rack, others are nodes") {
  CHECK(rack_of(64, "", "NVLINK Gen5 1800 GB/s + NVSWITCH Gen5").node.gpus == 64);
  CHECK(rack_of(64, "", "NVLINK Gen5").node.gpus == 4);
}

// Its NICs replace those of the usual node, or stand alone where a GPU has no usual node.
TEST_CASE("A run's own network rate is its nodes', whatever the GPU") {
  for (const std::string gpu : {"b300-sxm", "h800-sxm-80gb", "h20", "mi300x"}) {
    MeasuredRun run;
    run.run = "two nodes";
    run.gpu = gpu;
    run.gpus = 16;
    run.gpus_per_node = 8;
    run.network = "8x NDR InfiniBand 400Gb/s per node";
    RunClusters clusters;
    std::vector<std::string> assumptions;
    const hardware::Cluster cluster = clusters.of(run, assumptions);
    INFO(gpu);
    CHECK(cluster.nodes == 2);
    CHECK(cluster.node.nics == 8);
    CHECK(cluster.nic_bandwidth() == Bandwidth{50e9});
  }
}

}  // namespace orrery::scenarios

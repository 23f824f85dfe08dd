#include "scenarios/validation/page/network_text.hpp"

#include <catch2/catch.hpp>

namespace orrery::scenarios {
namespace {

struct Case {
  const char* text;
  int nics;
  double gigabits;
  const char* latency_class;
};

TEST_CASE("Networks are read from the words of published runs") {
  const Case cases[] = {
      {"8x HDR InfiniBand 200Gb/s per node (Selene)", 8, 200, "infiniband"},
      {"8x 400Gb/s per node class (fabric not stated per row)", 8, 400, ""},
      {"4x Omni-Path 100Gb/s per node (Jean Zay)", 4, 100, "omni-path"},
      {"4x 100Gb/s RoCE per node", 4, 100, "roce"},
      {"1600 Gb/s per node RoCE", 8, 200, "roce"},
      {"RDMA 400 Gb/s per GPU", 8, 400, ""},
      {"Slingshot-11 200 Gb/s per GPU", 8, 200, "slingshot"},
      {"100GbE InfiniBand", 1, 100, "infiniband"},
      {"8x400 Gb/s RoCE (CX-7) per node", 8, 400, "roce"},
  };
  for (const Case& each : cases) {
    INFO(each.text);
    const auto network = read_network(each.text, 8);
    REQUIRE(network);
    CHECK(network->nics == each.nics);
    CHECK(network->gigabits == each.gigabits);
    CHECK(network->latency_class == each.latency_class);
  }
}

TEST_CASE("Of several kinds of port the fastest carry the training") {
  const auto listed = read_network(
      "Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s", 8);
  REQUIRE(listed);
  CHECK(listed->nics == 8);
  CHECK(listed->gigabits == 400);
  const auto mixed =
      read_network("1x Ethernet 100Gb/Sec, 8x NVIDIA Quantum-2 CX7 InfiniBand (400Gb/s)", 8);
  REQUIRE(mixed);
  CHECK(mixed->nics == 8);
  CHECK(mixed->gigabits == 400);
}

TEST_CASE("Bytes are not bits, and no rate is no network") {
  CHECK_FALSE(read_network("InfiniBand; Data bandwidth for GPU-PCIe: 504 GB/s", 8));
  CHECK_FALSE(read_network("EFA (AWS p5)", 8));
  CHECK_FALSE(read_network("single node", 8));
  CHECK_FALSE(read_network("", 8));
  CHECK(latency_class_of("EFA (AWS p5)") == "efa");
}

}  // namespace
}  // namespace orrery::scenarios

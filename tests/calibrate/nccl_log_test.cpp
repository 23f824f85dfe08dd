// What NCCL says of its communicators.
#include <catch2/catch.hpp>

#include "calibrate/import/import.hpp"

namespace orrery::calibrate {
namespace {

TEST_CASE("NCCL's own log tells rings, channels and what was chosen") {
  const Imported log = import_text(
      "job starts\n"
      "NCCL version 2.27.5+cuda12.6\n"
      "n1:63120:63191 [0] NCCL INFO Channel 00/02 :    0   1   2   3\n"
      "n1:63120:63191 [0] NCCL INFO Channel 01/02 :    0   1   3   2\n"
      "n1:63120:63191 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 2/-1/-1->0->3\n"
      "n1:63122:63194 [2] NCCL INFO Channel 00 : 2[88000] -> 3[8a000] via P2P/IPC\n"
      "n1:63120:63191 [0] NCCL INFO 2 coll channels, 4 p2p channels, 2 p2p channels per peer\n"
      "n1:63120:63191 [0] NCCL INFO comm 0x1 rank 0 nranks 4 cudaDev 0 busId 1a000 - Init "
      "COMPLETE\n"
      "n1:63120:63191 [0] NCCL INFO AllReduce: 8388608 Bytes -> Algo 1 proto 2 time 93.5\n",
      "a.log");
  CHECK(log.format == "NCCL debug log");
  CHECK(log.facts["version"] == "2.27.5+cuda12.6");
  CHECK(log.facts["ranks"] == 4);
  CHECK(log.facts["channels"] == 2);
  CHECK(log.facts["rings"].dump() == "[[0,1,2,3],[0,1,3,2]]");
  CHECK(log.facts["trees"] == 2);
  CHECK(log.facts["transports"]["P2P/IPC"] == 1);
  CHECK(log.facts["chosen"][0]["algorithm"] == "ring");
  CHECK(log.facts["chosen"][0]["protocol"] == "simple");
  CHECK(log.facts["chosen"][0]["bytes"] == 8388608);
  REQUIRE(log.samples.size() == 1);
  CHECK(std::get<double>(log.samples.front().value) == 2);
  REQUIRE(log.unknown.size() == 1);
  CHECK(log.unknown.front().text == "job starts");
}

TEST_CASE("NCCL since 2.20 says ranks and nodes before it has finished") {
  const Imported log = import_text(
      "[0] n1:7:8 [0] NCCL INFO comm 0x5 rank 0 nRanks 24 nNodes 3 localRanks 8 localRank 0 MNNVL "
      "0\n"
      "[0] n1:7:8 [0] NCCL INFO Channel 00/16 :    0   7   6\n"
      "[0] n1:7:8 [0] NCCL INFO Channel 01/16 :    0   7   6\n",
      "a.log");
  CHECK(log.facts["ranks"] == 24);
  CHECK(log.facts["nodes"] == 3);
  CHECK(log.facts["channels"] == 16);
  REQUIRE(log.samples.size() == 1);
  CHECK(log.samples.front().ranks == 24);
  CHECK(log.samples.front().nodes == 3);
  CHECK(std::get<double>(log.samples.front().value) == 16);
}

TEST_CASE("All communicators of an NCCL log are kept, however their threads' lines mix") {
  const Imported log = import_text(
      "n1:1:1 [0] NCCL INFO 4 coll channels, 4 p2p channels, 1 p2p channels per peer\n"
      "n1:2:2 [1] NCCL INFO 4 coll channels, 4 p2p channels, 1 p2p channels per peer\n"
      "n1:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 64 cudaDev 0 busId 1000 - Init COMPLETE\n"
      "n1:1:1 [0] NCCL INFO 12 coll channels, 16 p2p channels, 16 p2p channels per peer\n"
      "n1:2:2 [1] NCCL INFO comm 0x7 rank 1 nranks 64 cudaDev 1 busId 2000 - Init COMPLETE\n"
      "n1:1:1 [0] NCCL INFO comm 0x2 rank 0 nranks 4 cudaDev 0 busId 1000 - Init COMPLETE\n",
      "a.log");
  CHECK(log.facts["communicators"].dump() ==
        R"([{"ranks":64,"nodes":null,"channels":4},{"ranks":4,"nodes":null,"channels":12}])");
  CHECK(log.facts["ranks"] == 64);
  CHECK(log.notes == std::vector<std::string>{"2 communicators: 64 ranks with 4 channels, 4 ranks "
                                              "with 12 channels"});
  CHECK(log.samples.size() == 2);
}

}  // namespace
}  // namespace orrery::calibrate

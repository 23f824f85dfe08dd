// nccl-tests logs, as launchers and releases print them.
#include <catch2/catch.hpp>

#include "calibrate/findings.hpp"
#include "tests/calibrate/refusal.hpp"

namespace orrery::calibrate {
namespace {

using testing::refused_log;

const std::string header =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    " "
    " algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " "
    "(GB/s)  (GB/s)\n";

/// Two ranks on two nodes. 4 MiB in 1000 us are 4.19 GB/s, and the factor of two ranks is 1.
const std::string two_nodes =
    "# nccl-tests version 2.18.2 nccl-headers=23007 nccl-library=23007\n"
    "# Collective test starting: all_reduce_perf\n"
    "#  Rank  0 Group  0 Pid   1 on node-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   2 on node-b device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n" +
    header +
    "     4194304       1048576     float     sum      -1  1000.00    4.19    4.19      0   990.00 "
    "  "
    " 4.24    4.24      0\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 4.21\n";

TEST_CASE("A row of nccl-tests becomes two samples with what the header says") {
  const Imported log = import_text(two_nodes, "a.log");
  REQUIRE(log.samples.size() == 2);
  const Sample& first = log.samples.front();
  CHECK(log.format == "nccl-tests");
  CHECK(first.quantity == "all_reduce");
  CHECK(first.detail == "out_of_place");
  CHECK(std::get<Time>(first.value) == 1000_us);
  CHECK(first.size == 4_MiB);
  CHECK(first.ranks == 2);
  CHECK(first.nodes == 2);
  CHECK(first.device == "NVIDIA H100 80GB HBM3");
  CHECK(first.software == "nccl-tests 2.18.2, NCCL 2.30.7");
  CHECK(first.place == "a.log:line 7");
  CHECK(std::get<Time>(log.samples.back().value) == 990_us);
  CHECK(log.unknown.empty());
}

TEST_CASE("Prefixes of mpirun, srun and time stamps do not change what is read") {
  for (const std::string prefix : {"[1,0]<stdout>:", "12: ", "2025-03-04T05:06:07.123Z "}) {
    std::string tagged;
    for (std::size_t at = 0; at < two_nodes.size();) {
      const std::size_t end = two_nodes.find('\n', at);
      tagged += prefix + two_nodes.substr(at, end + 1 - at);
      at = end + 1;
    }
    const Imported log = import_text(tagged, "a.log");
    REQUIRE(log.samples.size() == 2);
    CHECK(std::get<Time>(log.samples.front().value) == 1000_us);
    CHECK(log.samples.front().nodes == 2);
  }
}

TEST_CASE("Without a list of ranks the ratio of the bandwidths tells how many there were") {
  // 2 * 15 / 16 = 1.875: 100.00 and 187.50 GB/s.
  const std::string row =
      "  1073741824     268435456     float     sum      -1  10737.4  100.00  187.50    N/A  "
      "10737.4  "
      "100.00  187.50    N/A\n";
  const Imported log = import_text(header + "...\n" + row, "a.log");
  CHECK(log.samples.front().ranks == 16);
  CHECK(log.samples.front().quantity == "all_reduce");
  CHECK_FALSE(log.samples.front().nodes);
  REQUIRE(log.notes.size() == 2);
  CHECK(log.notes[0] == "collective not stated; all_reduce recognised by its columns");
  CHECK(log.notes[1] == "number of ranks not stated; 16 inferred from the ratio of its bandwidths");
}

TEST_CASE("Several runs in one log keep their own collectives and ranks") {
  const std::string second =
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "1073741824 268435456 float none 0 10737.4 100.00 100.00 0 10737.4 100.00 100.00 0\n";
  const Imported log = import_text(two_nodes + "./broadcast_perf -g 4\n" + second, "a.log");
  REQUIRE(log.samples.size() == 4);
  CHECK(log.samples[0].quantity == "all_reduce");
  CHECK(log.samples[0].ranks == 2);
  CHECK(log.samples[2].quantity == "broadcast");
  CHECK_FALSE(log.samples[2].ranks);
  CHECK(log.facts["runs"].size() == 2);
}

TEST_CASE("Columns of single iterations are passed over") {
  const std::string wide =
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
      "busbw "
      "#wrong i_min i_max i_p99 i_cv%\n"
      "1048576 262144 float sum -1 50.00 20.97 36.70 0 48.0 55.0 54.0 2.1 49.00 21.40 37.45 0 47.0 "
      "53.0 52.0 2.2\n";
  const Imported log = import_text("$ ./build/all_reduce_perf -I -g 8\n" + wide, "a.log");
  REQUIRE(log.samples.size() == 2);
  CHECK(std::get<Time>(log.samples[1].value) == 49_us);
  CHECK(log.samples[1].ranks == 8);  // 36.70 / 20.97 = 1.750 = 2 * 7 / 8
}

TEST_CASE("rccl-tests print no device names") {
  std::string log = two_nodes;
  for (std::size_t at; (at = log.find(" NVIDIA H100 80GB HBM3")) != std::string::npos;) {
    log.erase(at, 22);
  }
  log.replace(0, log.find('\n'), "rccl-tests: Version develop:a52452e");
  const Imported read = import_text(log, "a.log");
  CHECK(read.samples.front().device.empty());
  CHECK(read.samples.front().software == "rccl-tests develop:a52452e");
}

TEST_CASE("Old device ids and names are read alike") {
  std::string log = two_nodes;
  for (std::size_t at; (at = log.find("[0000:1b:00]")) != std::string::npos;) {
    log.replace(at, 12, "[0x1b]");
  }
  CHECK(import_text(log, "a.log").samples.front().device == "NVIDIA H100 80GB HBM3");
}

TEST_CASE("Rows of size 0 are dropped and reported, unknown lines are kept and shown") {
  const std::string empty =
      "           0             0     float     sum      -1    15.51    0.00    0.00      0    "
      "15.52   "
      " 0.00    0.00      0\n";
  std::string log = two_nodes;
  log.insert(log.find("     4194304"), empty + "what is this\n");
  const Imported read = import_text(log, "a.log");
  CHECK(read.samples.size() == 2);
  CHECK(read.notes == std::vector<std::string>{"1 rows of size 0 dropped"});
  REQUIRE(read.unknown.size() == 1);
  CHECK(read.unknown.front().line == 8);
  CHECK(read.unknown.front().text == "what is this");
}

TEST_CASE("Runs of one rank, wrong results and torn rows are refused where they stand") {
  std::string lone = two_nodes;
  lone.erase(lone.find("#  Rank  1"),
             lone.find('\n', lone.find("#  Rank  1")) + 1 - lone.find("#  Rank  1"));
  lone.replace(lone.find("4.19    4.19"), 12, "4.19    0.00");
  lone.replace(lone.find("4.24    4.24"), 12, "4.24    0.00");
  CHECK(refused_log(lone) ==
        "a.log:line 3: a run of one rank moves nothing between ranks; expected two or more");

  std::string wrong = two_nodes;
  wrong.replace(wrong.find("4.19      0"), 11, "4.19      3");
  CHECK(refused_log(wrong) == "a.log:line 7: 3 wrong results: row refused");

  CHECK(refused_log(header + "1048576 262144 float sum -1 50.00 20.97 36.70 0\n") ==
        "a.log:line 3: expected a row of 13 columns, found 9");
  CHECK(refused_log(header) == "a.log: nccl-tests log without a row of results");
  CHECK(refused_log(header + "1048576 262144 float sum -1 x 20.97 36.70 0 49.00 21.40 37.45 0\n") ==
        "a.log:line 3: expected a time in us and two bandwidths, found x, 20.97, 36.70");
}

TEST_CASE("JSON of nccl-tests says the same as its text") {
  const Imported log = import_text(R"({
    "version": 1, "args": ["all_gather_perf", "-b", "8"], "nccl_version": 23007,
    "config": {"devices": [
      {"rank": 0, "hostname": "node-a", "device_info": "NVIDIA H100"},
      {"rank": 1, "hostname": "node-a", "device_info": "NVIDIA H100"}]},
    "results": [
      {"size": 0, "out_of_place": null, "in_place": null},
      {"size": 1048576, "out_of_place": {"time": 55.1, "nwrong": 0},
       "in_place": {"cpu_time": 54.8, "nwrong": null}, "actual_iterations": 20}]})",
                                   "a.json");
  REQUIRE(log.samples.size() == 2);
  CHECK(log.samples[0].quantity == "all_gather");
  CHECK(std::get<Time>(log.samples[0].value) == 55100_ns);
  CHECK(std::get<Time>(log.samples[1].value) == 54800_ns);
  CHECK(log.samples[0].count == 20);
  CHECK(log.samples[0].ranks == 2);
  CHECK(log.samples[0].nodes == 1);
  CHECK(log.samples[0].software == "nccl-tests, NCCL 2.30.7");
  CHECK(log.samples[0].place == "a.json:/results/1/out_of_place");
}

TEST_CASE("JSON with wrong results is refused at its pointer") {
  CHECK(refused_log(R"({"args": ["all_reduce_perf"],
    "config": {"devices": [{"rank": 0, "hostname": "a", "device_info": "x"},
                           {"rank": 1, "hostname": "a", "device_info": "x"}]},
    "results": [{"size": 8, "out_of_place": {"time": 5, "nwrong": 2}}]})") ==
        "a.log:/results/0/out_of_place/nwrong: 2 wrong results: row refused");
}

TEST_CASE("Collectives become tables by operation, ranks and nodes") {
  const auto tables = collective_tables(import_text(two_nodes, "a.log").samples);
  REQUIRE(tables.size() == 1);  // the time in place is kept as a sample, not in the table
  CHECK(tables.front().operation == "all_reduce");
  CHECK(tables.front().nodes == 2);
  CHECK(tables.front().times.at(4_MiB) == 1000_us);
  CHECK(
      to_json(tables).dump() ==
      R"([{"operation":"all_reduce","ranks":2,"nodes":2,"points":[["4194304 B","1000000 ns"]]}])");
}

}  // namespace
}  // namespace orrery::calibrate

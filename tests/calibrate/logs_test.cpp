// Logs of OSU, perftest, fio, BabelStream, Kineto and NCCL itself.
#include <catch2/catch.hpp>

#include "tests/calibrate/refusal.hpp"

namespace orrery::calibrate {
namespace {

using testing::refused_log;

double rate_of(const Sample& sample) {
  return std::get<Bandwidth>(sample.value).count();
}

TEST_CASE("OSU's bandwidths count 10^6 bytes to the MB, its latencies are times") {
  const Imported bandwidth = import_text(
      "# OSU MPI-CUDA Bandwidth Test v7.5\n# Send Buffer on DEVICE (D) and Receive Buffer on "
      "DEVICE "
      "(D)\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)        Validation\n"
      "8       7.61   Pass\n",
      "a.log");
  REQUIRE(bandwidth.samples.size() == 1);
  CHECK(bandwidth.samples[0].quantity == "send_receive");
  CHECK(rate_of(bandwidth.samples[0]) == Approx(7.61e6));
  CHECK(bandwidth.samples[0].size == 8_B);
  CHECK(bandwidth.samples[0].ranks == 2);
  CHECK(bandwidth.samples[0].device == "GPU memory");
  CHECK(bandwidth.samples[0].software == "OSU MPI-CUDA Bandwidth Test v7.5");

  const Imported latency = import_text(
      "# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n4   13.50\n", "a.log");
  REQUIRE(latency.samples.size() == 1);
  CHECK(latency.samples[0].quantity == "all_reduce");
  CHECK(std::get<Time>(latency.samples[0].value) == 13500_ns);
  CHECK_FALSE(latency.samples[0].ranks);
}

TEST_CASE("OSU results that failed validation or have no value are refused") {
  const std::string head = "# OSU MPI Bandwidth Test v7.5\n# Size Bandwidth (MB/s) Validation\n";
  CHECK(refused_log(head + "8 7.61 Fail\n") == "a.log:line 3: validation failed: row refused");
  CHECK(refused_log(head + "8 0\n") == "a.log:line 3: expected a value above 0, found 0");
  CHECK(refused_log("# OSU MPI Juggling Test v7.5\n") ==
        "a.log:line 1: unknown OSU benchmark: # OSU MPI Juggling Test v7.5");
}

constexpr const char* perftest_head =
    "---------------------------------------------------------------------------------------\n"
    "                    RDMA_Write BW Test\n"
    " Dual-port       : OFF\t\tDevice         : mlx5_5\n"
    " local address: LID 0000 QPN 0x0093 PSN 0xbf9bfe\n"
    "---------------------------------------------------------------------------------------\n";

TEST_CASE("perftest's unit stands in its header: Gb is bits, MiB is 2^20 bytes") {
  const Imported bits = import_text(
      std::string{perftest_head} +
          " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
          " 65536      20000            98.50              98.00  \t\t   0.186932\n",
      "a.log");
  REQUIRE(bits.samples.size() == 1);
  CHECK(bits.samples[0].quantity == "rdma_write");
  CHECK(rate_of(bits.samples[0]) == Approx(98e9 / 8));
  CHECK(bits.samples[0].size == Bytes{65536});
  CHECK(bits.samples[0].count == 20000);
  CHECK(bits.samples[0].device == "mlx5_5");
  CHECK(bits.unknown.empty());

  const Imported binary = import_text(
      std::string{perftest_head} +
          " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
          " 65536      5000             0.00               1000.00\t\t   0.016\n",
      "a.log");
  CHECK(rate_of(binary.samples.front()) == Approx(1000.0 * 1048576));
}

TEST_CASE("perftest's latency is the typical one") {
  const Imported log = import_text(
      "                    RDMA_Read Latency Test\n"
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"
      " 2       1000          1.88           4.10         1.92     \t       1.93        \t0.05   "
      "\t\t"
      "2.10    \t\t4.10\n",
      "a.log");
  REQUIRE(log.samples.size() == 1);
  CHECK(log.samples[0].quantity == "rdma_read");
  CHECK(std::get<Time>(log.samples[0].value) == 1920_ns);
}

constexpr const char* fio_job = R"({
  "fio version": "fio-3.33",
  "jobs": [{"jobname": "ckpt", "error": 0, "job options": {"bs": "1M"},
    "read": {"io_bytes": 0, "bw_bytes": 0, "iops": 0, "total_ios": 0, "lat_ns": {"mean": 0}},
    "write": {"io_bytes": 134217728, "bw_bytes": 1443201376, "iops": 1376.5, "total_ios": 128,
              "lat_ns": {"mean": 1383571.5}}}]
})";

TEST_CASE("fio tells bandwidth, operations and latency of the directions that moved bytes") {
  const Imported log = import_text(fio_job, "a.json");
  REQUIRE(log.samples.size() == 3);
  CHECK(log.samples[0].quantity == "storage.write");
  CHECK(rate_of(log.samples[0]) == 1443201376.0);
  CHECK(log.samples[0].size == 1_MiB);
  CHECK(log.samples[0].count == 128);
  CHECK(std::get<double>(log.samples[1].value) == 1376.5);
  CHECK(std::get<Time>(log.samples[2].value) == Time{1'383'571'500});
}

TEST_CASE("fio's JSON is found inside its text, and failed jobs are refused") {
  const std::string mixed =
      "ckpt: (g=0): rw=write\n" + std::string{fio_job} + "\n\nRun status group 0:\n";
  CHECK(import_text(mixed, "a.txt").samples.size() == 3);
  std::string failed = fio_job;
  failed.replace(failed.find("\"error\": 0"), 10, "\"error\": 5");
  CHECK(refused_log(failed) == "a.log:/jobs/0/error: the job failed: it is not imported");
}

TEST_CASE("BabelStream reads alike as table and as CSV") {
  const Imported table = import_text(
      "BabelStream\nVersion: 5.0\nImplementation: OpenMP\nRunning  Classic kernels 20 times\n"
      "Number of elements: 1000\nFunction    MB/s        Min (sec)   Max         Average     \n"
      "Triad       83963.887   0.00120     0.02094     0.01055     \n",
      "a.txt");
  REQUIRE(table.samples.size() == 1);
  CHECK(table.samples[0].quantity == "stream");
  CHECK(table.samples[0].detail == "Triad");
  CHECK(rate_of(table.samples[0]) == Approx(83963.887e6));
  CHECK(table.samples[0].software == "BabelStream 5.0, OpenMP");
  CHECK(table.unknown.empty());

  const std::string head =
      "function,num_times,n_elements,sizeof,max_MB_per_sec,min_runtime,max_runtime,avg_runtime\n";
  const Imported csv = import_text(head + "Copy,20,1000,8,8986.93,0.1,0.2,0.3\n", "a.csv");
  CHECK(rate_of(csv.samples.front()) == Approx(8986.93e6));
  CHECK(csv.samples.front().size == 8000_B);
  CHECK(csv.samples.front().count == 20);
  CHECK(refused_log(head + "Copy,20\n") ==
        "a.log:line 2: expected function,num_times,n_elements,sizeof,max rate and 3 times");
}

/// Kernels "k" of 10 us alone and 15 us under an all-reduce that runs from 100 to 200 us.
std::string overlapped_trace() {
  std::string events =
      R"({"ph":"X","cat":"cpu_op","name":"aten::mm","ts":0,"dur":900},)"
      R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","ts":100,"dur":100,)"
      R"("args":{"device":0,"Collective name":"allreduce","Group size":8,"dtype":"Float",)"
      R"("In msg nelems":1024,"Out msg nelems":1024}})";
  for (const int begin : {0, 20, 40, 300}) {
    events += R"(,{"ph":"X","cat":"kernel","name":"k","ts":)" + std::to_string(begin) +
              R"(,"dur":10,"args":{"device":0,"grid":[1,1,1],"block":[64,1,1]}})";
  }
  for (const int begin : {110, 130, 150}) {
    events += R"(,{"ph":"X","cat":"kernel","name":"k","ts":)" + std::to_string(begin) +
              R"(,"dur":15,"args":{"device":0,"grid":[1,1,1],"block":[64,1,1]}})";
  }
  // Half under it: neither alone nor covered.
  events += R"(,{"ph":"X","cat":"kernel","name":"k","ts":195,"dur":12,)"
            R"("args":{"device":0,"grid":[1,1,1],"block":[64,1,1]}})";
  return R"({"schemaVersion":1,"deviceProperties":[{"name":"NVIDIA H100"}],)"
         R"("distributedInfo":{"rank":0,"world_size":8,"nccl_version":"2.27.5"},"traceEvents":[)" +
         events + "]}";
}

TEST_CASE("A trace gives kernels, collectives and how much one slows the other") {
  const Imported log = import_text(overlapped_trace(), "t.json");
  REQUIRE(log.samples.size() == 3);
  const Sample& collective = log.samples[0];
  CHECK(collective.quantity == "all_reduce");
  CHECK(collective.size == 4096_B);
  CHECK(collective.ranks == 8);
  CHECK(std::get<Time>(collective.value) == 100_us);
  CHECK(collective.software == "PyTorch profiler, NCCL 2.27.5");
  CHECK(log.samples[1].quantity == "kernel");
  CHECK(log.samples[1].detail == "k [1,1,1][64,1,1]");
  CHECK(std::get<Time>(log.samples[1].value) == 10_us);
  CHECK(log.samples[1].count == 8);
  CHECK(log.samples[2].quantity == "overlap_slowdown");
  CHECK(std::get<double>(log.samples[2].value) == 1.5);
  CHECK(log.samples[2].count == 3);
  CHECK(log.facts["kernels"] == 9);
  CHECK(log.facts["kernel_us"] == 197.0);  // 100 + 4 * 10 + 3 * 15 + 12
  CHECK(log.facts["nccl_kernels_with_collective_name"] == 1);
}

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

TEST_CASE("What is no log is refused in one line") {
  CHECK(refused_log("") == "a.log: is empty");
  CHECK(refused_log("hello\n") ==
        "a.log: unknown log format; known: nccl-tests (text or JSON), NCCL_DEBUG=INFO, OSU, "
        "perftest, fio JSON, BabelStream, Kineto");
  CHECK(refused_log("{\"a\": 1}") ==
        "a.log: unknown log format; known: nccl-tests (text or JSON), NCCL_DEBUG=INFO, OSU, "
        "perftest, fio JSON, BabelStream, Kineto");
  CHECK(refused_log("\x1f\x8b\x08") == "a.log: is compressed; unpack it first (gunzip -k)");
}

TEST_CASE("JSON deeper than the limit is refused before it is built") {
  std::string deep = "{\"traceEvents\": ";
  for (int i = 0; i < 300; ++i) deep += "[";
  CHECK(refused_log(deep).find("256") != std::string::npos);
}

}  // namespace
}  // namespace orrery::calibrate

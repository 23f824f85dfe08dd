// Logs of OSU, perftest, fio, BabelStream and STREAM, and what holds for all formats.
#include <catch2/catch.hpp>

#include "sim/output/gzip.hpp"
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

const std::string header_of_nccl_tests =
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";

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

TEST_CASE("perftest's MB are 2^20 bytes, as the rate of its messages shows") {
  const std::string header =
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";
  // 100 messages a second of 2^20 bytes are 100 x 2^20 B/s.
  const Imported log =
      import_text(perftest_head + header + " 1048576 1000 100.00 100.00 0.000100\n", "a.log");
  CHECK(rate_of(log.samples.front()) == Approx(100.0 * 1048576));
  CHECK(log.notes.empty());
  // Both directions count twice the messages of one.
  CHECK(import_text(perftest_head + header + " 1048576 1000 0.00 200.00 0.000100\n", "a.log")
            .notes.empty());
  const Imported odd =
      import_text(perftest_head + header + " 1048576 1000 0.00 130.00 0.000100\n", "a.log");
  REQUIRE(odd.notes.size() == 1);
  CHECK(odd.notes.front() ==
        "a.log:line 7: 136 MB/s does not agree with its MsgRate times 1048576 B, 105 MB/s");
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

TEST_CASE("fio's block size is the job's, or that of all jobs, for each direction") {
  const auto size = [](const std::string& job, const std::string& global) {
    std::string text = fio_job;
    text.replace(text.find("\"bs\": \"1M\""), 10, job);
    text.insert(1, "\"global options\": {" + global + "},");
    return import_text(text, "a.json").samples.front().size;
  };
  CHECK(size("", R"("bs": "4096B")") == Bytes{4096});
  CHECK(size(R"("bs": "256k")", R"("bs": "4k")") == 256_KiB);
  CHECK(size(R"("bs": "4k,16k")", "") == 16_KiB);  // the job writes
  CHECK(size(R"("bs": "4Ki")", "") == std::nullopt);
  // Two files of one job are two equal keys.
  CHECK(size(R"("filename": "a", "filename": "b", "bs": "4k")", "") == 4_KiB);
}

TEST_CASE("A byte order mark before a log of any format does not change what is read") {
  const std::string mark = "\xEF\xBB\xBF";
  const std::string osu = "# OSU MPI Bandwidth Test v5.7.1\n# Size Bandwidth (MB/s)\n1 0.19\n";
  for (const std::string& text : {osu, std::string{fio_job}}) {
    CHECK(import_text(mark + text, "a.log").samples.size() ==
          import_text(text, "a.log").samples.size());
  }
  CHECK(refused_log("\xFF\xFE#") ==
        "a.log: is UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)");
}

TEST_CASE("BabelStream of all releases and STREAM count 10^6 bytes to the MB") {
  const std::string old =
      "GPU-STREAM\nVersion: 0.9\nImplementation: CUDA\nRunning kernels 100 times\n"
      "Using CUDA device TITAN Xp\nFunction    MBytes/sec  Min (sec)   Max         Average\n"
      "Copy        433182.244  0.00124     0.00128     0.00125\n";
  const Imported babel = import_text(old, "a.txt");
  REQUIRE(babel.samples.size() == 1);
  CHECK(babel.format == "BabelStream");
  CHECK(rate_of(babel.samples[0]) == Approx(433182.244e6));
  CHECK(babel.samples[0].device == "TITAN Xp");
  CHECK(babel.unknown.empty());
  const Imported csv = import_text(
      "function,num_times,n_elements,sizeof,max_mibytes_per_sec,min_runtime,max_runtime,avg_"
      "runtime\n"
      "Copy,20,1000,8,100,0.1,0.2,0.3\n",
      "a.csv");
  CHECK(rate_of(csv.samples.front()) == Approx(100.0 * 1048576));

  const Imported stream = import_text(
      "-----\nSTREAM version $Revision: 5.10 $\n-----\n"
      "Function    Best Rate MB/s  Avg time     Min time     Max time\n"
      "Copy:          342008.3     0.018755     0.018713     0.018895\n"
      "Scale:         342409.6     0.018737     0.018691     0.018802\n",
      "a.log");
  CHECK(stream.format == "STREAM");
  REQUIRE(stream.samples.size() == 2);
  CHECK(stream.samples[0].detail == "Copy");
  CHECK(stream.samples[0].software == "STREAM");
  CHECK(rate_of(stream.samples[1]) == Approx(342409.6e6));
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

TEST_CASE("A log without a measurement is refused, whatever its format") {
  const std::string cases[][2] = {
      {"n1:1:1 [0] NCCL INFO Using network IB\n",
       "a.log: no measurement found (format: NCCL debug log); expected communicators "
       "(their channels) or choices of an algorithm (NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING)"},
      {"# OSU MPI Bandwidth Test v7.5\n# Size Bandwidth (MB/s)\n",
       "a.log: no measurement found (format: OSU); expected rows of results"},
      {"Function    MB/s  Min (sec)\nCopied 12\n",
       "a.log: no measurement found (format: BabelStream, 1 lines not understood); "
       "expected rows of results"},
      {"Function    Best Rate MB/s  Avg time\n",
       "a.log: no measurement found (format: STREAM); expected rows of results"},
      {" #bytes #iterations BW average[MB/sec]\n",
       "a.log: no measurement found (format: perftest); expected rows of results"},
      {R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":0,"dur":1}]})",
       "a.log: no measurement found (format: Kineto); expected kernels that ran on a "
       "device"},
      {header_of_nccl_tests + "0 0 float sum -1 15.51 0.00 0.00 0 15.52 0.00 0.00 0\n",
       "a.log: no measurement found (format: nccl-tests); expected rows of results"}};
  for (const auto& each : cases) CHECK(refused_log(each[0]) == each[1]);
}

TEST_CASE("A log that gzip packed reads as its text") {
  std::string packed;
  GzipWriter writer{[&](std::string_view piece) { packed += piece; }};
  writer.write(fio_job);
  writer.finish();
  CHECK(import_text(packed, "a.json.gz").samples.size() == 3);
  CHECK(refused_log(packed.substr(0, packed.size() / 2)) ==
        "a.log: is damaged: gzip cannot unpack it to its end");
}

TEST_CASE("What is no log is refused in one line") {
  CHECK(refused_log("") == "a.log: is empty");
  CHECK(refused_log("hello\n") ==
        "a.log: unknown log format; known: nccl-tests (text or JSON), NCCL_DEBUG=INFO, OSU, "
        "perftest, fio JSON, BabelStream, STREAM, Kineto");
  CHECK(refused_log("{\"a\": 1}") ==
        "a.log: unknown log format; known: nccl-tests (text or JSON), NCCL_DEBUG=INFO, OSU, "
        "perftest, fio JSON, BabelStream, STREAM, Kineto");
  CHECK(refused_log("\x1f\x8b\x08") == "a.log: is damaged: gzip cannot unpack it to its end");
}

TEST_CASE("JSON deeper than the limit is refused before it is built") {
  std::string deep = "{\"traceEvents\": ";
  for (int i = 0; i < 300; ++i) deep += "[";
  CHECK(refused_log(deep).find("256") != std::string::npos);
}

}  // namespace
}  // namespace orrery::calibrate

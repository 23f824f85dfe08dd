// orrery calibrate as a shell runs it: logs in, profiles out, and simulate takes them.
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

const std::string sample_log =
    "# nccl-tests version 2.18.2 nccl-headers=23007 nccl-library=23007\n"
    "# Collective test starting: all_reduce_perf\n"
    "#  Rank  0 Group  0 Pid   1 on node-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   2 on node-a device  1 [0000:2b:00] NVIDIA H100 80GB HBM3\n"
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    "1024 256 float sum -1 20.00 0.05 0.05 0 21.00 0.05 0.05 0\n"
    "4194304 1048576 float sum -1 1000.00 4.19 4.19 0 990.00 4.24 4.24 0\n"
    "who said this\n";

const std::string small_model =
    R"({"format": "orrery-model", "name": "small", "family": "gpt", "layers": 2, "hidden": 128,
        "heads": 4, "vocab": 512, "max_positions": 64})";

TEST_CASE("Imported logs are reported with what was not understood") {
  const Scratch scratch;
  const std::string log = scratch.write("a.log", sample_log);
  const Ran ran = orrery("calibrate --import " + log + " --json");
  REQUIRE(ran.exit_code == 0);
  const Json answer = Json::parse(ran.out);
  CHECK(answer["profile"].is_null());
  CHECK(answer["samples"].size() == 4);
  CHECK(answer["samples"][2]["value"] == 0.001);
  CHECK(answer["samples"][2]["unit"] == "s");
  CHECK(answer["curves"][0]["name"] == "all_reduce 2 ranks 1 nodes");
  CHECK(answer["curves"][0]["points"] == 2);
  CHECK(answer["logs"][0]["unknown_lines"].dump() == R"([{"line":8,"text":"who said this"}])");
}

TEST_CASE("An import laid over its cluster prices what was measured there") {
  const Scratch scratch;
  const std::string log = scratch.write("a.log", sample_log);
  const std::string profile = scratch.path("profile.json");
  REQUIRE(orrery("calibrate --import " + log + " --cluster dgx-h100 --out " + profile).exit_code ==
          0);
  CHECK(Json::parse(scratch.read("profile.samples.json"))["samples"].size() == 4);
  const std::string model = scratch.write("model.json", small_model);
  const Ran ran = orrery("simulate --json --model " + model + " --cluster " + profile +
                         " --plan tensor=2,seq_len=64,global_batch=4");
  REQUIRE(ran.exit_code == 0);
  CHECK(Json::parse(ran.out)["step_time_s"] > 0);
}

TEST_CASE("A folder's storage is measured for a cluster, whose steps and checkpoints then use it") {
  const Scratch scratch;
  const std::string profile = scratch.path("mine.json"), folder = scratch.path("");
  const Ran ran = orrery("calibrate --storage " + folder +
                         " --cluster 'dgx-h100 x 2' --budget 3s --out " + profile + " --json");
  REQUIRE(ran.exit_code == 0);
  const Json answer = Json::parse(ran.out), cluster = Json::parse(scratch.read("mine.json"));
  CHECK(answer["curves"].empty());
  CHECK(cluster["nodes"] == 2);
  CHECK(cluster["node"]["gpu"]["name"] == "h100-sxm-80gb");
  CHECK(cluster["sources"]["/storage"].get<std::string>().starts_with("calibrated "));
  const std::string read = cluster["storage"]["read"];
  const std::string call =
      "llama3-8b-8-h100 --cluster " + profile + " --set /plan/data=null --json ";
  const Json step = parsed(orrery("simulate " + call + "--set /data/format=text-bytes").out);
  CHECK(step["assumptions"].dump().find("/cluster/storage/read") != std::string::npos);
  const Json run = parsed(orrery("train " + call + "--tokens 10B --samples 50").out);
  const std::string assumed = run["assumptions"].dump();
  CHECK(assumed.find("/run/storage/read") == std::string::npos);  // known, not assumed
  CHECK(assumed.find("/run/restart") != std::string::npos);
  CHECK(refused_line("calibrate --cluster dgx-h100 --budget 3s") ==
        "--cluster: is for --import, whose logs were measured on it, or for --storage, the folder "
        "whose rates it gets");
}

TEST_CASE("A log of other GPUs than the cluster's is refused") {
  const Scratch scratch;
  const std::string log = scratch.write("a.log", sample_log);
  CHECK(refused_line("calibrate --import " + log + " --cluster dgx-a100-80gb") ==
        log +
            ": measured on NVIDIA H100 80GB HBM3 (h100-sxm-80gb), the cluster has a100-sxm-80gb; "
            "accepted: a --cluster of the GPUs that were measured");
}

/// perftest's table for one NIC.
std::string perftest_log(const std::string& device, const std::string& gigabits) {
  return "                    RDMA_Write BW Test\n Device         : " + device +
         "\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
         " 65536      5000             0.00               " +
         gigabits + "\t\t   0.000000\n";
}

TEST_CASE("perftest's logs set the NICs' rate, and name the NIC that differs") {
  const Scratch scratch;
  std::string logs;
  for (int nic = 0; nic < 8; ++nic) {
    const std::string device = "mlx5_" + std::to_string(nic);
    logs += " " + scratch.write(device + ".log", perftest_log(device, nic == 5 ? "193.1" : "394"));
  }
  const std::string profile = scratch.path("nic.json");
  const Ran ran =
      orrery("calibrate --import" + logs + " --cluster 'dgx-h100 x 8' --out " + profile);
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.out.find("note: NIC mlx5_5: 24.1 GB/s, 2.04 times slower than the median of 8 NICs, "
                     "49.2 GB/s; in a scenario: {\"kind\": \"nic\", \"at\": \"nodeN/nicM\", "
                     "\"rate\": 0.49} in /perturbations\n") != std::string::npos);
  CHECK(ran.out.find("price") == std::string::npos);
  CHECK(ran.out.find("assumed") == std::string::npos);  // a NIC's name is no GPU's
  const Json written = Json::parse(scratch.read("nic.json"));
  CHECK(written["fabric"]["bandwidth"] == "49250000000 B/s");
  CHECK(written["fabric"]["sources"]["/bandwidth"].get<std::string>().rfind("imported from ", 0) ==
        0);
  // The rate is in the predictions: half of it makes a step between nodes slower.
  const auto step = [&](const std::string& cluster) {
    const Ran run = orrery("simulate --json --model llama3-8b --cluster " + cluster +
                           " --plan zero=3,global_batch=64,seq_len=4096");
    INFO(run.error);
    return Json::parse(run.out)["step_time_s"].get<double>();
  };
  std::string slow = scratch.write("slow.log", perftest_log("mlx5_5", "193.1"));
  const std::string halved = scratch.path("halved.json");
  REQUIRE(orrery("calibrate --import " + slow + " --cluster 'dgx-h100 x 8' --out " + halved)
              .exit_code == 0);
  CHECK(step(halved) > 1.05 * step(profile));
  CHECK(orrery("calibrate --import " + slow)
            .out.find("samples that price nothing: rdma_write (1); no --cluster states NICs whose "
                      "rate they would set") != std::string::npos);
}

TEST_CASE("Samples that price nothing are named with the reason") {
  const Scratch scratch;
  const std::string trace = scratch.write(
      "t.json",
      R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"gemm","ts":0,"dur":5},)"
      R"({"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce_RING_LL","ts":9,"dur":5}]})");
  const Ran ran = orrery("calibrate --import " + trace + " --json");
  REQUIRE(ran.exit_code == 0);
  CHECK(Json::parse(ran.out)["notes"] ==
        Json{"samples that price nothing: all_reduce (1); its number of ranks is not known",
             "samples that price nothing: kernel (1); no cost model reads the kernels of a trace; "
             "`orrery calibrate` measures GEMMs, attention and overlap"});
}

TEST_CASE("A log without a measurement writes no profile") {
  const Scratch scratch;
  const std::string log = scratch.write("a.log", "n:1:1 [0] NCCL INFO Using network IB\n");
  const std::string profile = scratch.path("profile.json");
  const std::string good = scratch.write("good.log", sample_log);
  CHECK(refused_line("calibrate --import " + good + " " + log + " --out " + profile)
            .find("no measurement found") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(profile));
}

TEST_CASE("A log of more ranks than the cluster has is refused") {
  const Scratch scratch;
  const std::string log = scratch.write(
      "a.log",
      "# Collective test starting: all_reduce_perf\n"
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "1073741824 268435456 float sum -1 10000.00 107.37 201.33 0 10000.00 107.37 201.33 0\n");
  CHECK(refused_line("calibrate --import " + log + " --cluster dgx-h100") ==
        log +
            ": measured on 16 ranks, the cluster has 8 GPUs on 1 node; accepted: a --cluster that "
            "was measured, such as 'dgx-h100 x 2'");
}

TEST_CASE("An imported table that prices nothing of a plan says so") {
  // Of one size, which tells other collectives nothing.
  const Scratch scratch;
  const std::string log =
      scratch.write("a.log", std::string{sample_log}.erase(sample_log.find("4194304 ")));
  const std::string profile = scratch.path("profile.json"), model = scratch.path("model.json");
  REQUIRE(orrery("calibrate --import " + log + " --cluster dgx-h100 --out " + profile).exit_code ==
          0);
  scratch.write("model.json", small_model);
  const auto assumed = [&](const std::string& plan) {
    return orrery("simulate --json --model " + model + " --cluster " + profile + " --plan " + plan)
        .out;
  };
  // Sequence parallelism gathers and scatters, and ZeRO-1 too: an all-reduce is left for norms.
  CHECK(assumed("tensor=2,data=4,zero=1,sequence=true,seq_len=64,global_batch=4")
            .find("measured collectives that this plan does not use: all_reduce of 2 ranks (only "
                  "up to ") != std::string::npos);
  CHECK(assumed("data=8,seq_len=64,global_batch=8").find("that this plan does not use") ==
        std::string::npos);
}

TEST_CASE("Ranks that fill several nodes of the cluster are taken to be on several") {
  // 16 ranks, of which the log lists one: two nodes of eight.
  const Scratch scratch;
  const std::string log = scratch.write(
      "a.log",
      "# Collective test starting: all_reduce_perf\n"
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "4194304 1048576 float sum -1 1000.00 4.19 7.86 0 990.00 4.24 7.95 0\n"
      "1073741824 268435456 float sum -1 10000.00 107.37 201.33 0 10000.00 107.37 201.33 0\n");
  const std::string profile = scratch.path("profile.json");
  const Ran ran =
      orrery("calibrate --import " + log + " --cluster 'dgx-h100 x 2' --out " + profile);
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.out.find("16 ranks assumed to be on 2 nodes of the cluster's 8 GPUs") !=
        std::string::npos);
  CHECK(ran.out.find("the log names no GPU; the cluster's h100-sxm-80gb assumed") !=
        std::string::npos);
  CHECK(Json::parse(scratch.read("profile.json"))["measured_collectives"][0]["nodes"] == 2);
}

TEST_CASE("A profile that cannot be written is reported before a minute is spent on it") {
  const Ran ran = orrery("calibrate --budget 60s --out /nowhere/profile.json");
  CHECK(ran.exit_code == 74);
  CHECK(ran.seconds < (slow_build ? 20 : 1));
  CHECK(ran.error == "/nowhere/profile.json: cannot be written: No such file or directory\n");
}

TEST_CASE("A calibrated machine is a cluster that simulate takes with no further flag", "[heavy]") {
  const Scratch scratch;
  const std::string profile = scratch.path("profile.json");
  const Ran measured =
      orrery("calibrate --backend cpu --budget 4s --ranks 1,2 --json --out " + profile);
  INFO(measured.error);
  REQUIRE(measured.exit_code == 0);
  const Json answer = Json::parse(measured.out);
  CHECK(answer["profile"] == profile);
  CHECK_FALSE(answer["samples"].empty());
  CHECK(answer["curves"][0]["name"] == "gemm fp32");
  const std::string model = scratch.write("model.json", small_model);
  for (const std::string plan :
       {"seq_len=64,global_batch=2,precision=fp32",
        "tensor=2,seq_len=64,global_batch=2,precision=fp32",
        "zero=1,offload=optimizer,seq_len=64,global_batch=2,precision=fp32"}) {
    const Ran ran =
        orrery("simulate --json --model " + model + " --cluster " + profile + " --plan " + plan);
    INFO(ran.error);
    REQUIRE(ran.exit_code == 0);
    const Json prediction = Json::parse(ran.out);
    CHECK(prediction["step_time_s"] > 0);
    bool own = false;
    for (const Json& each : prediction["assumptions"]) {
      own = own || each == "/software: the cluster's own, measured on it";
    }
    CHECK(own);
  }
}

TEST_CASE("What calibrate cannot do is reported in one line") {
  const Scratch scratch;
  CHECK(refused_line("calibrate --backend tpu") == "--backend: expected cpu or cuda, found 'tpu'");
  CHECK(refused_line("calibrate --budget 10") ==
        "--budget: expected a time of 1 s or more, found '10'");
  CHECK(refused_line("calibrate --ranks 1,0") == "--ranks: expected counts from 1 to 64, found 0");
  CHECK(refused_line("calibrate --fabric pigeon") ==
        "--fabric: expected tcp or threads, found 'pigeon'");
  const std::string wrong = scratch.write("a.log", "hello\n");
  CHECK(refused_line("calibrate --import " + wrong) ==
        wrong +
            ": unknown log format; known: nccl-tests (text or JSON), NCCL_DEBUG=INFO, OSU, "
            "perftest, fio JSON, BabelStream, STREAM, Kineto");
}

}  // namespace
}  // namespace orrery::scenarios

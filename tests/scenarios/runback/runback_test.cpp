#include <catch2/catch.hpp>
#include <filesystem>

#include "scenarios/runback/diagnosis.hpp"
#include "scenarios/runback/run_comparison.hpp"
#include "sim/output/gzip.hpp"
#include "tests/scenarios/command.hpp"
#include "tests/scenarios/runback/fake_run.hpp"

namespace orrery::scenarios {

namespace {

std::vector<std::string> written_traces(const FakeJob& job, const Scratch& scratch) {
  std::vector<std::string> files;
  const std::vector<std::string> texts = job.traces();
  for (std::size_t r = 0; r < texts.size(); ++r) {
    files.push_back(scratch.write("rank" + std::to_string(r) + ".pt.trace.json", texts[r]));
  }
  return files;
}

std::string joined_names(const std::vector<std::string>& files) {
  return fmt::format("{}", fmt::join(files, " "));
}

Diagnosis diagnosed(const FakeJob& job) {
  const Scratch scratch;
  DiagnosedLogs logs;
  for (const std::string& file : written_traces(job, scratch)) CHECK(add_run_log(file, {}, logs));
  return diagnose(logs);
}

/// A trace of three steps in which each class of kernels takes a stated time, one after another.
std::string trace_of_classes(const ClassTimes& classes) {
  constexpr std::pair<RunClass, const char*> names[] = {
      {RunClass::gemm, "nvjet_tst_128x256"},
      {RunClass::attention, "flash_fwd_kernel"},
      {RunClass::memory_bound, "vectorized_elementwise_kernel"},
      {RunClass::optimizer, "multi_tensor_apply_kernel"},
      {RunClass::communication, "ncclDevKernel_AllReduce_Sum_bf16"},
      {RunClass::pipeline, "ncclDevKernel_SendRecv"}};
  fake::Writer writer;
  writer.host = 0;
  for (int step = 0; step < 4; ++step) {
    const double begin = writer.host;
    for (const auto& [which, name] : names) {
      const double time = seconds(classes[which]) * 1e6;
      if (time <= 0) continue;
      const double ready = writer.launched(0.1);
      writer.ran("kernel", name, ready, time);
    }
    writer.host = writer.stream;
    const double idle = seconds(classes[RunClass::host]) * 1e6;
    writer.annotation("ProfilerStep#" + std::to_string(step), begin, writer.host + idle - 0.1,
                      "user_annotation");
    writer.host += idle;
  }
  return R"({"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":8},"traceEvents":[)" +
         writer.events + "]}";
}

std::string perftest_log(const std::string& nic, double gigabits) {
  return fmt::format(
      "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : {}\n"
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 65536      20000            {:.2f}              {:.2f}  \t\t   {:.6f}\n",
      nic, gigabits, gigabits, gigabits * 1e9 / 8 / 65536 / 1e6);
}

std::string pair_log(const std::string& a, const std::string& b, double microseconds) {
  std::string text = "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576\n# Using devices\n";
  for (int rank = 0; rank < 4; ++rank) {
    text +=
        fmt::format("#  Rank  {} Group  0 Pid {} on {} device {} [0x1b] NVIDIA H100 80GB HBM3\n",
                    rank, rank, rank < 2 ? a : b, rank % 2);
  }
  const double algorithm = 1048576 / microseconds / 1e3;
  text +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n";
  text +=
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)       \n";
  return text + fmt::format(
                    "     1048576        262144     float     sum      -1 {0:8.2f} {1:7.2f} "
                    "{2:7.2f}      0 {0:8.2f} {1:7.2f} {2:7.2f}      0\n",
                    microseconds, algorithm, algorithm * 1.5);
}

const SlowPart& only(const Diagnosis& found) {
  REQUIRE(found.slow.size() == 1);
  return found.slow.front();
}

}  // namespace

TEST_CASE("Kernels have the class that their libraries' names say", "[runback]") {
  const std::pair<const char*, RunClass> kernels[] = {
      {"nvjet_tst_192x192_64x3_2x1_v_bz_coopB_NNN", RunClass::gemm},
      {"ampere_sgemm_128x64_nn", RunClass::gemm},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float>", RunClass::gemm},
      {"Cijk_Ailk_Bljk_HHS_BH_MT128x128x32", RunClass::gemm},
      {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32", RunClass::gemm},
      {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnBwdSm90>>",
       RunClass::attention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma", RunClass::attention},
      // A softmax of the loss, and elementwise kernels next to attention, are no attention.
      {"triton_red_fused__log_softmax_div_mul_prepare_softmax_online", RunClass::memory_bound},
      {"triton_per_fused__flash_attn_backward__unsafe_view_mul", RunClass::memory_bound},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>",
       RunClass::memory_bound},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdam>",
       RunClass::optimizer},
      {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       RunClass::communication}};
  for (const auto& [name, which] : kernels) {
    INFO(name);
    CHECK(class_of_kernel(name) == which);
  }
}

// A layer: 200 + 80 + 50 us of kernels and 100 us of all-reduce; eight of them, 30 us of optimizer,
// then the host waits, takes 10 + 1 us and needs 2 us for the first launch: 3,483 us a step.
TEST_CASE("A step of a trace is cut by class, and every microsecond counts once", "[runback]") {
  const Scratch scratch;
  FakeJob job;
  job.ranks.assign(2, {});
  job.first_step = 5000;
  const std::vector<std::string> files = written_traces(job, scratch);
  const ProfiledRank rank = read_profiled_rank(files.front(), {});
  CHECK(rank.rank == 0);
  CHECK(rank.world == 2);
  CHECK(rank.device == "NVIDIA H100 80GB HBM3");
  CHECK(rank.steps_by == "ProfilerStep#");
  REQUIRE(rank.steps.size() == 5);
  CHECK_FALSE(rank.steps.front().used);  // warm-up
  const ProfiledStep& step = rank.steps[2];
  CHECK(step.name == "ProfilerStep#5");
  CHECK(step.wall[RunClass::gemm] == 1600_us);
  CHECK(step.wall[RunClass::attention] == 640_us);
  CHECK(step.wall[RunClass::memory_bound] == 400_us);
  CHECK(step.wall[RunClass::communication] == 800_us);
  CHECK(step.wall[RunClass::optimizer] == 30_us);
  CHECK(step.wall[RunClass::host] == 13_us);
  CHECK(step.wall.sum() == step.duration);
  CHECK(step.duration == 3483_us);
  REQUIRE(rank.collectives.size() == 1);
  CHECK(
      rank.collectives.front() ==
      CollectiveKey{
          .kind = "all_reduce", .group = "tp", .ranks = 2, .bytes = 2097152, .members = "[0, 1]"});
  REQUIRE(rank.shapes.size() == 1);
  const auto& [shape, tally] = *rank.shapes.begin();
  CHECK(shape == MatrixShape{.m = 1024, .n = 2048, .k = 4096});
  CHECK(tally.count == 8 * 4);
  CHECK(tally.total == 6400_us);
}

// A step of 100 us: aten::linear dispatches for 1 us, then aten::addmm takes 20 us, 2 of them to
// copy a bias; a node of the backward graph (10 us) spends 8 in aten::native_layer_norm_backward,
// which allocates for 1; 30 us of aten::gelu and 1 of aten::empty. The host is late for the rest:
// 41 us.
TEST_CASE("Without a GPU the operators that compute themselves are what runs", "[runback]") {
  const Scratch scratch;
  fake::Writer writer;
  const auto ran = [&](const char* name, double begin, double duration, const char* sizes = "[]") {
    writer.put(fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":1,"tid":1,"ts":{:.3f},)"
                           R"("dur":{:.3f},"args":{{"Input Dims":{}}}}})",
                           name, begin, duration, sizes));
  };
  for (int step = 0; step < 4; ++step) {
    const double at = 1000 + 100 * step;
    writer.annotation(fmt::format("ProfilerStep#{}", step), at, at + 100, "user_annotation");
    ran("aten::empty", at, 1);
    ran("aten::linear", at + 10, 22);
    ran("aten::addmm", at + 11, 20, "[[32],[8,16],[16,32]]");
    ran("aten::copy_", at + 12, 2);
    ran("autograd::engine::evaluate_function: NativeLayerNormBackward0", at + 40, 10);
    ran("aten::native_layer_norm_backward", at + 41, 8);
    ran("aten::empty", at + 42, 1);
    ran("aten::gelu", at + 60, 30);
  }
  const std::string trace =
      scratch.write("cpu.json", R"({"schemaVersion":1,"traceEvents":[)" + writer.events + "]}");
  const ProfiledRank rank = read_profiled_rank(trace, {});
  const ProfiledStep& step = rank.steps[1];
  CHECK(step.duration == 100_us);
  CHECK(step.wall[RunClass::gemm] == 20_us);
  CHECK(step.wall[RunClass::memory_bound] == 39_us);
  CHECK(step.wall[RunClass::host] == 41_us);
  CHECK(step.wall.sum() == step.duration);
  REQUIRE(rank.shapes.size() == 1);
  CHECK(rank.shapes.begin()->first == MatrixShape{.m = 8, .n = 16, .k = 32});
}

TEST_CASE("A packed trace says the same as a plain one, and one that is cut off is refused",
          "[runback]") {
  const Scratch scratch;
  FakeJob job;
  job.ranks.assign(1, {});
  const std::string text = job.traces().front();
  std::string packed;
  {
    GzipWriter gzip{[&](std::string_view piece) { packed += piece; }};
    gzip.write(text);
    gzip.finish();
  }
  const ProfiledRank plain = read_profiled_rank(scratch.write("a.json", text), {});
  const ProfiledRank unpacked = read_profiled_rank(scratch.write("a.json.gz", packed), {});
  CHECK(plain.wall().sum() == unpacked.wall().sum());
  CHECK(plain.events == unpacked.events);
  const std::string cut = scratch.write("cut.json", text.substr(0, 5000));
  CHECK(refused_line("compare llama3-8b-8-h100 " + cut) ==
        cut + ": is cut off after 5000 bytes: the profiler had not finished writing it");
}

TEST_CASE("Idle time has its cause: the host, or its data loader", "[runback]") {
  const Scratch scratch;
  FakeJob job;
  job.ranks.assign(1, {.launch = 150, .loading = 700});
  const ProfiledRank rank = read_profiled_rank(written_traces(job, scratch).front(), {});
  const ProfiledStep& step = rank.steps[2];
  // Launches every 150 us: after a GEMM of 200 us the queue is dry from the third launch on.
  CHECK(step.wall[RunClass::data_loading] == 700_us);
  CHECK(step.wall[RunClass::host] > 1000_us);
  CHECK(step.wall.sum() == step.duration);
}

TEST_CASE("Without ProfilerStep a step is from one optimizer step to the next", "[runback]") {
  const Scratch scratch;
  FakeJob job;
  job.ranks.assign(1, {});
  std::string text = job.traces().front();
  for (std::size_t at = 0; (at = text.find("ProfilerStep#", at)) != std::string::npos;) {
    text.replace(at, 13, "my_train_stp#");
  }
  const std::string file = scratch.write("t.json", text);
  const ProfiledRank by_optimizer = read_profiled_rank(file, {});
  CHECK(by_optimizer.steps_by == "Optimizer.step#AdamW.step");
  CHECK(by_optimizer.steps.size() == 4);
  const ProfiledRank named = read_profiled_rank(file, {.step_mark = "my_train"});
  CHECK(named.steps.size() == 5);
  CHECK_THROWS_WITH(read_profiled_rank(file, {.step_mark = "epoch"}),
                    Catch::Contains("no annotation of") && Catch::Contains("begins with 'epoch'"));
}

TEST_CASE("Slower GEMMs in a trace are the change that explains the step, and the fit follows",
          "[runback]") {
  const Scratch scratch;
  const Scenario scenario = Scenario::load("llama3-8b-8-h100");
  const models::Prediction prediction = models::predict(scenario.question());
  ClassTimes classes = classes_of(prediction.breakdown);
  const Time gemm = classes[RunClass::gemm];
  classes[RunClass::gemm] = scaled(gemm, 1.3);
  const std::string trace = scratch.write("slow.json", trace_of_classes(classes));
  const std::string out = scratch.path("fit");
  const RunComparison found = compare_run(scenario, {.files = {trace}, .fit_out = out});
  const double more = seconds(found.measured - prediction.step);
  CHECK(more == Approx(0.3 * seconds(gemm)).epsilon(0.02));
  Time predicted{}, measured{};
  for (const RunClassTime& row : found.classes) {
    predicted += row.predicted;
    measured += row.measured;
  }
  CHECK(predicted == prediction.step);
  CHECK(measured == found.measured);
  REQUIRE_FALSE(found.changes.empty());
  CHECK(found.changes.front().cause == "GEMMs at 77 % of the predicted rate");
  CHECK(seconds(found.changes.front().effect) / more == Approx(1).margin(0.1));
  CHECK(found.changes.front().prior == Approx(share_of_slow_machines));

  // The files written are nearer to the run, read back by the command.
  const Ran fitted = orrery("simulate llama3-8b-8-h100 --json --software " + out +
                            "/software.json --cluster " + out + "/cluster.json");
  REQUIRE(fitted.exit_code == 0);
  const double again = parsed(fitted.out)["step_time_s"].get<double>();
  CHECK(again == Approx(seconds(found.fit->predicted)).epsilon(1e-6));
  CHECK(std::abs(again - seconds(found.measured)) < 0.5 * more);
}

TEST_CASE("A class of kernels that is slow on one rank is named", "[runback]") {
  FakeJob job;
  job.ranks.assign(4, {});
  job.ranks[2].gemm = 260;
  const Diagnosis found = diagnosed(job);
  const SlowPart& slow = only(found);
  CHECK(slow.kind == "gpu");
  CHECK(slow.name == "rank 2");
  CHECK(slow.what == "GEMM kernels of a step");
  CHECK(slow.factor == Approx(1.3).epsilon(0.01));
  CHECK(slow.confidence > 0.95);
  CHECK(slow.evidence.find("the others are") != std::string::npos);
  // Kernels of a step: 8 x 330 + 30 us, on rank 2 8 x 390 + 30: a rate slows all of them.
  CHECK(slow.statement == R"({"kind": "gpu", "at": "nodeN/gpuM", "rate": 0.848})");
}

TEST_CASE("The rate of a GPU that is slow in a small part loses what that part does", "[runback]") {
  FakeJob job;
  job.ranks.assign(4, {});
  for (FakeRank& each : job.ranks) each.elementwise = 10;
  job.ranks[1].elementwise = 60;
  const SlowPart slow = only(diagnosed(job));
  CHECK(slow.kind == "gpu");
  CHECK(slow.what == "memory-bound kernels of a step");
  // 8 x 290 + 30 against 8 x 340 + 30 us of kernels.
  CHECK(slow.statement == R"({"kind": "gpu", "at": "nodeN/gpuM", "rate": 0.855})");
}

TEST_CASE("A rank whose host is late is named, though its kernels are as fast", "[runback]") {
  FakeJob job;
  job.ranks.assign(4, {});
  job.ranks[1].launch = 250;
  const SlowPart slow = only(diagnosed(job));
  CHECK(slow.kind == "host");
  CHECK(slow.name == "rank 1");
  FakeJob loading;
  loading.ranks.assign(4, {});
  loading.ranks[3].loading = 900;
  const SlowPart data = only(diagnosed(loading));
  CHECK(data.kind == "data");
  CHECK(data.name == "rank 3");
}

TEST_CASE("A throttled link shows in its group's collectives, not in those of others",
          "[runback]") {
  FakeJob job;
  for (int group = 0; group < 4; ++group) {
    for (int rank = 0; rank < 2; ++rank) {
      FakeRank made;
      made.group = {2 * group, 2 * group + 1};
      made.transfer = group == 2 ? 190 : 100;
      job.ranks.push_back(made);
    }
  }
  const SlowPart slow = only(diagnosed(job));
  CHECK(slow.kind == "link");
  CHECK(slow.name == "ranks [4, 5]");
  CHECK(slow.factor == Approx(1.9).epsilon(0.01));
}

TEST_CASE("Ranks that are alike: nothing stands out", "[runback]") {
  FakeJob job;
  job.ranks.assign(4, {});
  job.ranks[0].gemm = 203;  // 1.5 %
  const Diagnosis found = diagnosed(job);
  CHECK(found.slow.empty());
  CHECK_FALSE(found.groups.empty());
  CHECK(text_of(found, 100, false).find("Nothing stands out") != std::string::npos);
}

// Others: 100, 101, 102, 99: median 100.5, MAD 1, spread 1.48. 120 is 13.2 spreads and 19 % away.
TEST_CASE("An outlier is far in spreads and by a share that matters", "[runback]") {
  const auto found = outliers_of({100, 101, 102, 99, 120}, false);
  REQUIRE(found.size() == 1);
  CHECK(found.front().index == 4);
  CHECK(found.front().usual == 100.5);
  CHECK(found.front().distance == Approx(19.5 / 1.4826));
  CHECK(found.front().confidence > 0.99);
  CHECK(outliers_of({100, 100, 100, 104}, false).empty());     // 4 %
  CHECK(outliers_of({80, 100, 120, 90, 110}, false).empty());  // within the spread
  CHECK(outliers_of({100, 100, 50}, true).front().index == 2);
  CHECK(outliers_of({100, 50}, true).empty());  // which of two?
}

TEST_CASE("diagnose names the slow NIC of eight, and the node that all slow pairs share",
          "[runback]") {
  const Scratch scratch;
  std::vector<std::string> nics;
  for (int i = 0; i < 8; ++i) {
    nics.push_back(
        scratch.write("ib_" + std::to_string(i) + ".log",
                      perftest_log("mlx5_" + std::to_string(i), i == 5 ? 98.0 : 196.5 + 0.1 * i)));
  }
  const Ran ran = orrery("diagnose --json " + joined_names(nics));
  REQUIRE(ran.exit_code == 0);
  const Json json = parsed(ran.out);
  CHECK(json["anything_slow"] == true);
  REQUIRE(json["slow"].size() == 1);
  CHECK(json["slow"][0]["kind"] == "nic");
  CHECK(json["slow"][0]["name"] == "mlx5_5");
  CHECK(json["slow"][0]["factor"].get<double>() == Approx(2.0).epsilon(0.01));
  CHECK(json["slow"][0]["perturbation"] == R"({"kind": "nic", "at": "nodeN/nicM", "rate": 0.50})");

  std::vector<std::string> pairs;
  const std::string nodes[] = {"n1", "n2", "n3", "n4"};
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) {
      const bool slow = a == 2 || b == 2;
      pairs.push_back(scratch.write(nodes[a] + nodes[b] + ".log",
                                    pair_log(nodes[a], nodes[b], slow ? 90 : 60 + 0.2 * a)));
    }
  }
  // Half of the six pairs hold the slow node: what is usual is then not known.
  const Ran half = orrery("diagnose " + joined_names(pairs));
  CHECK(half.exit_code == 0);
  std::vector<std::string> chosen{pairs[0], pairs[2], pairs[3], pairs[4]};  // n1n2 n1n4 n2n3 n2n4
  const Ran named = orrery("diagnose --json " + joined_names(chosen));
  const Json found = parsed(named.out);
  REQUIRE(found["slow"].size() == 1);
  CHECK(found["slow"][0]["kind"] == "node");
  CHECK(found["slow"][0]["name"] == "n3");
}

TEST_CASE("Step times by rank name a node all of whose ranks are slow", "[runback]") {
  const Scratch scratch;
  std::string csv = "step,rank,node,compute_ms\n";
  for (int step = 0; step < 6; ++step) {
    for (int rank = 0; rank < 8; ++rank) {
      const std::string node = "n" + std::to_string(rank / 2);
      csv += fmt::format("{},{},{},{}\n", step, rank, node,
                         (rank / 2 == 3 ? 130.0 : 100.0) + 0.1 * step);
    }
  }
  const Json found = parsed(orrery("diagnose --json " + scratch.write("ranks.csv", csv)).out);
  REQUIRE(found["slow"].size() == 1);
  CHECK(found["slow"][0]["kind"] == "node");
  CHECK(found["slow"][0]["name"] == "n3");
  CHECK(found["slow"][0]["factor"].get<double>() == Approx(1.3).epsilon(0.01));
}

TEST_CASE("Step times are read from the logs of training tools", "[runback]") {
  const Scratch scratch;
  std::string megatron, titan,
      mllog =
          ":::MLLOG {\"key\": \"global_batch_size\", \"value\": 256, "
          "\"metadata\": {}}\n";
  std::string mlflow;
  for (int i = 1; i <= 12; ++i) {
    const int ms = i == 1 ? 9000 : 2000 + i;
    megatron += fmt::format(
        " [2025-01-01 00:00:00] iteration {:8}/     500 | consumed samples: {:12} | elapsed time "
        "per iteration (ms): {}.0 | learning rate: 1.0E-05 | global batch size:   256 |\n",
        i, 256 * i, ms);
    titan += fmt::format(
        "\x1b[31m[titan] 2025-01-01 - root - INFO - \x1b[0mstep: {:2}  loss: 8.1  memory: "
        "40.1GiB(50.0%)  tps: {:d}  tflops: 400.00  mfu: 40.00%\n",
        i, i == 1 ? 1000 : 8192);
    mllog += fmt::format(
        ":::MLLOG {{\"key\": \"tracked_stats\", \"value\": {{\"throughput\": {}}}, "
        "\"metadata\": {{\"step\": {}}}}}\n",
        256.0 / ms * 1e3, i);
    mlflow += fmt::format("{} 1.25 {}\n", 1700000000000 + 2000 * i, i);
  }
  const auto median_of = [](const std::string& file) {
    const models::Question question = Scenario::load("llama3-8b-8-h100").question();
    const RunLog log = read_run_log(file);
    return statistics_of(log.step_seconds(&question)).median;
  };
  // Without the first: steps 2 to 12, whose median is the seventh.
  CHECK(median_of(scratch.write("m.log", megatron)) == Approx(2.007));
  CHECK(median_of(scratch.write("l.log", mllog)) == Approx(2.007));
  std::filesystem::create_directories(scratch.path("run/metrics"));
  scratch.write("run/metrics/loss", mlflow);
  CHECK(median_of(scratch.path("run")) == Approx(2.0));
  const models::BatchSizes batch = Scenario::load("llama3-8b-8-h100").question().plan.batch;
  CHECK(median_of(scratch.write("t.log", titan)) ==
        Approx(static_cast<double>(batch.global * batch.seq_len) / 8192 / 8));

  const Json found =
      parsed(orrery("compare llama3-8b-8-h100 " + scratch.path("m.log") + " --json").out);
  CHECK(found["source"] == "Megatron-LM");
  CHECK(found["measured_s"].get<double>() == Approx(2.007));
  CHECK(found["steps"]["left_out"] == 1);
  CHECK(found["classes"].empty());
  CHECK(found["alternatives"]["explanations"].is_array());
}

TEST_CASE("One measured step is one step", "[runback]") {
  const Scratch scratch;
  const std::string log = scratch.write("one.csv", "step,step_time_s\n1,2.5\n");
  const Ran ran = orrery("compare llama3-8b-8-h100 " + log);
  INFO(ran.error);
  CHECK(ran.out.find(" 1 step: median") != std::string::npos);
}

TEST_CASE("The prediction's own trace leaves nothing to explain, class by class", "[runback]") {
  const Scratch scratch;
  const std::string trace = scratch.path("own.json");
  REQUIRE(orrery("simulate gpt-dp2 --trace " + trace + " --trace-format kineto").exit_code == 0);
  const Ran ran = orrery("compare gpt-dp2 " + trace + " --json");
  REQUIRE(ran.exit_code == 0);
  const Json document = parsed(ran.out);
  CHECK(document["causes"].empty());
  const double step = document["predicted_s"];
  for (const Json& row : document["classes"]) {
    INFO(row.dump());
    CHECK(row["share_of_difference"].is_null());
    // Gaps between kernels belong to the kernel before or to the host.
    CHECK(std::abs(row["difference_s"].get<double>()) < 0.02 * step);
  }
}

TEST_CASE("A stage of a pipeline is not slow for having the head and the loss", "[runback]") {
  const Scratch scratch;
  const std::string folder = scratch.path("stages");
  REQUIRE(orrery("simulate --model llama3-8b --cluster dgx-h100 --plan pipeline=8,micro_batch=1,"
                 "global_batch=16,seq_len=4096 --trace " +
                 folder + " --trace-format kineto")
              .exit_code == 0);
  std::string files;
  for (int rank = 0; rank < 8; ++rank) {
    files += fmt::format(" {}/rank-{}.json.gz", folder, rank);
  }
  const Ran ran = orrery("diagnose" + files + " --json");
  INFO(ran.error);
  REQUIRE(ran.exit_code == 0);
  CHECK(parsed(ran.out)["anything_slow"] == false);
}

/// Iteration lines of Megatron-LM of `ms` milliseconds a step.
std::string megatron_log(double ms, int batch) {
  std::string text;
  for (int i = 1; i <= 12; ++i) {
    text += fmt::format(
        " iteration {:8}/ 500 | consumed samples: {} | elapsed time per iteration (ms): {:.1f} | "
        "global batch size: {:5} | lm loss: 1.0E+00 |\n",
        i, batch * i, ms + i, batch);
  }
  return text;
}

TEST_CASE("The batch that a log states is compared, and a contradiction is said", "[runback]") {
  const Scratch scratch;
  const std::int64_t own = Scenario::load("llama3-8b-8-h100").question().plan.batch.global;
  const std::string same = scratch.write("same.log", megatron_log(9000, static_cast<int>(own)));
  const std::string twice =
      scratch.write("twice.log", megatron_log(9000, static_cast<int>(2 * own)));
  const Json alike = parsed(orrery("compare llama3-8b-8-h100 " + same + " --json").out);
  CHECK(alike["contradictions"].empty());
  const Json other = parsed(orrery("compare llama3-8b-8-h100 " + twice + " --json").out);
  REQUIRE(other["contradictions"].size() == 1);
  CHECK(other["contradictions"][0]["pointer"] == "/plan/global_batch");
  CHECK(other["contradictions"][0]["scenario"] == own);
  CHECK(other["contradictions"][0]["log"] == 2 * own);
  // Twice as many passes and one optimizer step.
  CHECK(other["predicted_s"].get<double>() > 1.8 * alike["predicted_s"].get<double>());
  CHECK(other["tokens_per_s"].get<double>() ==
        Approx(2 * alike["tokens_per_s"].get<double>()).epsilon(1e-9));
  const std::string odd = scratch.write("odd.log", megatron_log(9000, 3));
  CHECK(refused_line("compare llama3-8b-8-h100 " + odd)
            .rfind(odd + ": its steps have 3 sequences, the scenario's " + std::to_string(own) +
                       "; and with that: ",
                   0) == 0);
}

TEST_CASE("Logs of different runs are not taken together", "[runback]") {
  const Scratch scratch;
  const std::string one = scratch.write("one.log", megatron_log(2000, 64));
  const std::string peer = scratch.write("peer.log", megatron_log(2040, 64));
  const std::string slow = scratch.write("slow.log", megatron_log(3000, 64));
  const std::string large = scratch.write("large.log", megatron_log(2000, 128));
  CHECK(orrery("compare llama3-8b-8-h100 " + one + " " + peer).exit_code == 0);
  CHECK(refused_line("compare llama3-8b-8-h100 " + one + " " + slow) ==
        slow + ": and " + one +
            " are of different runs: medians of 2.01 s and 3.01 s a step; compare them one at a "
            "time");
  CHECK(refused_line("compare llama3-8b-8-h100 " + one + " " + large) ==
        large + ": and " + one +
            " are of different runs: batches of 64 and of 128; compare them one at a time");
}

TEST_CASE("Of several runs of MLflow one is chosen by name or id", "[runback]") {
  const Scratch scratch;
  const auto add_run = [&](const std::string& id, const std::string& name, double step) {
    std::filesystem::create_directories(scratch.path("mlruns/7/" + id + "/metrics"));
    std::filesystem::create_directories(scratch.path("mlruns/7/" + id + "/params"));
    scratch.write("mlruns/7/" + id + "/meta.yaml", "run_id: " + id + "\nrun_name: " + name + "\n");
    std::string metric;
    for (int i = 1; i <= 8; ++i)
      metric += fmt::format("{} {} {}\n", 1700000000000 + 1000 * i, step, i);
    scratch.write("mlruns/7/" + id + "/metrics/step_time", metric);
    scratch.write("mlruns/7/" + id + "/params/global_batch_size", "128");
  };
  add_run("aa11", "first", 2.0);
  const std::string store = scratch.path("mlruns");
  const auto measured = [&](const std::string& more) {
    return parsed(orrery("compare llama3-8b-8-h100 " + store + more + " --json").out);
  };
  CHECK(measured("")["measured_s"].get<double>() == Approx(2.0));  // the only one
  add_run("bb22", "second", 3.0);
  CHECK(refused_line("compare llama3-8b-8-h100 " + store) ==
        store + ": holds 2 runs; choose one with --run NAME or ID: aa11 (first), bb22 (second)");
  CHECK(measured(" --run second")["measured_s"].get<double>() == Approx(3.0));
  CHECK(measured(" --run aa11")["measured_s"].get<double>() == Approx(2.0));
  CHECK(refused_line("compare llama3-8b-8-h100 " + store + " --run third") ==
        "--run: 'third' is none of the runs in " + store + ": aa11 (first), bb22 (second)");
}

TEST_CASE("A run's train_batch_size is the whole batch in DeepSpeed's parameters only",
          "[runback]") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path("run/metrics"));
  std::filesystem::create_directories(scratch.path("run/params"));
  scratch.write("run/meta.yaml", "run_id: aa11\n");
  scratch.write("run/metrics/step_time", "1700000001000 2.0 1\n1700000003000 2.0 2\n");
  scratch.write("run/params/train_batch_size", "8");
  CHECK_FALSE(read_run_log(scratch.path("run")).global_batch);
  scratch.write("run/params/train_micro_batch_size_per_gpu", "1");
  CHECK(read_run_log(scratch.path("run")).global_batch == 8);
}

TEST_CASE("--run is refused where traces are compared", "[runback]") {
  const Scratch scratch;
  FakeJob job;
  job.ranks.assign(1, {});
  const std::string trace = scratch.write("t.json", job.traces().front());
  CHECK(refused_line("compare llama3-8b-8-h100 " + trace + " --run first") ==
        "--run: is for MLflow's stores, not for traces");
}

TEST_CASE("A damaged trace or log is refused or read, whatever its numbers are", "[runback]") {
  const Scratch scratch;
  const auto event = [](const std::string& more) {
    return R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"gemm","pid":9223372036854775807,)"
           R"("tid":9223372036854775807,)" +
           more + R"("args":{"device":0,"stream":7,"correlation":1}}]})";
  };
  const std::string wide = scratch.write(
      "wide.json",
      R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":5,)"
      R"("args":{}},{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":3e15,"dur":5,)"
      R"("args":{}}]})");
  CHECK(refused_line("compare gpt-dp2 " + wide).rfind(wide + ": its events are 34722 days", 0) ==
        0);
  const ProfiledRank epoch = read_profiled_rank(
      scratch.write("epoch.json", event(R"("ts":1690000000000000,"dur":250,)")), {});
  CHECK(epoch.steps.at(0).duration == 250_us);
  const RunLog log = read_run_log(
      scratch.write("huge.log",
                    " iteration 1e300/ 9 | elapsed time per iteration (ms): 1e300 |\n"
                    " iteration 1e300/ 9 | elapsed time per iteration (ms): 2000.0 |\n"));
  REQUIRE(log.steps.size() == 1);
  CHECK(log.steps[0].seconds == Approx(2));
  CHECK(log.steps[0].step == 0);
}

TEST_CASE("A folder is a run of MLflow only with MLflow's structure", "[runback]") {
  const Scratch scratch;
  scratch.write("step_time", "1 0.5 1\n");
  const std::string folder = std::filesystem::path{scratch.path("step_time")}.parent_path();
  CHECK(refused_line("compare llama3-8b-8-h100 " + folder) ==
        folder +
            ": is no run of MLflow: it has no meta.yaml; name the files of a folder of traces");
}

TEST_CASE("Blocks of an MLPerf log that count epochs are no samples", "[runback]") {
  const auto block = [](int at, const char* key, const char* what) {
    return fmt::format(
        ":::MLLOG {{\"time_ms\": {}, \"event_type\": \"INTERVAL\", \"key\": "
        "\"{}\", \"value\": null, \"metadata\": {{{}}}}}\n",
        at, key, what);
  };
  const Scratch scratch;
  const std::string log = scratch.write(
      "images.log",
      ":::MLLOG {\"key\": \"global_batch_size\", \"value\": 25600, \"time_ms\": 1}\n" +
          block(1000, "block_start", "\"first_epoch_num\": 0, \"epoch_count\": 4") +
          block(91000, "block_stop", "\"first_epoch_num\": 4"));
  CHECK(orrery("compare resnet50-64-h100 " + log).exit_code == 2);
}

TEST_CASE("A file of another kind is refused by naming the command that reads it", "[runback]") {
  const Scratch scratch;
  const std::string nic = scratch.write("ib.log", perftest_log("mlx5_0", 100));
  CHECK(refused_line("compare llama3-8b-8-h100 " + nic) ==
        nic + ": is a log of perftest; `orrery diagnose` compares several");
  FakeJob job;
  job.ranks.assign(1, {});
  const std::string trace = scratch.write("t.json", job.traces().front());
  CHECK(refused_line("compare " + trace + " " + trace) ==
        trace +
            ": is a trace of PyTorch's profiler; state the scenario first: orrery compare "
            "SCENARIO TRACE..., or its parts: --model M --cluster C --plan P");
  CHECK(refused_line("diagnose " + nic) ==
        "LOGS: nothing to compare: give three or more logs of parts that should be alike");
  const std::string script = scratch.write("job.sh", "#!/bin/bash\n#SBATCH -N 2\n");
  CHECK(refused_line("diagnose " + script) ==
        script + ": is a launch script; `orrery import` reads it");
  const std::string text = scratch.write("x.txt", "hello\n");
  CHECK(refused_line("compare llama3-8b-8-h100 " + text).find("no step time found; accepted:") !=
        std::string::npos);
  const std::string log =
      scratch.write("m.log", " iteration 1/ 5 | elapsed time per iteration (ms): 2000.0 |\n");
  CHECK(refused_line("calibrate --import " + log) ==
        log +
            ": is a log of training steps; `orrery compare SCENARIO LOG` lays it next to its "
            "prediction");
}

TEST_CASE("Steps without a usable time are counted, and the first of a few may be a warm-up",
          "[runback]") {
  const Scratch scratch;
  const auto line = [](int step, const char* ms) {
    return fmt::format(" iteration {:8}/ 500 | elapsed time per iteration (ms): {} |\n", step, ms);
  };
  // 30 s and 15.3 s of four: the first is left out, as it takes over 1.1 times the other.
  const std::string few = scratch.write(
      "few.log", line(1, "30000.0") + line(2, "NaN") + line(3, "-5") + line(4, "15300.0"));
  const RunLog log = read_run_log(few);
  CHECK(log.unusable == 2);
  REQUIRE(log.notes.size() == 1);
  CHECK(log.notes[0] ==
        few + ": 2 of 4 steps left out, whose time is no number above 0; the first in line 2");
  const Json found = parsed(orrery("compare llama3-8b-8-h100 " + few + " --json").out);
  CHECK(found["measured_s"].get<double>() == Approx(15.3));
  CHECK(found["steps"]["left_out"] == 1);
  CHECK(found["notes"].dump().find("2 of 4 steps left out") != std::string::npos);
  CHECK(found["notes"].dump().find("1 step left out as warm-up") != std::string::npos);

  CHECK(warm_up_of({30, 15}) == 1);
  CHECK(warm_up_of({15, 15}) == 0);
  CHECK(warm_up_of({15, 30}) == 0);
  CHECK(warm_up_of({15}) == 0);
  CHECK(warm_up_of({30, 15, 16, 15}) == 1);

  const std::string titan = scratch.write("titan.log",
                                          "step:  1  loss: 8.1  tps: 8,192  mfu: 40.00%\n"
                                          "step:  2  loss: nan  tps: nan  mfu: nan%\n");
  CHECK(read_run_log(titan).unusable == 1);
  const std::string table =
      scratch.write("steps.csv", "step,step_time_s\n1,2.0\n2,0\n3,2.1\n4,2.0\n");
  CHECK(read_run_log(table).unusable == 1);
  const std::string huge = scratch.write("huge.log", line(1, "1e300") + line(2, "2000.0"));
  CHECK(read_run_log(huge).unusable == 1);
}

}  // namespace orrery::scenarios

#include "scenarios/validation/page/page.hpp"

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

MeasuredRun run_of(std::int64_t gpus, std::int64_t tensor, std::int64_t pipeline,
                   double step_time) {
  MeasuredRun run;
  run.run = "r" + std::to_string(gpus);
  run.source = "paper";
  run.software = "stack";
  run.model = "1B";
  run.gpu = "a100-sxm-80gb";
  run.gpus = gpus;
  run.plan["tensor"] = std::to_string(tensor);
  run.plan["pipeline"] = std::to_string(pipeline);
  run.step_time = step_time;
  return run;
}

/// Predicted `factor` times as long as measured.
RunResult result_of(std::size_t row, const MeasuredRun& run, double factor) {
  RunResult result;
  result.row = row;
  result.predicted = factor * *run.step_time;
  result.error_pct = 100 * (factor - 1);
  result.largest_part = "gemm";
  return result;
}

TEST_CASE("Runs are distinguished by the size of their cluster and the axes of their plan") {
  const std::vector<MeasuredRun> runs{run_of(1, 1, 1, 1), run_of(8, 8, 1, 1), run_of(64, 8, 4, 1),
                                      run_of(512, 1, 512, 1), run_of(513, 1, 1, 1)};
  const std::vector<Grouping> facets = facets_of(runs);
  REQUIRE(facets.size() == 4);
  CHECK(facets[2].cells == std::vector<std::string>{"   1 to 8 GPUs", "   1 to 8 GPUs",
                                                    "  9 to 64 GPUs", " 65 to 512 GPUs",
                                                    "over 512 GPUs"});
  CHECK(facets[3].cells == std::vector<std::string>{"one GPU", "tensor", "tensor + pipeline + data",
                                                    "pipeline", "data"});
}

TEST_CASE("What is known of a run comes from runs of its model and from its twin") {
  const std::vector<MeasuredRun> runs{run_of(8, 8, 1, 2.0), run_of(16, 8, 1, 1.0),
                                      run_of(64, 8, 4, 1.0)};
  // The first is twice too long. The others of its model are off by +10 and -10 %: median 0. The
  // second differs from it in the GPUs alone, the third in GPUs and pipeline.
  std::vector<RunResult> results{result_of(0, runs[0], 2.0), result_of(1, runs[1], 1.1),
                                 result_of(2, runs[2], 0.9)};
  results[0].fallback_curves = 1;
  CHECK(explanation_of(runs, results, 0) ==
        "most of the step is gemm; 2 other runs of its model: median +0 %; with gpus 16: +10 %; 1 "
        "fallback curve");
  CHECK(explanation_of({runs[0]}, {results[0]}, 0) ==
        "most of the step is gemm; the only run of its model here; 1 fallback curve");
}

TEST_CASE("A run predicted as measured lies on the diagonal") {
  // One run of 1 s: both axes go from 1 s to 10^0.5 s, so it sits in the lower left corner of the
  // panel, whose left side is at 75 and whose lower side at 20 + 640.
  const std::vector<MeasuredRun> runs{run_of(1, 1, 1, 1.0)};
  const std::string picture = picture_of(runs, {result_of(0, runs[0], 1.0)});
  CHECK(picture.find("<circle cx='75.0' cy='660.0' r='3'") != std::string::npos);
  CHECK(picture.find("</svg>\n") == picture.size() - 7);
}

TEST_CASE("A page without a scored run says so") {
  CHECK(picture_of({}, {}).find("no run is scored") != std::string::npos);
  CHECK(page_of({}, {}, scores_of({}, {}, {}), "mine.csv", "p.svg")
            .find("0 runs in the file, 0 simulated, 0 scored.") != std::string::npos);
}

TEST_CASE("A page gives a group that is reported separately figures of its own, and reasons") {
  const std::vector<MeasuredRun> runs{run_of(8, 8, 1, 1.0), run_of(16, 8, 1, 1.0),
                                      run_of(64, 8, 1, 1.0)};
  std::vector<RunResult> results{result_of(0, runs[0], 1.1), result_of(1, runs[1], 1.5),
                                 result_of(2, runs[2], 2.0)};
  for (RunResult& each : results) each.p10 = each.p90 = each.predicted;
  results[1].apart = "later ones";
  results[2].not_scored_because = "a guess";
  const std::string page =
      page_of(runs, results, scores_of(runs, results, {}), "mine.csv", "p.svg");
  CHECK(page.find("3 runs in the file, 3 simulated, 1 scored.") != std::string::npos);
  CHECK(page.find("## Reported apart: later ones\n\n1 runs in the group, 1 simulated, 1 scored.\n\n"
                  "| figure | value |\n|---|--:|\n| step time, median error | 50.0 % |") !=
        std::string::npos);
  CHECK(page.find("## Simulated, not scored\n\n| why | runs |\n|---|--:|\n| a guess | 1 |\n"
                  "| reported separately: later ones | 1 |\n") != std::string::npos);
}

TEST_CASE("validate writes its page into a folder of the name given") {
  const Scratch scratch;
  const std::string file = scratch.write(
      "runs.csv",
      "run,software,family,model,layers,hidden,heads,seq_len,gpu,gpus,tp,pp,global_batch,"
      "step_time_s\nx,megatron-lm,gpt,1.7B,24,2304,24,2048,a100-sxm-80gb,8,1,1,64,4.0\n");
  const Ran ran = orrery("validate " + file + " --page " + scratch.path("page"));
  REQUIRE(ran.exit_code == 0);
  const std::string page = scratch.read("page/accuracy.md");
  CHECK(page.find("# Predicted against measured\n") == 0);
  CHECK(page.find("\n| x | megatron-lm | 1.7B, 8 GPUs | 4 s | ") != std::string::npos);
  CHECK(page.find("](accuracy.svg)") != std::string::npos);
  CHECK(scratch.read("page/accuracy.svg").find("<svg ") == 0);
}

TEST_CASE("validate has no page for tables of kernels") {
  const Scratch scratch;
  const std::string file = scratch.write("kernels.csv",
                                         "id,kernel,gpu,dtype,m,n,k_or_seq,time_us\n"
                                         "k,gemm,h100-sxm-80gb,bf16,1024,1024,1024,10\n");
  const Ran ran = orrery("validate " + file + " --page " + scratch.path("page"));
  CHECK(ran.exit_code == 2);
  CHECK(ran.out.empty());
  CHECK(ran.error == "--page: expected a file of training runs\n");
}

}  // namespace
}  // namespace orrery::scenarios

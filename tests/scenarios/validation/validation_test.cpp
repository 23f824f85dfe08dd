#include "scenarios/validation/validation.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "models/software/resolved_profile.hpp"
#include "scenarios/validation/ranges.hpp"
#include "scenarios/validation/runs/run_question.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {
namespace {

// Step times of Korthikanti et al. 2022 (arXiv 2205.05198), table 5: with recomputation, and with
// sequence parallelism and selective recomputation.
const std::string published_rows =
    "run,source,software,software_year,family,model,layers,hidden,heads,kv_heads,ffn_hidden,vocab,"
    "seq_len,gpu,gpus,gpus_per_node,network,tp,pp,virtual_stages,zero_stage,sequence_parallel,"
    "recompute,precision,micro_batch,global_batch,step_time_s,peak_memory_gb,set_aside\n"
    "full-175b,paper,megatron-lm,2022,gpt,175B,96,12288,96,,49152,51200,2048,a100-sxm-80gb,64,8,"
    "8x HDR InfiniBand 200Gb/s per node,8,8,3,0,no,full,fp16,1,64,18.13,,\n"
    "selective-175b,paper,megatron-lm,2022,gpt,175B,96,12288,96,,49152,51200,2048,a100-sxm-80gb,64,"
    "8,8x HDR InfiniBand 200Gb/s per node,8,8,3,0,yes,selective,fp16,1,64,13.75,,\n"
    "full-530b,paper,megatron-lm,2022,gpt,530B,105,20480,128,,81920,51200,2048,a100-sxm-80gb,280,8,"
    "8x HDR InfiniBand 200Gb/s per node,8,35,3,0,no,full,fp16,1,280,49.05,,\n"
    "odd-one,paper,megatron-lm,2022,gpt,175B,96,12288,96,,49152,51200,2048,a100-sxm-80gb,64,8,"
    "8x HDR InfiniBand 200Gb/s per node,8,8,3,0,no,full,fp16,1,64,99,,clock not as stated\n";

std::vector<MeasuredRun> runs_of(const std::string& text) {
  return read_runs(Table::parse(text, "runs.csv"));
}

MeasuredRun first_run() {
  return runs_of(published_rows).front();
}

TEST_CASE("Runs of a stack to which nothing is fitted bring its own predictions no closer") {
  using models::RangeStep, models::RunKind;
  const auto group = [](const std::string& stack, bool unfitted) {
    MeasuredGroup found;
    found.group = {.run = {.kinds = {RunKind::dense}, .stack = stack, .gpu = "h100-sxm-80gb"},
                   .source = "paper of " + stack,
                   .rows = 2};
    found.errors = found.fitted = {0.1, 0.2};
    found.of_unfitted_stack = unfitted;
    return found;
  };
  const models::RangeRecord record = ranges_of({group("nemo", false), group("huggingface", true)});
  CHECK(record.kinds.at(RunKind::dense).rows == 4);  // both say how far groups are off
  const auto steps = [&](const std::string& stack) {
    return steps_between(record.groups, RunKind::dense, group(stack, false).group.run);
  };
  CHECK(steps("nemo").empty());
  CHECK(steps("huggingface") == std::vector{RangeStep::stack});
  CHECK_FALSE(models::software_profile("huggingface").value("fitted", true));
  CHECK_FALSE(models::software_profile("ms-swift").value("fitted", true));
  CHECK(models::software_profile("nemo").value("fitted", true));
}

TEST_CASE("Published steps are predicted within a fifth, and the error is what it says") {
  const std::vector<MeasuredRun> runs = runs_of(published_rows);
  const std::vector<RunResult> results = validate(runs, {});
  for (std::size_t i = 0; i < 3; ++i) {
    const RunResult& each = results[i];
    INFO(runs[i].run << ": " << *each.error_pct << " %");
    REQUIRE(each.scored());
    CHECK(*each.error_pct == Approx(100 * (*each.predicted / *runs[i].step_time - 1)));
    CHECK(std::abs(*each.error_pct) < 20);
    CHECK(each.fits);
  }
}

TEST_CASE("A run set aside is simulated and shown, not scored") {
  const std::vector<MeasuredRun> runs = runs_of(published_rows);
  const std::vector<RunResult> results = validate(runs, {});
  CHECK(results[3].simulated());
  CHECK_FALSE(results[3].scored());
  const Scores scores = scores_of(runs, results, {});
  CHECK(scores.rows == 4);
  CHECK(scores.simulated == 4);
  CHECK(scores.scored == 3);
  const Json json = to_json(runs, results, scores);
  CHECK(json["runs"].size() == 4);
  CHECK(json["runs"][3]["not_scored_because"] == "clock not as stated");
  CHECK(json["mean_over_stacks_pct"].is_null());  // fewer than ten runs of the stack
  CHECK(json["memory"]["rows"] == 0);
}

TEST_CASE("A run that does not say what it recomputes fits if it does with all recomputed") {
  MeasuredRun run = first_run();
  run.plan["micro_batch"] = "4";
  run.plan["recompute"] = "none";
  const auto fits = [&] { return validate({run}, ValidationOptions{}).front().fits; };
  CHECK_FALSE(fits());
  run.plan.erase("recompute");
  CHECK(fits());
}

TEST_CASE("Any number of threads gives the same document") {
  const std::vector<MeasuredRun> runs = runs_of(published_rows);
  const auto document = [&](unsigned threads) {
    ValidationOptions options;
    options.threads = threads;
    const std::vector<RunResult> results = validate(runs, options);
    return to_json(runs, results, scores_of(runs, results, {})).dump();
  };
  CHECK(document(1) == document(3));
}

TEST_CASE("Errors are distinguished by the cells of a column") {
  // Two runs of A and one of B, with errors given: medians 15 and 40.
  const std::vector<MeasuredRun> runs = runs_of(published_rows);
  std::vector<RunResult> results(3);
  const double errors[] = {10, -20, 40};
  for (std::size_t i = 0; i < 3; ++i) {
    results[i].row = i;
    results[i].predicted = 1;
    results[i].error_pct = errors[i];
    results[i].predicted_memory = 11_GiB;
    results[i].measured_memory = 10_GiB;
  }
  const Scores scores = scores_of(runs, results, {{"group", {"A", "A", "B", "B"}}});
  const auto& by = scores.by.front().second;
  CHECK(by.at("A").median == Approx(15));
  CHECK(by.at("A").bias == Approx(-5));
  CHECK(by.at("B").median == Approx(40));
  CHECK(scores.errors->median == Approx(20));
  CHECK(scores.memory->rows == 3);
  CHECK(scores.memory->median == Approx(10));
}

TEST_CASE("Runs of a group that is reported separately count in its figures and in no others") {
  // Errors of 10 and 30 % in the file, of 50 and 70 % in the group: medians 20 and 60.
  std::vector<MeasuredRun> runs(5, first_run());
  std::vector<RunResult> results(5);
  const double errors[] = {10, 50, 30, 70, 90};
  for (std::size_t i = 0; i < 5; ++i) {
    results[i].row = i;
    results[i].predicted = 1;
    results[i].error_pct = errors[i];
    if (errors[i] >= 50) results[i].apart = "later ones";
  }
  results[4].not_scored_because = "clock not as stated";
  const Scores scores = scores_of(runs, results, {{"software", {"a", "b", "a", "b", "b"}}});
  CHECK(scores.rows == 5);
  CHECK(scores.scored == 2);
  CHECK(scores.errors->median == Approx(20));
  CHECK(scores.by.front().second.count("b") == 0);
  REQUIRE(scores.apart.size() == 1);
  CHECK(scores.apart[0].group == "later ones");
  CHECK(scores.apart[0].scores.rows == 3);
  CHECK(scores.apart[0].scores.scored == 2);
  CHECK(scores.apart[0].scores.errors->median == Approx(60));
  CHECK(scores.apart[0].scores.by.front().second.at("b").rows == 2);

  const Json json = to_json(runs, results, scores);
  CHECK(json["median_abs_error_pct"] == Approx(20));
  CHECK(json["apart"]["later ones"]["median_abs_error_pct"] == Approx(60));
  CHECK(json["runs"][1]["apart"] == "later ones");
  CHECK(json["runs"][1]["not_scored_because"] == "reported separately: later ones");
  CHECK(json["runs"][4]["not_scored_because"] == "clock not as stated");
  const std::string text = table_of(runs, results, scores, 10);
  CHECK(text.find(
            "\nreported separately: later ones\n3 runs, 3 simulated, 2 scored\nstep time: median "
            "error 60.0 %") != std::string::npos);
  CHECK(text.find("\nsimulated, not scored\n     1  clock not as stated (full-175b)\n     2  "
                  "reported separately: later ones (full-175b, full-175b)\n") != std::string::npos);
}

TEST_CASE("A time ten times off the prediction is asked about") {
  MeasuredRun run = first_run();
  run.step_time = 99.9;
  CHECK(doubt_of(run, 10).empty());
  run.step_time = 3700;
  CHECK(doubt_of(run, 3.7) ==
        "3700 s measured are 1000 times the 3.7 s predicted: is step_time_s in ms?");
  run.step_time = 0.03;
  CHECK(doubt_of(run, 3) ==
        "0.03 s measured, 3 s predicted, 100 times as long: is step_time_s in seconds, of a whole "
        "step?");
}

TEST_CASE("Runs that shard gradients or parameters are scored apart from the others") {
  for (const char* zero : {"2", "3"}) {
    MeasuredRun run = first_run();
    run.plan["zero"] = zero;
    run.plan["tensor"] = "8";
    run.plan["pipeline"] = "1";
    run.plan["virtual_stages"] = "1";
    run.plan["data"] = "8";
    const RunResult result = validate({run}, {}).front();
    CHECK(result.counts());
    CHECK_FALSE(result.scored());
    CHECK(result.apart == "ZeRO-2, ZeRO-3 and FSDP");
    CHECK(result.left_out_because() == "reported separately: ZeRO-2, ZeRO-3 and FSDP");
  }
}

/// Llama 2 70B with adapters on 8 H200, as MLPerf Training ran it.
MeasuredRun adapters_run() {
  return runs_of(
             "run,source,software,software_year,task,family,model,layers,hidden,heads,kv_heads,"
             "ffn_hidden,vocab,seq_len,gpu,gpus,gpus_per_node,network,tp,pp,virtual_stages,"
             "zero_stage,sequence_parallel,recompute,precision,micro_batch,global_batch,"
             "step_time_s,peak_memory_gb,set_aside\n"
             "a,mlperf,nemo-mlperf,2024,lora,llama,Renamed,80,8192,64,8,28672,32000,8192,"
             "h200-sxm-141gb,8,8,,2,1,,,yes,,fp8,1,8,3.1425,,\n")
      .front();
}

TEST_CASE("A fine-tuned run takes from its stack's recipe what its line leaves open") {
  Questions questions;
  const auto asked = questions.of(adapters_run());
  const auto& question = std::get<models::Question>(asked);
  CHECK(question.plan.task == models::Task::lora);
  CHECK(question.plan.adapters.rank == 16);
  CHECK(question.plan.adapters.targets.has(models::LoraTarget::projection));
  CHECK_FALSE(question.plan.adapters.targets.has(models::LoraTarget::up));
  CHECK(question.plan.adapters.dropout);
  CHECK(std::any_of(question.assumptions.begin(), question.assumptions.end(), [](const auto& each) {
    return each.rfind("/plan/lora_rank: not stated; 16 assumed, from the recipes of nemo-mlperf (",
                      0) == 0;
  }));
}

TEST_CASE("Fine-tuning and formats of scaled blocks are scored apart") {
  const auto group = [](auto change) {
    MeasuredRun run = adapters_run();
    change(run);
    return validate({run}, {}).front().apart;
  };
  CHECK(group([](MeasuredRun&) {}) == "LoRA");
  CHECK(group([](MeasuredRun& run) { run.reported_apart = "later ones"; }) == "LoRA");
  CHECK(group([](MeasuredRun& run) { run.task = run.plan["task"] = "sft"; }) ==
        "fine-tuning of language models");
  CHECK(group([](MeasuredRun& run) {
          run.task = run.plan["task"] = "pretrain";
          run.plan["precision"] = "nvfp4";
        }) == "nvfp4");
}

TEST_CASE("An encoder fine-tuned on questions has two columns in place of the vocabulary") {
  MeasuredRun run = adapters_run();
  run.task = "sft";
  run.family = "bert";
  std::vector<std::string> assumptions;
  const models::Model model = model_of(run, {}, assumptions);
  CHECK(model.head.task_outputs == 2);
  run.task = "pretrain";
  // The pre-training heads: a dense layer with its norm, a bias for each token, the pooler; the
  // vocabulary's matrix is the embedding's.
  const std::int64_t h = 8192;
  const models::Model before = model_of(run, {}, assumptions);
  CHECK(before.parameters - model.parameters ==
        (h * h + h + 2 * h) + 32000 + (h * h + h + 2 * h + 2) - (2 * h + 2));
}

TEST_CASE("What today's models do not reach is skipped with the reason") {
  const auto reason = [](auto change) {
    MeasuredRun run = first_run();
    change(run);
    return out_of_scope(run);
  };
  CHECK(reason([](MeasuredRun&) {}).empty());
  CHECK(reason([](MeasuredRun& run) {
          run.family = "mla-moe";
          run.experts = 6;
        }) == "latent attention with sizes of no known configuration");
  CHECK(reason([](MeasuredRun& run) { run.family = "transformer-xl"; }) ==
        "family transformer-xl is not simulated: attention over a memory of earlier segments, "
        "adaptive softmax");
  CHECK(reason([](MeasuredRun& run) { run.family = "mamba"; }) ==
        "family mamba is not simulated yet; known: gpt llama bert electra moe mla-moe");
  CHECK(reason([](MeasuredRun& run) { run.plan["task"] = "distil"; }) ==
        "task distil is not simulated yet; known: pretrain sft lora qlora dpo");
  CHECK(reason([](MeasuredRun& run) { run.plan["context"] = "2"; }).empty());
  CHECK(reason([](MeasuredRun& run) { run.plan["zero"] = "hsdp"; }) ==
        "ZeRO hsdp is not simulated yet; known: 0 1 2 3");
  CHECK(reason([](MeasuredRun& run) { run.plan["schedule"] = "zb-9p"; }) ==
        "schedule zb-9p is not simulated yet; known: naive gpipe 1f1b interleaved-1f1b zb-h1 zb-h2 "
        "zb-1p zb-2p zb-v dualpipe dualpipev");
  CHECK(reason([](MeasuredRun& run) { run.plan["precision"] = "mxfp6"; }) ==
        "precision mxfp6 is not simulated yet; known: fp32 tf32 fp16 bf16 fp8 fp64 fp8-current "
        "fp8-block mxfp8 nvfp4");
  CHECK(reason([](MeasuredRun& run) { run.hidden.reset(); }) == "hidden is not stated");
}

TEST_CASE("A plan that cannot run, and GPUs that fill no nodes, are skipped in words") {
  Questions questions;
  MeasuredRun run = first_run();
  run.plan["tensor"] = "5";
  run.plan["data"] = "1";
  CHECK(std::get<Skip>(questions.of(run)).reason.rfind("/plan/", 0) == 0);
  run = first_run();
  run.gpus = 65;
  CHECK(std::get<Skip>(questions.of(run)).reason == "65 GPUs are not a whole number of nodes of 8");
  run = first_run();
  run.gpu = "abacus";
  CHECK(std::get<Skip>(questions.of(run)).reason.find("unknown GPU 'abacus'") != std::string::npos);
}

TEST_CASE("Empty cells become the stack's defaults, each reported") {
  MeasuredRun run = first_run();
  run.vocab.reset();
  run.plan.erase("recompute");
  run.plan.erase("micro_batch");
  run.network.clear();
  Questions questions;
  const auto asked = questions.of(run);
  const auto& question = std::get<models::Question>(asked);
  CHECK(question.model.embedding.vocab == question.software.defaults.vocab);
  CHECK(question.plan.batch.micro == 1);
  const auto reported = [&](const std::string& sentence) {
    return std::count(question.assumptions.begin(), question.assumptions.end(), sentence) == 1;
  };
  CHECK(reported("/model/vocab: not stated; 51200 assumed, the stack's default"));
  CHECK(reported("/plan/micro_batch: not stated; 1 assumed, the stack's default"));
  CHECK(reported("/plan/recompute: not stated; selective assumed, the stack's default"));
  CHECK(reported(
      "/cluster/fabric: rate not stated; infiniband-hdr-fat-tree-2 assumed, as in hgx-a100-80gb"));
}

TEST_CASE("Layers that only divide with embedding and head counted are divided so") {
  // 70 + 2 slots on 12 stages of 6; 96 layers need no such rule.
  MeasuredRun run = first_run();
  std::vector<std::string> assumptions;
  run.plan["virtual_stages"] = "1";
  run.plan["pipeline"] = "12";
  run.layers = 70;
  run.gpus = 96;
  const models::Model model = model_of(run, {}, assumptions);
  CHECK(plan_of(run, model, {}, assumptions).stages.embedding_counts);
  run.layers = 96;
  CHECK_FALSE(
      plan_of(run, model_of(run, {}, assumptions), {}, assumptions).stages.embedding_counts);
}

TEST_CASE("A table of something else is refused with what is accepted") {
  CHECK_THROWS_WITH(
      read_runs(Table::parse("op,bytes,time_us\nall_reduce,8,20\n", "nccl.csv")),
      "nccl.csv: holds no training runs; accepted: a header with run, software, family, layers, "
      "hidden, heads, seq_len, gpu, gpus, tp, pp, global_batch and step_time_s (collectives, "
      "kernels and goodput are not validated yet)");
}

TEST_CASE("A missing column and a cell that is no count are refused with their place") {
  CHECK_THROWS_WITH(
      read_runs(Table::parse("run,step_time_s,global_batch,layers\na,1,1,1\n", "mine.csv")),
      Catch::StartsWith("mine.csv: column 'software' is missing"));
  std::string text = published_rows;
  text.replace(text.find(",96,12288"), 3, ",-1");
  CHECK_THROWS_WITH(runs_of(text),
                    "runs.csv:line 2: column 'layers': expected a count of at least 1, found "
                    "\"-1\"");
}

}  // namespace
}  // namespace orrery::scenarios

#include "scenarios/validation/runs/run_experts.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "scenarios/validation/runs/run_question.hpp"
#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {
namespace {

/// DeepSeek-V3 as a table states it: without head sizes, ranks, dense layers or shared experts.
MeasuredRun latent_run() {
  const std::string text =
      "run,source,software,software_year,family,model,layers,hidden,heads,ffn_hidden,seq_len,"
      "experts,experts_per_token,gpu,gpus,gpus_per_node,intra_node,network,tp,pp,ep,dp,precision,"
      "micro_batch,global_batch,step_time_s\n"
      "one,a table 25.05,nemo,2025,mla-moe,DeepSeek-V3,61,7168,128,2048,4096,256,8,h100-sxm-80gb,"
      "1024,8,NVLink4,8x NDR InfiniBand 400Gb/s per node,2,16,64,32,bf16,1,8192,52\n";
  return read_runs(Table::parse(text, "runs.csv")).front();
}

models::Question asked(const MeasuredRun& run) {
  Questions questions{{}};
  auto answer = questions.of(run);
  if (const Skip* skip = std::get_if<Skip>(&answer)) FAIL(skip->reason);
  return std::get<models::Question>(std::move(answer));
}

TEST_CASE("What a line leaves open is the published configuration of the same sizes") {
  const models::Question question = asked(latent_run());
  CHECK(usual_attention(question.model).latents->kv_rank == 512);
  CHECK(expert_layers(question.model) == question.model.layers.size() - 3);
  CHECK(usual_experts(question.model).shared_width == 2048);
  CHECK(usual_attention(question.model).value_dim == 128);
}

TEST_CASE("A renamed model has the same answer") {
  MeasuredRun renamed = latent_run();
  renamed.model = "something else";
  const models::Question one = asked(latent_run()), other = asked(renamed);
  CHECK(to_json(one.plan) == to_json(other.plan));
  CHECK(one.model.parameters == other.model.parameters);
}

TEST_CASE("Dispatcher and capacity are the recipe's of the same degrees and release") {
  // NeMo on H100: with tensor 2 and 16 stages an all-to-all that drops tokens, with 8 stages of
  // two chunks and tensor 1, from 25.08 on, DeepEP without dropping.
  MeasuredRun run = latent_run();
  CHECK(asked(run).plan.experts.dispatcher == models::Dispatcher::all_to_all);
  CHECK(asked(run).plan.experts.capacity == 1);
  CHECK(asked(run).plan.experts.tensor == 1);
  run.release = "25.08.02";
  run.plan["tensor"] = "1";
  run.plan["pipeline"] = "8";
  run.plan["virtual_stages"] = "2";
  run.plan["data"] = "128";
  CHECK(asked(run).plan.experts.dispatcher == models::Dispatcher::deepep);
  CHECK(asked(run).plan.experts.capacity == 0);
  const models::Question question = asked(run);
  const bool reported = std::any_of(
      question.assumptions.begin(), question.assumptions.end(), [](const std::string& each) {
        return each.find("assumed, from the recipes of nemo") < each.size();
      });
  CHECK(reported);
}

TEST_CASE("A run follows the recipes of its own release, not later ones") {
  // Megatron-Bridge on GB200: an all-to-all that drops tokens in 25.09, HybridEP from 25.11 on.
  MeasuredRun run = latent_run();
  run.software = "megatron-bridge";
  run.gpu = "gb200";
  run.release = "25.09";
  CHECK(asked(run).plan.experts.dispatcher == models::Dispatcher::all_to_all);
  run.release = "25.11";
  CHECK(asked(run).plan.experts.dispatcher == models::Dispatcher::hybridep);
}

TEST_CASE("A recipe's choice that does not go with the rest of a run is left out") {
  // Recipes of these widths gather weights in 8 bits, which a plan that shards nothing does not.
  MeasuredRun run = latent_run();
  run.software = "megatron-bridge";
  run.release = "26.02.01";
  run.hidden = 7168;
  run.heads = 64;
  run.experts = 384;
  run.gpu = "b200-sxm";
  run.gpus = 256;
  run.plan = {{"tensor", "1"},          {"pipeline", "16"},
              {"expert", "16"},         {"data", "16"},
              {"micro_batch", "1"},     {"virtual_stages", "1"},
              {"global_batch", "2048"}, {"seq_len", "4096"},
              {"precision", "fp8"},     {"zero", "1"}};
  CHECK(asked(run).plan.formats.low_precision_gather);
  run.plan["zero"] = "0";
  const models::Question question = asked(run);
  CHECK_FALSE(question.plan.formats.low_precision_gather);
  CHECK(question.plan.experts.dispatcher == models::Dispatcher::deepep);
}

TEST_CASE("Without a recipe of its time a run does what Megatron-Core does unasked") {
  MeasuredRun run = latent_run();
  run.release = "24.11";
  CHECK(asked(run).plan.experts.capacity == 0);
  CHECK(asked(run).plan.experts.tensor == 1);  // 64 x 2 does not divide the 64 ranks of a stage
  run.plan["expert"] = "32";
  CHECK(asked(run).plan.experts.tensor == 2);
}

TEST_CASE("A stack goes on with the recipes of the one that took its place") {
  // NeMo on H100 had all-to-alls that nothing hid; Megatron-Bridge of 25.11 hides them behind the
  // other micro-batch.
  MeasuredRun run = latent_run();
  run.family = "moe";
  run.hidden = 4096;
  run.heads = 64;
  run.kv_heads = 4;
  run.ffn_hidden = 1536;
  run.layers = 94;
  run.experts = 128;
  run.gpus = 256;
  run.plan = {{"tensor", "2"},          {"pipeline", "8"},   {"virtual_stages", "4"},
              {"expert", "32"},         {"data", "16"},      {"micro_batch", "1"},
              {"global_batch", "2048"}, {"seq_len", "4096"}, {"precision", "bf16"}};
  run.release = "25.08";
  CHECK(asked(run).plan.experts.overlap == models::ExpertOverlap::none);
  run.release = "25.12";
  CHECK(asked(run).plan.experts.overlap == models::ExpertOverlap::micro_batches);
}

TEST_CASE("A run's release is its column's, or the last in where it was published") {
  const auto release = [](const std::string& columns, const std::string& cells) {
    const std::string text =
        "run,source,software,family,layers,hidden,heads,seq_len,gpu,gpus,tp,pp,global_batch,"
        "step_time_s" +
        columns + "\none,arXiv 2402.15627,nemo,gpt,2,64,2,64,a100-sxm-80gb,1,1,1,1,1" + cells +
        "\n";
    return read_runs(Table::parse(text, "runs.csv")).front().release;
  };
  CHECK(release("", "").empty());
  CHECK(release(",source_location", ",grok1/README.md (v25.02..v25.04.02)") == "25.04.02");
  CHECK(release(",release,source_location", ",25.07,README.md (v25.02)") == "25.07");
}

TEST_CASE("Runs with experts are reported separately") {
  const std::vector<MeasuredRun> runs{latent_run()};
  const std::vector<RunResult> results = validate(runs, {});
  CHECK(results.front().apart == "mixture of experts");
  CHECK(results.front().simulated());
}

TEST_CASE("Experts of unknown sizes are on every layer of an ordinary decoder") {
  MeasuredRun run = latent_run();
  run.family = "moe";
  run.hidden = 1024;
  run.heads = 16;
  run.ffn_hidden = 512;
  run.experts = 64;
  run.plan["expert"] = "32";
  const models::Question question = asked(run);
  CHECK(usual_experts(question.model).count == 64);
  CHECK(!usual_attention(question.model).latents);
  CHECK(question.model.layers[0].experts() != nullptr);
}

}  // namespace
}  // namespace orrery::scenarios

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/software/recipes.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Json recipe_choice(const RecipeQuestion& asked, const std::string& key) {
  for (const RecipeChoice& each : recipe_of(asked)) {
    if (each.key == key) return each.value;
  }
  return nullptr;
}

TEST_CASE("A recipe decides by stack, task and sizes, not by a model's name") {
  Model model = catalogue_model("llama2-70b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h200 x 1");
  RecipeQuestion asked{
      .stack = "nemo-mlperf", .model = model, .gpu = cluster.gpu(), .task = Task::lora};
  CHECK(recipe_choice(asked, "lora_rank") == 16);
  CHECK(recipe_choice(asked, "lora_dropout") == true);
  CHECK(recipe_choice(asked, "sequence_lengths").is_null());
  CHECK(recipe_choice(asked, "low_precision_gather").is_null());
  asked.precision = Precision::fp8;
  CHECK(recipe_choice(asked, "low_precision_gather") == true);
  CHECK(recipe_choice(asked, "transpose_weights") == true);
  asked.precision = Plan{}.formats.precision;
  const std::size_t choices = recipe_of(asked).size();
  model.name = "another";
  CHECK(recipe_of(asked).size() == choices);
  asked.task = Task::pretrain;
  CHECK(recipe_choice(asked, "lora_rank").is_null());
  asked.task = Task::lora;
  asked.stack = "nemo";
  CHECK(recipe_choice(asked, "lora_rank") == 16);
  model.hidden = 4096;
  CHECK(recipe_choice(asked, "lora_rank") == 8);
}

TEST_CASE("What a stack runs again goes with the kind of recomputation that a plan names") {
  const Model model = catalogue_model("llama3-8b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 1");
  RecipeQuestion asked{.stack = "torchtitan", .model = model, .gpu = cluster.gpu()};
  // torchtitan pre-trains so unless the plan states otherwise.
  CHECK(recipe_choice(asked, "recompute") == "selective");
  CHECK(recipe_choice(asked, "fused_cross_entropy").is_null());
  asked.recompute = Recompute::selective;
  CHECK(recipe_choice(asked, "recompute_every") == 2);
  asked.recompute = Recompute::full;
  CHECK(recipe_choice(asked, "recompute_every").is_null());
  // What it calls fp8 has scales of each tensor's own numbers.
  CHECK(recipe_choice(asked, "precision").is_null());
  asked.precision = Precision::fp8;
  CHECK(recipe_choice(asked, "precision") == "fp8-current");
}

TEST_CASE("A rule up to a release does not hold for later ones, nor where none is known") {
  const Model model = catalogue_model("llama3-70b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-b200 x 1");
  RecipeQuestion asked{.stack = "megatron-bridge", .model = model, .gpu = cluster.gpu()};
  asked.precision = Precision::nvfp4;
  CHECK(recipe_choice(asked, "hadamard_pass").is_null());
  for (const auto& [release, own_pass] :
       {std::pair{Release{25, 11}, Json(true)}, std::pair{Release{26, 2, 1}, Json(true)},
        std::pair{Release{26, 4}, Json()}}) {
    asked.release = release;
    CHECK(recipe_choice(asked, "hadamard_pass") == own_pass);
  }
  asked.release = {26, 2};
  asked.precision = Precision::mxfp8;
  CHECK(recipe_choice(asked, "hadamard_pass").is_null());
}

/// Qwen3-30B on B200 as Megatron-Bridge runs it.
RecipeQuestion of_experts(const Model& model, const hardware::Cluster& cluster) {
  RecipeQuestion asked{.stack = "megatron-bridge", .model = model, .gpu = cluster.gpu()};
  asked.precision = Precision::mxfp8;
  asked.degrees.expert = 8;
  return asked;
}

TEST_CASE("A published recipe is found by sizes, GPU, degrees and release") {
  // 25.09 drops tokens after an all-to-all; from 25.11 on nothing is dropped, and 26.06 has
  // HybridEP.
  Model model = catalogue_model("qwen3-30b-a3b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-b200 x 1");
  RecipeQuestion asked = of_experts(model, cluster);
  asked.release = {25, 9};
  CHECK(recipe_choice(asked, "dispatcher") == "alltoall");
  CHECK(recipe_choice(asked, "capacity") == 1);
  asked.release = {25, 11};
  CHECK(recipe_choice(asked, "dispatcher") == "alltoall");
  CHECK(recipe_choice(asked, "capacity").is_null());
  asked.release = {26, 6};
  CHECK(recipe_choice(asked, "dispatcher") == "hybridep");
  CHECK(recipe_choice(asked, "permute_fusion") == true);
  const std::size_t choices = recipe_of(asked).size();
  model.name = "another";
  CHECK(recipe_of(asked).size() == choices);
  // Other sizes: what the stack does where no recipe says so.
  model = changed(model, [](ModelDraft& draft) { draft.mlp.width += 128; });
  CHECK(recipe_of(asked).size() == 2);
}

TEST_CASE("Fine-tuning in 16 bits has no masters where nothing is sharded") {
  const Model model = catalogue_model("mistral-7b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-a100-80gb x 1");
  RecipeQuestion asked{
      .stack = "huggingface", .model = model, .gpu = cluster.gpu(), .task = Task::sft};
  CHECK(recipe_choice(asked, "state_precision") == "pure");
  asked.zero = Zero::three;
  CHECK(recipe_choice(asked, "state_precision").is_null());
  asked.zero = Zero::none;
  asked.task = Task::pretrain;
  CHECK(recipe_choice(asked, "state_precision").is_null());
  // torchtune and AutoModel train the 16 bits in which they build a model, sharded or not.
  asked.stack = "torchtune";
  asked.task = Task::sft;
  asked.zero = Zero::three;
  CHECK(recipe_choice(asked, "state_precision") == "pure");
  for (const Task task : {Task::pretrain, Task::sft}) {
    asked.stack = "nemo-automodel";
    asked.task = task;
    asked.zero = Zero::two;
    CHECK(recipe_choice(asked, "state_precision") == "pure");
  }
}

TEST_CASE("A recipe is for its vendor's GPUs and for its own number of layers") {
  // MLPerf Training's configurations of Llama 2 70B with LoRA are NVIDIA's; one of them attends in
  // 8 bits. Rank and targets are the benchmark's.
  Model model = catalogue_model("llama2-70b");
  const auto choice = [&](const char* cluster, const char* key) {
    const hardware::Cluster on = hardware::named_cluster(cluster);
    RecipeQuestion asked{
        .stack = "nemo-mlperf", .model = model, .gpu = on.gpu(), .task = Task::lora};
    asked.precision = Precision::fp8;
    return recipe_choice(asked, key);
  };
  CHECK(choice("dgx-b200 x 1", "overlap") == false);
  CHECK(choice("mi300x-8x x 1", "overlap").is_null());
  CHECK(choice("mi300x-8x x 1", "low_precision_attention").is_null());
  CHECK(choice("mi300x-8x x 1", "lora_rank") == 16);
  // AMD's configuration of MI300X runs 21 layers again, that of MI325X none.
  CHECK(choice("mi300x-8x x 1", "recompute_layers") == 21);
  CHECK(choice("mi325x-8x x 1", "recompute_layers").is_null());
  model.layers.resize(40);
  CHECK(choice("mi300x-8x x 1", "recompute_layers").is_null());
  CHECK(choice("dgx-b200 x 1", "overlap").is_null());
}

TEST_CASE("Of recipes with the same degrees, the one of the asked global batch and GPUs is taken") {
  // NVIDIA-NeMo/Megatron-Bridge v0.4.0, Llama 3.1 405B in nvfp4 on GB200, TP 4 PP 16 VP 8: v1 (128
  // GPUs, batch 64) runs everything again, v2 (256, batch 1536) nothing.
  const Model model = catalogue_model("llama3.1-405b");
  const hardware::Cluster cluster = hardware::named_cluster("gb200-nvl72 x 4");
  RecipeQuestion asked{.stack = "megatron-bridge", .model = model, .gpu = cluster.gpu()};
  asked.precision = Precision::nvfp4;
  asked.degrees = {.tensor = 4, .pipeline = 16, .virtual_stages = 8};
  asked.release = {26, 4};
  asked.gpus = 128;
  asked.global_batch = 64;
  CHECK(recipe_choice(asked, "recompute") == "full");
  asked.gpus = 256;
  asked.global_batch = 1536;
  CHECK(recipe_choice(asked, "recompute") == "none");
}

TEST_CASE("FlagPerf's 7B shards its optimizer, without sequence parallelism or recomputation") {
  const Model model = catalogue_model("llama2-7b");
  const hardware::Cluster cluster = hardware::named_cluster("hgx-a800-80gb x 1");
  RecipeQuestion asked{.stack = "megatron-lm", .year = 2023, .model = model, .gpu = cluster.gpu()};
  CHECK(recipe_choice(asked, "zero") == 1);
  CHECK(recipe_choice(asked, "sequence") == false);
  CHECK(recipe_choice(asked, "recompute") == "none");
  asked.year = 2022;
  CHECK(recipe_choice(asked, "zero").is_null());
  asked.year = 2023;
  const hardware::Cluster other = hardware::named_cluster("dgx-a100-80gb x 1");
  const RecipeQuestion elsewhere{
      .stack = "megatron-lm", .year = 2023, .model = model, .gpu = other.gpu()};
  CHECK(recipe_choice(elsewhere, "zero").is_null());
}

TEST_CASE("AutoModel's models of experts run Transformer Engine's attention on Hopper") {
  const Model model = catalogue_model("qwen3-30b-a3b"), dense = catalogue_model("llama3-8b");
  const hardware::Cluster hopper = hardware::named_cluster("dgx-h100 x 1");
  RecipeQuestion asked{
      .stack = "nemo-automodel", .year = 2026, .model = model, .gpu = hopper.gpu()};
  CHECK(recipe_choice(asked, "attention") == "cudnn");
  CHECK(recipe_choice(asked, "dispatcher") == "deepep");
  CHECK(
      recipe_choice({.stack = "nemo-automodel", .year = 2026, .model = dense, .gpu = hopper.gpu()},
                    "attention")
          .is_null());
  const hardware::Cluster ampere = hardware::named_cluster("dgx-a100-80gb x 1");
  CHECK(
      recipe_choice({.stack = "nemo-automodel", .year = 2026, .model = model, .gpu = ampere.gpu()},
                    "dispatcher") == "deepep");
}

TEST_CASE("Tokens go to experts by DeepEP where the stacks of today do so") {
  const Model model = catalogue_model("qwen3-235b-a22b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 32");
  RecipeQuestion asked{
      .stack = "megatron-core", .year = 2025, .model = model, .gpu = cluster.gpu()};
  CHECK(recipe_choice(asked, "dispatcher") == "deepep");
  asked.year = 2024;
  CHECK(recipe_choice(asked, "dispatcher").is_null());
  const Model dense = catalogue_model("llama3-8b");
  CHECK(recipe_choice({.stack = "generic", .year = 2025, .model = dense, .gpu = cluster.gpu()},
                      "dispatcher")
            .is_null());
}

TEST_CASE("What a recipe does to fit its plan into memory is its own plan's alone") {
  const Model model = catalogue_model("qwen3-30b-a3b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-b200 x 1");
  RecipeQuestion asked = of_experts(model, cluster);
  CHECK_FALSE(recipe_choice(asked, "recompute").is_null());
  asked.degrees.context = 4;
  CHECK(recipe_choice(asked, "recompute").is_null());
  CHECK_FALSE(recipe_choice(asked, "dispatcher").is_null());
}

TEST_CASE("A published recipe that names no GPU and no precision holds for any") {
  // torchtitan's llama3_70b.toml, 8 tensor ranks, recomputes everything; its fp8 is a flag. The
  // stack's own rule is selective recomputation.
  const Model model = catalogue_model("llama3-70b");
  for (const char* name : {"dgx-h100 x 8", "dgx-b200 x 8"}) {
    const hardware::Cluster cluster = hardware::named_cluster(name);
    RecipeQuestion asked{.stack = "torchtitan", .model = model, .gpu = cluster.gpu()};
    asked.degrees.tensor = 8;
    for (const Precision each : {Precision::bf16, Precision::fp8_current, Precision::mxfp8}) {
      asked.precision = each;
      CHECK(recipe_choice(asked, "recompute") == "full");
    }
    asked.degrees.tensor = 4;
    CHECK(recipe_choice(asked, "recompute") == "selective");
  }
}

TEST_CASE("A published recipe of the asked GPU comes before one that names none") {
  // MLPerf Training 5.1, Llama 3.1 8B in fp8 on 8 GPUs: the first configuration without a GPU runs
  // no CUDA graphs, that of B200 does.
  const Model model = catalogue_model("llama3.1-8b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-b200 x 1");
  RecipeQuestion asked{.stack = "nemo-mlperf", .model = model, .gpu = cluster.gpu()};
  asked.precision = Precision::fp8;
  CHECK(recipe_choice(asked, "cuda_graphs") == true);
}

TEST_CASE("Attention in 8 bits is a recipe's own") {
  // MLPerf Training 5.1: the nvfp4 configuration of Llama 3.1 8B has fp8_dot_product_attention,
  // that of 405B has not.
  const hardware::Cluster cluster = hardware::named_cluster("dgx-b200 x 1");
  const auto asked = [&](const Model& model) {
    RecipeQuestion question{.stack = "nemo-mlperf", .model = model, .gpu = cluster.gpu()};
    question.precision = Precision::nvfp4;
    return recipe_choice(question, "low_precision_attention");
  };
  CHECK(asked(catalogue_model("llama3.1-8b")) == true);
  CHECK(asked(catalogue_model("llama3.1-405b")).is_null());
}

TEST_CASE("MLPerf's LoRA on H200 keeps activation inputs in 8 bits, on GB200 it overlaps nothing") {
  const Model model = catalogue_model("llama2-70b");
  const auto choice = [&](const char* cluster, const RecipeDegrees& degrees, const char* key) {
    const hardware::Cluster on = hardware::named_cluster(cluster);
    return recipe_choice({.stack = "nemo-mlperf",
                          .model = model,
                          .gpu = on.gpu(),
                          .task = Task::lora,
                          .precision = Precision::fp8,
                          .degrees = degrees,
                          .release = {25, 4}},
                         key);
  };
  CHECK(choice("dgx-h200 x 1", {2, 1, 1, 1, 1}, "low_precision_activation") == true);
  CHECK(choice("dgx-h200 x 1", {4, 1, 1, 1, 1}, "low_precision_activation").is_null());
  CHECK(choice("dgx-h200 x 1", {2, 1, 1, 1, 1}, "overlap").is_null());
  CHECK(choice("gb200-nvl72 x 1", {1, 1, 1, 8, 1}, "overlap") == false);
}

TEST_CASE("Reductions and gathers overlap as the recipe of a release says") {
  // Megatron-Bridge: Kimi-K2 gathers parameters at the end of the step, DeepSeek-V3 on H100
  // reduces gradients after backward, and v0.2.0 gathers nothing ahead in mxfp8.
  const auto choices = [](const char* name, const char* cluster, RecipeDegrees degrees,
                          Precision precision, Release release) {
    const Model model = catalogue_model(name);
    const hardware::Cluster on = hardware::named_cluster(cluster);
    const RecipeQuestion asked{.stack = "megatron-bridge",
                               .model = model,
                               .gpu = on.gpu(),
                               .precision = precision,
                               .degrees = degrees,
                               .release = std::move(release)};
    return std::pair{recipe_choice(asked, "overlap"), recipe_choice(asked, "overlap_gather")};
  };
  CHECK(choices("kimi-k2", "gb300-nvl72 x 4", {1, 4, 4, 1, 64}, Precision::mxfp8, {26, 4}) ==
        std::pair{Json(), Json(false)});
  CHECK(choices("deepseek-v3", "dgx-h100 x 128", {2, 8, 4, 1, 64}, Precision::bf16, {26, 2}) ==
        std::pair{Json(false), Json(true)});
  for (const auto& [release, gathers] :
       {std::pair{Release{25, 11}, Json(false)}, std::pair{Release{26, 2}, Json()}}) {
    CHECK(choices("llama3-70b", "gb200-nvl72 x 1", {2, 4, 5, 1, 1}, Precision::mxfp8, release) ==
          std::pair{Json(), gathers});
  }
}

TEST_CASE("Megatron-Bridge sends tokens by HybridEP on Blackwell since 2026") {
  const Model super = catalogue_model("nemotron-3-super-120b-a12b");
  Model other = super;
  other.hidden = 3072;
  const auto dispatcher = [](const Model& model, const char* cluster, int year,
                             const char* stack = "megatron-bridge") {
    const hardware::Cluster on = hardware::named_cluster(cluster);
    return recipe_choice({.stack = stack,
                          .year = year,
                          .model = model,
                          .gpu = on.gpu(),
                          .precision = Precision::mxfp8,
                          .degrees = {1, 1, 1, 1, 64},
                          .release = last_release_of(year)},
                         "dispatcher");
  };
  CHECK(dispatcher(super, "dgx-b200 x 8", 2026) == "hybridep");
  CHECK(dispatcher(other, "dgx-b200 x 8", 2026) == "hybridep");
  CHECK(dispatcher(other, "gb300-nvl72 x 1", 2026) == "hybridep");
  CHECK(dispatcher(other, "gb300-nvl72 x 1", 2025).is_null());
  CHECK(dispatcher(other, "dgx-h100 x 8", 2026).is_null());
  CHECK(dispatcher(other, "dgx-b200 x 8", 2026, "nemo").is_null());
}

TEST_CASE("torchtitan's nvfp4 keeps the last 15 % of the layers in bf16") {
  const hardware::Cluster cluster = hardware::named_cluster("dgx-b200 x 1");
  const auto wide = [&](std::int64_t layers, Precision precision) {
    Model model = catalogue_model("llama3-8b");
    model.layers.resize(layers);
    return recipe_choice(
        {.stack = "torchtitan", .model = model, .gpu = cluster.gpu(), .precision = precision},
        "end_layers_bf16");
  };
  CHECK(wide(32, Precision::nvfp4) == 5);
  CHECK(wide(36, Precision::nvfp4) == 6);
  CHECK(wide(36, Precision::mxfp8).is_null());
}

TEST_CASE("Kimi-K2's sizes train with Muon, DeepSeek-V3's do not") {
  const hardware::Cluster cluster = hardware::named_cluster("gb300-nvl72 x 4");
  const auto optimizer = [&](const char* name) {
    Model model = catalogue_model(name);
    model.name = "another";
    return recipe_choice({.stack = "megatron-bridge", .model = model, .gpu = cluster.gpu()},
                         "optimizer");
  };
  CHECK(optimizer("kimi-k2") == "muon");
  CHECK(optimizer("deepseek-v3").is_null());
}

TEST_CASE("MLPerf's Llama 3.1 405B puts pipeline stages next to each other on GB200, not on H100") {
  // use_tp_pp_dp_mapping of MLPerf Training 5.0 and 5.1
  const Model model = catalogue_model("llama3.1-405b");
  const auto order = [&](const char* cluster, std::int64_t tensor) {
    const hardware::Cluster on = hardware::named_cluster(cluster);
    return recipe_choice({.stack = "nemo-mlperf",
                          .model = model,
                          .gpu = on.gpu(),
                          .precision = Precision::fp8,
                          .degrees = {tensor, 8, 8, 2, 1}},
                         "rank_order");
  };
  CHECK(order("gb200-nvl72 x 8", 4) == "tp-cp-ep-pp-dp");
  CHECK(order("dgx-h100 x 64", 8).is_null());
}

TEST_CASE("DeepSeek-V3 on H100 recomputes its experts from v25.08 on") {
  const Model model = catalogue_model("deepseek-v3");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 128");
  RecipeQuestion asked{.stack = "nemo",
                       .model = model,
                       .gpu = cluster.gpu(),
                       .degrees = {1, 8, 2, 1, 64},
                       .release = {25, 8}};
  CHECK(recipe_choice(asked, "recompute_modules") == Json{"mla_up_proj", "mlp", "moe"});
  asked.release = {25, 7};
  CHECK(recipe_choice(asked, "recompute_modules") != Json{"mla_up_proj", "mlp", "moe"});
}

TEST_CASE("A recipe's cut of layers into chunks is for its own degrees") {
  const Model model = catalogue_model("deepseek-v3");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 128");
  RecipeQuestion asked{.stack = "nemo",
                       .model = model,
                       .gpu = cluster.gpu(),
                       .degrees = {2, 8, 1, 1, 64},
                       .release = {25, 5, 5}};
  // The first stage has the embedding, the last one the head and the prediction layer (MTP).
  CHECK(recipe_choice(asked, "stage_layers") == Json{7, 8, 8, 8, 8, 8, 8, 6});
  asked.degrees = {2, 16, 1, 1, 64};
  CHECK(recipe_choice(asked, "stage_layers") ==
        Json{3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2});
  asked.degrees = {2, 4, 1, 1, 64};
  CHECK(recipe_choice(asked, "stage_layers").is_null());
  const Model dense = catalogue_model("llama3.1-405b");
  RecipeQuestion ends{.stack = "nemo", .model = dense, .gpu = cluster.gpu()};
  ends.degrees = {8, 8, 8, 2, 1};
  ends.release = {25, 5, 5};
  CHECK(recipe_choice(ends, "embedding_counts") == true);
  ends.degrees = {8, 9, 7, 2, 1};  // 126 layers on 63 chunks
  CHECK(recipe_choice(ends, "embedding_counts").is_null());
}

TEST_CASE("A recipe's attention kernel is that of its release") {
  // DGX Cloud ran GPT-3 and Grok-1 with NVTE_FUSED_ATTN=0, GPT-3 up to v25.01.1, Grok-1 up to
  // v25.04.02.
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 16");
  const auto kernel = [&](const std::string& name, const Release& release) {
    const Model model = catalogue_model(name);
    return recipe_choice(
        {.stack = "nemo", .model = model, .gpu = cluster.gpu(), .release = release}, "attention");
  };
  CHECK(kernel("gpt3-175b", {25, 1, 1}) == "flash-2");
  CHECK(kernel("gpt3-175b", {25, 3}) == "cudnn");
  CHECK(kernel("grok-1", {25, 1, 1}) == "flash-2");
  CHECK(kernel("grok-1", {25, 4, 2}) == "flash-2");
  CHECK(kernel("grok-1", {25, 5, 1}).is_null());
}

TEST_CASE("Recipes in nvfp4 overlap nothing in their tensor groups, those in fp8 do") {
  const Model model = catalogue_model("llama3.1-405b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-b200 x 16");
  RecipeQuestion asked{.stack = "megatron-bridge",
                       .model = model,
                       .gpu = cluster.gpu(),
                       .degrees = {4, 16, 8, 1, 1},
                       .release = {26, 2}};
  asked.precision = Precision::nvfp4;
  CHECK(recipe_choice(asked, "tensor_overlap") == false);
  asked.precision = Precision::fp8;
  CHECK(recipe_choice(asked, "tensor_overlap").is_null());
}

TEST_CASE("A plan that states its recomputation takes no other from a recipe") {
  const Model model = catalogue_model("gpt-oss-120b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-b200 x 8");
  RecipeQuestion asked = of_experts(model, cluster);
  asked.precision = Precision::bf16;
  const auto modules_taken = [&](bool stated) {
    Plan plan;
    const auto taken = take_recipe(
        asked, [&](std::string_view key) { return stated && key == "recompute"; }, plan);
    return std::any_of(taken.begin(), taken.end(),
                       [](const auto& each) { return each.key == "recompute_modules"; });
  };
  CHECK(modules_taken(false));
  CHECK_FALSE(modules_taken(true));
}

TEST_CASE("What a plan states stays, what it leaves open is taken with its source") {
  const Model model = catalogue_model("llama2-70b");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h200 x 1");
  const RecipeQuestion asked{
      .stack = "nemo-mlperf", .model = model, .gpu = cluster.gpu(), .task = Task::lora};
  Plan plan;
  plan.task = Task::lora;
  plan.adapters.rank = 64;
  const auto taken = take_recipe(
      asked, [](std::string_view key) { return key == "lora_rank"; }, plan);
  CHECK(plan.adapters.rank == 64);
  CHECK(plan.adapters.dropout);
  REQUIRE_FALSE(taken.empty());
  CHECK(assumption_of(taken.front(), "nemo-mlperf").rfind("/plan/lora_targets: ", 0) == 0);
}

TEST_CASE("A stated cut of layers, by either key, replaces a recipe's") {
  const Model model = catalogue_model("deepseek-v3");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 64");
  const RecipeQuestion asked{.stack = "nemo",
                             .model = model,
                             .gpu = cluster.gpu(),
                             .degrees = {2, 8, 1, 1, 64},
                             .release = {25, 5, 5}};
  for (const std::string_view key : {"", "stage_layers", "embedding_counts"}) {
    Plan plan;
    take_recipe(
        asked, [&](std::string_view each) { return each == key; }, plan);
    CHECK(plan.stages.layers.empty() == !key.empty());
  }
}

TEST_CASE("A recipe says which layers of few bits stay in bf16, and which products it repeats") {
  const Model small = catalogue_model("gpt-oss-20b");
  const hardware::Cluster rack = hardware::named_cluster("gb200-nvl72 x 1");
  RecipeQuestion asked{.stack = "megatron-bridge",
                       .model = small,
                       .gpu = rack.gpu(),
                       .precision = Precision::nvfp4,
                       .degrees = {1, 1, 1, 2, 4}};
  CHECK(recipe_choice(asked, "end_layers_bf16") == 4);
  asked.precision = Precision::mxfp8;
  CHECK(recipe_choice(asked, "end_layers_bf16").is_null());
  const Model large = catalogue_model("deepseek-v3");
  const hardware::Cluster cluster = hardware::named_cluster("dgx-b200 x 32");
  const RecipeQuestion latents{.stack = "megatron-bridge",
                               .model = large,
                               .gpu = cluster.gpu(),
                               .degrees = {1, 16, 1, 1, 8}};
  CHECK(recipe_choice(latents, "recompute") == "selective");
  CHECK(recipe_choice(latents, "recompute_modules") == Json{"mla_up_proj"});
}

}  // namespace
}  // namespace orrery::models

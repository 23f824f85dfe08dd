#include "scenarios/search/space/plan_space.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "models/model/counts.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/fields.hpp"
#include "scenarios/search/space/plan_values.hpp"
#include "tests/models/questions.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {

namespace {

/// Two GPUs, 4 layers, 2 heads, 2 sequences of 8 tokens.
PlanQuery tiny(Breadth breadth) {
  PlanQuery query;
  query.model = models::tiny_gpt(4);
  query.software = models::plain_software();
  query.cluster = hardware::named_cluster("dgx-a100-80gb");
  query.cluster.node.gpus = 2;
  query.global_batch = 2;
  query.seq_len = 8;
  query.breadth = breadth;
  return query;
}

std::vector<std::string> words_of_all(const PlanSpace& space) {
  std::vector<std::string> words;
  for (const PlacedPlan& each : space.plans) words.push_back(models::title_of(each.plan));
  return words;
}

}  // namespace

TEST_CASE("All plans of two GPUs, counted by hand") {
  // TP1 PP1 DP2: micro-batch 1; ZeRO-1 off, on; three recomputations          6
  // TP1 PP2 DP1: 1 chunk a stage, micro-batch 1, 2; three recomputations      6
  //              2 chunks, micro-batch 1 (2 micro-batches, as many as stages)  3
  //              2 chunks, micro-batch 2: one micro-batch for two stages       3 ruled out
  // TP2 PP1 DP1: micro-batch 1, 2; sequence off, on; three recomputations    12
  const PlanSpace space = enumerate_plans(tiny(Breadth::full));
  CHECK(space.plans.size() == 27);
  CHECK(space.conflicting == 3);
  std::vector<std::string> words = words_of_all(space);
  CHECK(words.front() == "TP 1 · PP 1 · DP 2 · micro-batch 1 · recompute none");
  CHECK(words.back() == "TP 2 + SP · PP 1 · DP 1 · micro-batch 2 · recompute full");
  std::sort(words.begin(), words.end());
  CHECK(std::adjacent_find(words.begin(), words.end()) == words.end());
}

TEST_CASE("The reduced list has the switches on wherever they apply") {
  // DP2 with ZeRO-1: 3; PP2: 6 and 3 in two chunks; TP2 with SP: 6.
  const PlanSpace space = enumerate_plans(tiny(Breadth::reduced));
  CHECK(space.plans.size() == 18);
  CHECK(space.conflicting == 3);
  for (const PlacedPlan& each : space.plans) {
    CHECK(each.plan.sequence_parallel == (each.plan.tensor > 1));
    CHECK((each.plan.sharding.zero == models::Zero::one) == (each.plan.data > 1));
  }
}

TEST_CASE("The ZeRO stages of the stack are tried, those that share gradients without a pipeline") {
  // DP2 alone has data parallelism: four stages instead of two are 6 plans more, and 3 keep the
  // weights that ZeRO-3 gathers.
  PlanQuery query = tiny(Breadth::full);
  query.software.runs.zero = {models::Zero::none, models::Zero::one, models::Zero::two,
                              models::Zero::three};
  CHECK(enumerate_plans(query).plans.size() == 27 + 9);
  CHECK(enumerate_plans(query).conflicting == 3);
  query.cluster.node.gpus = 4;
  query.global_batch = 4;
  bool shares = false, pipelines = false;
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    const bool sharded = models::shards_gradients(each.plan);
    shares = shares || sharded;
    pipelines = pipelines || (each.plan.pipeline > 1 && each.plan.data > 1);
    if (sharded) CHECK(each.plan.pipeline == 1);
  }
  CHECK((shares && pipelines));
  // FSDP alone: ZeRO-1 is nothing that it has.
  query.software.runs.zero = {models::Zero::three};
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    CHECK(each.plan.sharding.zero ==
          (each.plan.data > 1 ? models::Zero::three : models::Zero::none));
  }
}

TEST_CASE("Gradients and parameters are sharded in a pipeline where the stack does so") {
  PlanQuery query = tiny(Breadth::full);
  query.software.runs.zero = {models::Zero::none, models::Zero::one, models::Zero::two,
                              models::Zero::three};
  query.cluster.node.gpus = 4;
  query.global_batch = 4;
  const auto sharded_stages = [&] {
    std::set<models::Zero> found;
    for (const PlacedPlan& each : enumerate_plans(query).plans) {
      if (each.plan.pipeline > 1) found.insert(each.plan.sharding.zero);
    }
    return found;
  };
  CHECK(sharded_stages() == std::set<models::Zero>{models::Zero::none, models::Zero::one});
  query.software.runs.shards_in_pipelines = true;
  CHECK(sharded_stages() == std::set<models::Zero>{models::Zero::none, models::Zero::one,
                                                   models::Zero::two, models::Zero::three});
  query.breadth = Breadth::reduced;
  CHECK(sharded_stages() == std::set<models::Zero>{models::Zero::none, models::Zero::one});
}

TEST_CASE("FSDP is tried inside nodes, and with state on the host where it does not fit") {
  // 8 GPUs in nodes of 2 without tensor parallelism: shards over all 8 or 2, copies on the others.
  PlanQuery query = tiny(Breadth::full);
  query.software.runs.zero = {models::Zero::three};
  query.software.runs.tensor = query.software.runs.pipeline = false;
  query.cluster.nodes = 4;
  query.global_batch = 8;
  std::set<std::int64_t> shards;
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    shards.insert(each.plan.data_shards());
    CHECK(each.plan.offload.state == models::Offload::none);
  }
  CHECK(shards == std::set<std::int64_t>{2, 8});
  query.cluster.node.gpu.memory = 1_KiB;
  std::set<models::Offload> offloads;
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    offloads.insert(each.plan.offload.state);
  }
  // Without the state, the shards of weights do not fit either.
  CHECK(offloads == std::set<models::Offload>{models::Offload::none, models::Offload::optimizer,
                                              models::Offload::parameters});
}

TEST_CASE("A stack that cuts no layers and has no pipeline is searched without them") {
  PlanQuery query = tiny(Breadth::full);
  query.software.runs.tensor = query.software.runs.pipeline = false;
  const PlanSpace space = enumerate_plans(query);
  CHECK(space.plans.size() == 6);
  for (const PlacedPlan& each : space.plans) CHECK(each.plan.data == 2);
}

TEST_CASE("Long sequences are cut over context ranks only where attention is one fused kernel") {
  // The generic stack has no fused kernel on V100, and no stack has one for fp32.
  const auto cuts = [](const std::string& cluster, models::Precision precision,
                       models::AttentionKernel kernel = models::AttentionKernel::of_stack) {
    PlanQuery query;
    query.fixed.kernels.attention = kernel;
    query.model = models::catalogue_model("llama3-8b");
    query.software = models::catalogue_software("generic");
    query.cluster = hardware::named_cluster(cluster);
    query.precision = precision;
    query.global_batch = 8;
    query.seq_len = 8192;
    query.breadth = Breadth::reduced;
    const PlanSpace space = enumerate_plans(query);
    return std::any_of(space.plans.begin(), space.plans.end(),
                       [](const PlacedPlan& each) { return each.plan.context > 1; });
  };
  CHECK(cuts("dgx-h100 x 1", models::Precision::bf16));
  CHECK(cuts("l40s-8x x 1", models::Precision::bf16));
  CHECK_FALSE(cuts("dgx-2 x 1", models::Precision::fp16));
  CHECK_FALSE(cuts("dgx-h100 x 1", models::Precision::fp32));
  CHECK_FALSE(cuts("dgx-h100 x 1", models::Precision::bf16, models::AttentionKernel::unfused));
}

TEST_CASE("A batch that no degree divides has no plan") {
  // Three sequences on two GPUs of which pipelines and tensor groups are ruled out.
  PlanQuery query = tiny(Breadth::full);
  query.global_batch = 3;
  query.model = models::changed(query.model, [](models::ModelDraft& draft) {
    draft.attention.heads = draft.attention.kv_heads = 1;
    draft.attention.head_dim = 8;
    draft.depth = 1;
  });
  CHECK(enumerate_plans(query).plans.empty());
}

TEST_CASE("Parts of a cluster are whole nodes: multiples of 2, 4, 8 and halves") {
  PlanQuery query = tiny(Breadth::reduced);
  query.cluster.nodes = 6;
  query.global_batch = 12;
  std::vector<int> nodes;
  for (const PlacedPlan& each : enumerate_plans(query, Extent::fewer_nodes).plans) {
    CHECK(each.plan.gpus() == 2 * each.nodes);
    if (nodes.empty() || nodes.back() != each.nodes) nodes.push_back(each.nodes);
  }
  CHECK(nodes == std::vector<int>{6, 4, 3});
  std::set<int> used;
  for (const PlacedPlan& each : enumerate_plans(query).plans) used.insert(each.nodes);
  CHECK(used == std::set<int>{4, 6});  // up to half of the nodes idle, where that helps
  query.cluster.nodes = 4;
  for (const PlacedPlan& each : enumerate_plans(query).plans) CHECK(each.nodes == 4);
}

TEST_CASE("The stack's rule for embedding and head holds for pipelines only") {
  PlanQuery query = tiny(Breadth::full);
  query.software.embedding_counts = true;
  query.model.layers.resize(6);
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    CHECK(each.plan.stages.embedding_counts == (each.plan.pipeline > 1));
    // 8 slots: 2 and 4 chunks a stage cut them evenly, 3 do not.
    CHECK((each.plan.stages.virtual_stages == 1 || each.plan.stages.virtual_stages == 2));
  }
}

TEST_CASE("Virtual stages cut evenly, be embedding and head counted or not") {
  // 6 layers on 2 stages: in 6 chunks of one; in 4 of 1, 2, 2, 1; not in 8 or 12.
  PlanQuery query = tiny(Breadth::full);
  query.model.layers.resize(6);
  std::vector<std::int64_t> found;
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    if (each.plan.pipeline == 1) continue;
    CHECK(!each.plan.stages.embedding_counts);
    if (found.empty() || found.back() != each.plan.stages.virtual_stages) {
      found.push_back(each.plan.stages.virtual_stages);
    }
  }
  CHECK(found == std::vector<std::int64_t>{1, 2, 3});
}

TEST_CASE("Sizes alone never claim more memory than a plan needs") {
  for (PlanQuery query :
       {plan_query("gpt2", "dgx-a100-80gb", 16, 1024), plan_query("llama3-8b", "dgx-h100", 8, 2048),
        plan_query("bert-large", "dgx-a100-80gb", 8, 512)}) {
    query.software.runs.zero = {models::Zero::none, models::Zero::one, models::Zero::two,
                                models::Zero::three};
    std::size_t close = 0;
    for (const PlacedPlan& each : enumerate_plans(query).plans) {
      INFO(query.model.name << ": " << models::title_of(each.plan));
      const Bytes least = least_memory(query, each.plan);
      const Bytes whole = models::estimate(question_of(query, each)).memory;
      CHECK(least <= whole);
      close += least * 2 > whole ? 1 : 0;
    }
    CHECK(close > 0);  // and it is a bound that says something
  }
}

TEST_CASE("Experts are searched over ranks, and sizes alone never claim more than they need") {
  PlanQuery query = plan_query("mixtral-8x7b", "dgx-h100", 8, 2048);
  query.model.layers.resize(8);
  query.model.parameters = models::count_parameters(query.model);
  std::vector<std::int64_t> tried;
  bool cut = false;
  for (const PlacedPlan& each : enumerate_plans(query).plans) {
    INFO(models::title_of(each.plan));
    CHECK(least_memory(query, each.plan) <= models::estimate(question_of(query, each)).memory);
    tried.push_back(each.plan.experts.ranks);
    cut = cut || each.plan.experts.tensor > 1;
  }
  std::sort(tried.begin(), tried.end());
  tried.erase(std::unique(tried.begin(), tried.end()), tried.end());
  CHECK(tried == std::vector<std::int64_t>{1, 2, 4, 8});
  CHECK(cut);
}

TEST_CASE("What no plan can help is refused with its pointer") {
  PlanQuery query = tiny(Breadth::full);
  CHECK(!refusal(query));
  query.seq_len = 9;  // of 8 positions
  REQUIRE(refusal(query));
  CHECK(refusal(query)->pointer == "/plan/seq_len");
  CHECK(refusal(query)->problem == "seq_len 9 is longer than the model's 8 learned positions");

  query = tiny(Breadth::full);
  query.precision = models::Precision::fp8;
  REQUIRE(refusal(query));
  CHECK(refusal(query)->pointer == "/plan/precision");
  CHECK(refusal(query)->problem == "a100-sxm-80gb does not support fp8");

  query = tiny(Breadth::full);
  query.model.not_simulated = "too strange";
  REQUIRE(refusal(query));
  CHECK(refusal(query)->pointer == "/model");
  CHECK(refusal(query)->problem == "too strange");
}

TEST_CASE("A quarter, a half and three quarters of a chunk's layers recompute in full") {
  PlanQuery query = plan_query("gpt3-175b", "dgx-a100-80gb x 16", 128, 2048, Breadth::full);
  models::Plan plan = first_plan(query);
  plan.pipeline = 8;  // 12 layers each
  plan.data = 16;
  plan.recompute.kind = models::Recompute::full;
  const auto tried = [&] {
    std::vector<std::int64_t> layers;
    for (const models::Plan& each : partly_recomputed(query, plan)) {
      CHECK(each.recompute.kind == models::Recompute::full);
      CHECK(each.pipeline == plan.pipeline);
      layers.push_back(each.recompute.layers);
    }
    return layers;
  };
  CHECK(tried() == std::vector<std::int64_t>{3, 6, 9});
  plan.pipeline = 48;  // 2 layers each
  CHECK(tried() == std::vector<std::int64_t>{1});
  plan.pipeline = 96;
  CHECK(tried().empty());
  plan.pipeline = 8;
  query.excluded = {{"recompute_layers", 6}};
  CHECK(tried() == std::vector<std::int64_t>{3, 9});
  plan.recompute.every = 2;
  CHECK(tried().empty());
  plan.recompute = {};
  plan.recompute.kind = models::Recompute::selective;
  CHECK(tried().empty());
  plan.recompute.kind = models::Recompute::full;
  query.stated = {"recompute_layers"};
  CHECK(tried().empty());
  query.stated.clear();
  query.breadth = Breadth::reduced;
  CHECK(tried().empty());
}

namespace {

/// The sets of modules that a search tries for a plan that recomputes core_attn.
std::set<std::string> module_sets(const PlanQuery& query) {
  models::Plan plan = first_plan(query);
  plan.recompute.kind = models::Recompute::selective;
  plan.data = query.cluster.gpus();
  std::set<std::string> found;
  for (const models::Plan& each : with_other_modules(query, plan)) {
    CHECK(each.recompute.kind == models::Recompute::selective);
    found.insert(text_in(models::plan_field("recompute_modules"), each));
  }
  return found;
}

PlanQuery megatron_core(const std::string& model) {
  PlanQuery query = plan_query(model, "dgx-h100 x 2", 128, 4096, Breadth::full);
  query.software = models::catalogue_software("megatron-core");
  return query;
}

}  // namespace

TEST_CASE("Selective recomputation is tried with every set of the modules that a model has") {
  PlanQuery query = megatron_core("llama3-8b");
  CHECK(module_sets(query) == std::set<std::string>{R"(["core_attn","layernorm"])",
                                                    R"(["core_attn","layernorm","mlp"])",
                                                    R"(["core_attn","mlp"])", R"(["layernorm"])",
                                                    R"(["layernorm","mlp"])", R"(["mlp"])"});
  query.excluded = {{"recompute_modules", Json::array({"layernorm", "mlp"})}};
  CHECK(module_sets(query).size() == 5);
  query.software.runs.recompute_modules = {models::RecomputeModule::core_attn,
                                           models::RecomputeModule::mlp};
  CHECK(module_sets(query) == std::set<std::string>{R"(["core_attn","mlp"])", R"(["mlp"])"});
  query.stated = {"recompute_modules"};
  CHECK(module_sets(query).empty());
  query.stated.clear();
  query.breadth = Breadth::reduced;
  CHECK(module_sets(query).empty());
  query =
      plan_query("llama3-8b", "dgx-h100 x 2", 128, 4096, Breadth::full);  // its profile has none
  CHECK(module_sets(query).empty());

  // Attention and norms, each or not, times no experts, their activation, or all of them; but for
  // the empty set and the plan's own.
  CHECK(module_sets(megatron_core("mixtral-8x7b")).size() == 2 * 2 * 3 - 2);
  CHECK(module_sets(megatron_core("deepseek-v3")).size() == 2 * 2 * 2 * 3 - 2);
}

}  // namespace orrery::scenarios

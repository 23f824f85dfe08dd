#include "scenarios/exchange/export.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <sstream>

#include "models/plan/conflicts.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/fields.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "scenarios/exchange/facts.hpp"
#include "scenarios/exchange/import.hpp"
#include "scenarios/exchange/meanings.hpp"
#include "tests/models/questions.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

/// Random plans for a tool: of every kind, of those that FSDP and DeepSpeed run, or of those of
/// 2022.
enum class PlanKinds : std::uint8_t { all, sharded, early };

/// A plan of random fields; nothing if it cannot be lowered.
/// stated  receives them
std::optional<models::Question> random_question(std::mt19937& random, const std::string& model,
                                                const std::string& software, PlanKinds kinds,
                                                Json* stated = nullptr) {
  const auto one_of = [&](std::vector<Json> values) { return values[random() % values.size()]; };
  const bool sharded = kinds == PlanKinds::sharded;
  const auto sometimes = [&] { return random() % (sharded ? 12 : 3) == 0; };
  Json plan = Json::object();
  plan["tensor"] = one_of({1, 2, 4, 8});
  plan["pipeline"] = one_of({1, 1, 2, 4});
  plan["context"] = one_of({1, 1, 1, 2});
  plan["zero"] = one_of({0, 1, 1, 2, 3});
  plan["micro_batch"] = one_of({1, 2, 4});
  plan["global_batch"] = one_of({64, 128, 256});
  plan["seq_len"] = one_of({2048, 4096, 8192});
  plan["precision"] =
      one_of({"bf16", "bf16", "fp16", "fp32", "fp8", "fp8-current", "fp8-block", "mxfp8"});
  plan["recompute"] = one_of({"none", "selective", "full"});
  if (plan["tensor"] != 1) plan["sequence"] = one_of({true, false});
  if (plan["context"] != 1)
    plan["context_form"] = one_of({"ring", "all-gather", "ulysses", "contiguous"});
  if (plan["pipeline"] != 1 && sometimes()) plan["virtual_stages"] = 2;
  if (plan["pipeline"] != 1) plan["embedding_counts"] = one_of({true, false});
  if (plan["pipeline"] == 2 && sometimes()) plan["stage_layers"] = Json({15, 17});
  if (plan["pipeline"] == 2 && sometimes()) plan["deferred_head_gradients"] = 4;
  if (plan["recompute"] == "full" && sometimes()) plan["recompute_layers"] = 2;
  if (plan["recompute"] == "full" && sometimes()) plan["recompute_every"] = 2;
  if (plan["recompute"] == "selective")
    plan["recompute_modules"] = one_of({Json({"core_attn"}), Json({"layernorm", "mlp"})});
  if (plan["zero"] != 0) plan["overlap_gather"] = one_of({true, false});
  if (plan["zero"] == 3 && sometimes()) plan["reshard"] = false;
  if (plan["zero"] == 3 && sometimes()) plan["data_shard"] = 2;
  if (plan["zero"] == 3 && sometimes()) plan["prefetch"] = 2;
  if (sometimes()) plan["offload"] = one_of({"optimizer", "parameters"});
  if (sometimes()) plan["moments"] = one_of({"bf16", "int8"});
  if (sometimes()) plan["bucket"] = one_of({"40 MB", "100 MB"});
  if (sometimes()) plan["fused_cross_entropy"] = true;
  if (sometimes()) plan["attention"] = one_of({"flash-2", "unfused", "cudnn"});
  if (sometimes()) plan["cuda_graphs"] = true;
  if (sometimes()) plan["tensor_overlap"] = one_of({true, false});
  if (sometimes()) plan["rank_order"] = "tp-cp-ep-pp-dp";
  if (sometimes()) plan["start_layers_bf16"] = 1;
  if (sometimes()) plan["offload_layers"] = 2;
  plan["overlap"] = one_of({true, true, false});
  if (sharded) {
    plan["tensor"] = one_of({1, 1, 2});
    plan["pipeline"] = plan["context"] = 1;
    plan["zero"] = one_of({0, 1, 2, 3, 3, 3});
    plan["precision"] = one_of({"bf16", "fp16", "bf16", "fp8-current"});
    plan["recompute"] = one_of({"none", "full"});
    if (sometimes()) plan["offload"] = "parameters";
    plan["overlap"] = true;
    for (const char* field :
         {"sequence", "context_form", "virtual_stages", "embedding_counts", "stage_layers",
          "recompute_modules", "overlap_gather", "deferred_head_gradients", "rank_order"}) {
      plan.erase(field);
    }
  }
  if (kinds == PlanKinds::early) {
    const bool sharded_state = plan["zero"] == 1;
    const Json kept = plan;
    plan = {{"overlap", false}, {"context", 1}, {"zero", sharded_state ? 1 : 0}};
    if (sharded_state) plan["overlap_gather"] = false;
    for (const char* field : {"tensor", "sequence", "pipeline", "virtual_stages", "micro_batch",
                              "global_batch", "seq_len", "recompute", "recompute_layers"}) {
      if (kept.contains(field)) plan[field] = kept[field];
    }
    plan["precision"] = one_of({"bf16", "fp16", "fp32"});
    if (sometimes()) plan["attention"] = "flash-2";
    // Now and then something that came later.
    if (sometimes() && sometimes()) plan["moments"] = "bf16";
    if (sometimes() && sometimes()) plan["precision"] = "fp8";
    if (sometimes() && sometimes()) plan["overlap"] = true;
  }
  models::Question question;
  question.model = models::catalogue_model(model);
  question.cluster = hardware::named_cluster("dgx-h100 x 4");
  question.software = models::catalogue_software(software);
  if (usual_experts(question.model).count > 0) {
    plan["expert"] = one_of({1, 2, 4, 8});
    plan["dispatcher"] = one_of({"alltoall", "deepep", "hybridep"});
    plan["permute_fusion"] = one_of({true, false});
    if (sometimes()) plan["capacity"] = 1.25;
    if (sometimes()) plan["expert_overlap"] = "shared";
  }
  if (stated != nullptr) *stated = plan;
  try {
    const Document document = Document::from(plan, "plan");
    question.plan = models::read_plan(document.root(), question.model, question.cluster.gpus(),
                                      question.assumptions);
  } catch (const InputError&) {
    return std::nullopt;
  }
  const auto found = models::conflicts(question.plan, question.model, question.cluster.gpus());
  return found.empty() ? std::optional{question} : std::nullopt;
}

/// The facts of a plan that act, without those in `unsaid`. A cut into stages acts as its layers,
/// however it is said.
std::map<std::string, std::string> facts_but(models::Plan plan, const models::Model& model,
                                             const std::vector<UnsaidOption>& unsaid) {
  if (plan.pipeline > 1) {
    plan.stages.layers = layers_per_chunk(plan, model);
    plan.stages.embedding_counts = false;
  }
  const Facts facts = facts_of(plan, {.model = &model, .gpus = plan.gpus(), .gradient_bytes = 4});
  std::map<std::string, std::string> kept;
  for (const models::PlanField& field : models::plan_fields())
    kept[std::string{field.key}] = facts.text(field.key);
  for (const UnsaidOption& each : unsaid) kept.erase(each.option.substr(0, each.option.find('=')));
  return kept;
}

struct Trips {
  int exported = 0, refused = 0;
  std::set<std::string> unsaid;  // fields that only comments said
};

/// Stated fields of which neither a file, nor a report, nor the tool's own default says anything.
std::string lost_fields(const models::Question& question, const Json& stated,
                        const LaunchTool& tool, const ImportedLaunch& back,
                        const Exported& exported) {
  FactBasis basis{.model = &question.model, .gpus = question.plan.gpus(), .gradient_bytes = 4};
  for (const auto& [key, value] : stated.items()) basis.stated.insert(key);
  const Facts facts = facts_of(question.plan, basis);
  std::string lost;
  for (const auto& [key, value] : stated.items()) {
    const bool reported = std::ranges::any_of(exported.not_said, [&](const UnsaidOption& each) {
      return each.option.starts_with(key + "=");
    });
    const bool usual = std::ranges::any_of(meanings_of(tool), [&](const Meaning& row) {
      return row.option == "-" && row.field == key && row.states(facts.text(key));
    });
    const bool of_cut = key == "embedding_counts" && back.plan.contains("stage_layers");
    if (facts.has(key) && !back.plan.contains(key) && !reported && !usual && !of_cut) {
      lost += " " + key + "=" + facts.text(key);
    }
  }
  return lost;
}

/// Exports random plans and imports them: every field that is not reported must come back.
Trips round_trips(const std::string& target, const std::string& model, const std::string& software,
                  PlanKinds kinds) {
  std::mt19937 random{17};
  Trips trips;
  for (int i = 0; i < 1000 && trips.exported < 60; ++i) {
    Json stated;
    const auto question = random_question(random, model, software, kinds, &stated);
    if (!question) continue;
    const Exported exported = export_launch(*question, {target}, {.plan = stated});
    if (!exported.refused.empty()) {
      ++trips.refused;
      CHECK(exported.files.empty());
      continue;
    }
    ++trips.exported;
    REQUIRE(exported.files.size() == 1);
    const LaunchText& file = exported.files[0];
    const ImportedLaunch imported =
        import_launch({read_launch_file(file.text, file.name)},
                      {.files = {}, .model = model, .cluster = "dgx-h100 x 4"});
    const Document plan = Document::from(imported.plan, file.name);
    std::vector<std::string> assumptions;
    const models::Plan read = models::read_plan(plan.root(), question->model, 32, assumptions);
    INFO(file.text);
    CHECK(facts_but(read, question->model, exported.not_said) ==
          facts_but(question->plan, question->model, exported.not_said));
    const LaunchTool& tool = launch_tool(target.substr(0, target.find('@')));
    CHECK(lost_fields(*question, stated, tool, imported, exported) == "");
    for (const UnsaidOption& each : exported.not_said) {
      if (!each.option.empty()) trips.unsaid.insert(each.option.substr(0, each.option.find('=')));
    }
  }
  return trips;
}

TEST_CASE("Import of an export is the same plan, on random plans") {
  struct Target {
    std::string tool, model, software;
    PlanKinds kinds = PlanKinds::all;
    std::set<std::string> unsaid;  // the only fields that comments may have to say
  };
  const std::set<std::string> of_megatron{"fused_cross_entropy", "tensor_overlap", "attention",
                                          "end_layers_bf16",     "offload",        "reshard",
                                          "recompute",           "pad_to_capacity"};
  std::set<std::string> of_primus = of_megatron;
  of_primus.insert("precision");  // fp32: a preset of Primus says bf16
  const std::set<std::string> of_deepspeed{
      "attention", "fused_cross_entropy", "moments",          "offload_layers",
      "recompute", "recompute_every",     "recompute_layers", "seq_len"};
  const std::set<std::string> of_torchtitan{"attention",     "bucket",   "fused_cross_entropy",
                                            "prefetch",      "sequence", "start_layers_bf16",
                                            "tensor_overlap"};
  const std::set<std::string> of_fsdp{"attention",    "bucket",      "fused_cross_entropy",
                                      "moments",      "seq_len",     "start_layers_bf16",
                                      "global_batch", "micro_batch", "recompute"};
  const std::set<std::string> of_2022{"fused_cross_entropy", "model.vocab", "tensor_overlap"};
  const std::set<std::string> of_axolotl{"attention", "bucket", "prefetch", "start_layers_bf16",
                                         "tensor_overlap"};
<<<<<<< HEAD
  const std::set<std::string> of_maxtext{"attention",     "bucket",  "cuda_graphs",
                                         "prefetch",      "reshard", "start_layers_bf16",
                                         "tensor_overlap"};
=======
  const std::set<std::string> of_maxtext{
      "attention",         "bucket",         "prefetch",   "reshard",
      "start_layers_bf16", "tensor_overlap", "cuda_graphs"};
>>>>>>> x1
  const Target targets[] = {
      {"megatron@2022-12", "gpt3-175b", "megatron-core", PlanKinds::early, of_2022},
      {"megatron", "llama3-8b", "megatron-core", PlanKinds::all, of_megatron},
      {"megatron", "mixtral-8x7b", "megatron-core", PlanKinds::all, of_megatron},
      {"megatron-bridge", "llama3-8b", "megatron-bridge", PlanKinds::all, of_megatron},
      {"megatron-bridge", "mixtral-8x7b", "megatron-bridge", PlanKinds::all, of_megatron},
      {"deepspeed", "llama3-8b", "deepspeed", PlanKinds::sharded, of_deepspeed},
      {"torchtitan", "llama3-8b", "torchtitan", PlanKinds::sharded, of_torchtitan},
      {"fsdp", "llama3-8b", "pytorch-fsdp", PlanKinds::sharded, of_fsdp},
      {"accelerate", "llama3-8b", "huggingface", PlanKinds::sharded, of_fsdp},
      {"axolotl", "llama3-8b", "huggingface", PlanKinds::sharded, of_axolotl},
      {"primus", "llama3-8b", "megatron-core", PlanKinds::all, of_primus},
      {"primus", "mixtral-8x7b", "megatron-core", PlanKinds::all, of_primus},
      {"maxtext", "llama3-8b", "maxtext", PlanKinds::sharded, of_maxtext}};
  for (const Target& each : targets) {
    const Trips trips = round_trips(each.tool, each.model, each.software, each.kinds);
    std::string unsaid;
    for (const std::string& field : trips.unsaid) {
      if (!each.unsaid.contains(field)) unsaid += " " + field;
    }
    INFO(each.tool << " " << each.model << ": " << trips.refused << " refused");
    CHECK(trips.exported > 20);
    CHECK(unsaid == "");
  }
}

TEST_CASE("Megatron's options of a model give the same model back") {
  for (const char* name :
       {"llama3-8b", "llama2-70b", "mixtral-8x7b", "gpt-22b", "gpt3-175b", "qwen2.5-7b"}) {
    models::Question question =
        models::question(name, "dgx-h100 x 4", "zero=1,tensor=4", "megatron-core");
    const Exported exported = export_launch(question, {"megatron"}, {});
    INFO(name);
    REQUIRE(exported.files.size() == 1);
    const ImportedLaunch imported =
        import_launch({read_launch_file(exported.files[0].text, "megatron.sh")}, {});
    CHECK(imported.model == name);
  }
}

TEST_CASE("What this version of a tool lacks is refused, though another version has it") {
  const auto refused = [](const std::string& model, const std::string& plan) {
    const models::Question question =
        models::question(model, "dgx-h100 x 4", plan, "megatron-core");
    const Exported exported = export_launch(question, {"megatron@2022-12"}, {});
    CHECK(exported.files.empty() == !exported.refused.empty());
    std::string all;
    for (const UnsaidOption& each : exported.refused) all += each.option + " ";
    return all;
  };
  const std::string plain = "tensor=8,zero=0,overlap=false";
  CHECK(refused("gpt3-175b", plain) == "");
  CHECK(refused("gpt3-175b", "tensor=8,zero=0") == "overlap=true ");
  CHECK(refused("gpt3-175b", plain + ",precision=fp8") == "precision=fp8 ");
  CHECK(refused("gpt3-175b", plain + ",moments=bf16") == "moments=bf16 ");
  CHECK(refused("gpt3-175b", plain + ",bucket=40 MB") == "bucket=40000000 B ");
  CHECK(refused("gpt3-175b", "tensor=8,zero=3,overlap=false,overlap_gather=false")
            .rfind("zero=3 ", 0) == 0);
  // Its models have neither grouped queries, nor gates, nor rotary positions.
  const std::string llama = refused("llama3-8b", plain);
  for (const char* each : {"model.kv_heads=8", "model.gated=true", "model.positions=rotary",
                           "model.norm=rms_norm", "model.tied=false", "model.biases=false"}) {
    INFO(llama);
    CHECK(llama.find(each) != std::string::npos);
  }
  const models::Question question =
      models::question("gpt3-175b", "dgx-h100 x 4", plain + ",precision=fp8", "megatron-core");
  CHECK(export_launch(question, {"megatron@2022-12"}, {}).refused[0].why ==
        "megatron@2022-12 has no option for it; megatron@0.20 has");
}

TEST_CASE("No export that another version can say is left to a comment, for any tool") {
  std::istringstream targets{export_targets()};
  for (std::string target; targets >> target;) {
    const LaunchTool& tool = launch_tool(target.substr(0, target.find('@')));
    if (tool.software.empty() || tool.lists.size() < 2) continue;
    std::mt19937 random{5};
    int looked_at = 0;
    for (int i = 0; i < 150; ++i) {
      const auto question =
          random_question(random, "llama3-8b", std::string{tool.software}, PlanKinds::all);
      if (!question) continue;
      const Exported old = export_launch(*question, {target}, {});
      const Exported newest = export_launch(*question, {std::string{tool.name}}, {});
      if (!old.refused.empty() || !newest.refused.empty()) continue;
      ++looked_at;
      for (const UnsaidOption& each : old.not_said) {
        if (each.option.empty()) continue;
        INFO(target << ": " << each.option << " " << each.why);
        CHECK(std::ranges::any_of(newest.not_said, [&](const UnsaidOption& other) {
          return other.option == each.option;
        }));
      }
    }
    INFO(target << ": " << looked_at);
  }
}

TEST_CASE("torchtitan's flavors are named for its models, and read as them") {
  for (const char* name : {"llama3-8b", "llama3-70b", "llama3.1-405b", "qwen3-32b", "deepseek-v3",
                           "gpt-oss-20b", "llama4-scout-109b", "qwen3-235b-a22b"}) {
    INFO(name);
    const models::Question question =
        models::question(name, "dgx-h100 x 4", "zero=3,recompute=full", "torchtitan");
    const Exported exported = export_launch(question, {"torchtitan"}, {});
    REQUIRE(exported.files.size() == 1);
    const ImportedLaunch imported =
        import_launch({read_launch_file(exported.files[0].text, "torchtitan.toml")}, {});
    CHECK(imported.model == name);
  }
  const models::Question other =
      models::question("mixtral-8x7b", "dgx-h100 x 4", "zero=3,recompute=full", "torchtitan");
  CHECK(export_launch(other, {"torchtitan"}, {}).not_said[0].why ==
        "model mixtral-8x7b: state model.name and model.flavor");
}

TEST_CASE("FSDP's file comes back with PyTorch's profile, accelerate's with Hugging Face's") {
  const auto back = [](const std::string& target, const std::string& software) {
    const models::Question question =
        models::question("llama3-8b", "dgx-h100 x 4", "zero=3,recompute=full", software);
    const Exported exported = export_launch(question, {target}, {});
    REQUIRE(exported.files.size() == 1);
    return import_launch({read_launch_file(exported.files[0].text, exported.files[0].name)}, {})
        .software;
  };
  CHECK(back("fsdp", "pytorch-fsdp") == "pytorch-fsdp");
  CHECK(back("accelerate", "huggingface") == "huggingface");
}

TEST_CASE("What a stack cannot do is refused by name") {
  const auto refused = [](const std::string& plan, const std::string& target) {
    const models::Question question =
        models::question("llama3-8b", "dgx-h100 x 4", plan, "megatron-core");
    const Exported exported = export_launch(question, {target}, {});
    REQUIRE(exported.refused.size() == 1);
    CHECK(exported.files.empty());
    return exported.refused[0].option + ": " + exported.refused[0].why;
  };
  CHECK(refused("pipeline=4,schedule=zb-h1,zero=1", "megatron") ==
        "schedule=zb-h1: megatron@0.20 has no option for it");
  CHECK(refused("zero=1,recompute=none", "torchtitan") ==
        "zero=1: ZeRO stage 1 is not supported by torchtitan; supported: 0, 2, 3");
  CHECK(refused("zero=3,cuda_graphs=true", "deepspeed") ==
        "cuda_graphs=true: deepspeed@0.19.8 has no option for it");
}

// With torchao accelerate gathers weights in 8 bits, unless its file says otherwise.
TEST_CASE("A default of the tool that the plan does not want is written") {
  const auto written = [](const std::string& precision) {
    const models::Question question = models::question(
        "llama3-8b", "dgx-h100 x 4", "zero=3,precision=" + precision, "huggingface");
    const Exported exported = export_launch(question, {"accelerate"}, {});
    return read_launch_file(exported.files.at(0).text, "accelerate.yaml");
  };
  const auto gather_of = [](const LaunchFile& file) {
    const auto found = std::ranges::find(file.options, "fp8_config.enable_fsdp_float8_all_gather",
                                         &LaunchOption::option);
    return found == file.options.end() ? Json("unsaid") : found->value;
  };
  LaunchFile file = written("fp8-current");
  CHECK(gather_of(file) == Json(false));
  CHECK(gather_of(written("fp8-current,low_precision_gather=true")) == Json(true));
  CHECK(gather_of(written("fp8")) == Json("unsaid"));  // of Transformer Engine: none
  CHECK(gather_of(written("bf16")) == Json("unsaid"));
  const auto read = [&] {
    return import_launch({file}, {.files = {}, .model = "llama3-8b", .cluster = "dgx-h100 x 4"})
        .plan.value("low_precision_gather", false);
  };
  CHECK_FALSE(read());
  std::erase_if(file.options, [](const LaunchOption& each) {
    return each.option == "fp8_config.enable_fsdp_float8_all_gather";
  });
  CHECK(read());
}

std::string not_said_of(const Exported& exported) {
  std::string all;
  for (const UnsaidOption& each : exported.not_said) all += each.option + ": " + each.why + "\n";
  return all;
}

// Megatron-LM takes layers over stages only where they divide, and its own count of the layers that
// predict further tokens in a layout.
TEST_CASE(
    "A cut into stages that is not even is written as a layout, for every tool of Megatron's") {
  int uneven = 0;
  for (const char* model : {"llama3-8b", "llama3-70b", "deepseek-v3", "gpt3-175b"}) {
    for (const char* target : {"megatron", "megatron-bridge", "primus"}) {
      for (const std::int64_t pipeline : {2, 3, 4, 6}) {
        for (const char* more : {"", ",embedding_counts=true"}) {
          const models::Question question = models::question(
              model, "dgx-h100 x 12", fmt::format("pipeline={},zero=1{}", pipeline, more),
              "megatron-core");
          const Exported exported = export_launch(question, {target}, {});
          INFO(model << " " << target << " pipeline " << pipeline << more);
          REQUIRE(exported.files.size() == 1);
          const LaunchFile file = read_launch_file(exported.files[0].text, exported.files[0].name);
          const auto found = std::ranges::find_if(file.options, [](const LaunchOption& each) {
            return each.option.ends_with("pipeline_model_parallel_layout");
          });
          const std::vector<std::int64_t> layers = layers_per_chunk(question.plan, question.model);
          const std::int64_t ends = question.plan.stages.embedding_counts ? 2 : 0;
          const std::int64_t counted = question.model.layers.size() + ends;
          if (found == file.options.end()) {
            CHECK(counted % pipeline == 0);
            CHECK(layers[1] == counted / pipeline - (pipeline == 2 ? ends / 2 : 0));
            continue;
          }
          ++uneven;
          const auto layout = found->value.get<std::string>();
          CHECK(layers_of_layout(layout) == layers);
          CHECK((layout.find('m') != std::string::npos) == (question.model.prediction_layers > 0));
          CHECK(not_said_of(exported).find("stage_layers") == std::string::npos);
        }
      }
    }
  }
  CHECK(uneven > 30);
  const models::Question question =
      models::question("llama3-70b", "dgx-h100 x 6", "tensor=8,pipeline=6,zero=1", "megatron-core");
  const Exported exported = export_launch(question, {"megatron"}, {});
  CHECK(exported.files.at(0).text.find(
            "--pipeline-model-parallel-layout 'Et*13|t*14|t*14|t*13|t*13|t*13L'") !=
        std::string::npos);
  const Exported early =
      export_launch(models::question("gpt3-175b", "dgx-h100 x 5",
                                     "tensor=8,pipeline=5,zero=0,overlap=false", "megatron-core"),
                    {"megatron@2022-12"}, {});
  REQUIRE(early.refused.size() == 1);
  CHECK(early.refused[0].option.starts_with("stage_layers=19:"));
}

// User buffers are off unless an option says so; Megatron's need sequence parallelism.
TEST_CASE("Overlap in the tensor group is written wherever the prediction counts on it") {
  const auto exported = [](const std::string& plan, const std::string& target, const Json& stated) {
    return export_launch(
        models::question("llama3-70b", "dgx-h100 x 4", "zero=1," + plan, "megatron-core"), {target},
        {.plan = stated});
  };
  const std::string flag = "--tp-comm-overlap ";
  const auto has = [&](const Exported& found, const std::string& text) {
    return found.files.at(0).text.find(text) != std::string::npos;
  };
  const Exported open = exported("tensor=8,sequence=true", "megatron", {});
  CHECK(has(open, flag));
  const Exported stated = exported("tensor=8,sequence=true,tensor_overlap=true", "megatron",
                                   {{"tensor_overlap", true}});
  CHECK(has(stated, flag));
  CHECK(has(stated, "# plan: tensor=8,sequence=true,"));
  CHECK(has(stated, ",tensor_overlap=true\n"));
  CHECK(has(exported("tensor=8,sequence=true", "megatron-bridge", {}), "tp_comm_overlap: true"));
  CHECK_FALSE(has(exported("tensor=1", "megatron", {}), flag));
  CHECK_FALSE(has(exported("tensor=8,sequence=true,tensor_overlap=false", "megatron", {}), flag));
  const Exported alone = exported("tensor=8,sequence=false", "megatron", {});
  CHECK_FALSE(has(alone, flag));
  CHECK(not_said_of(alone).find("tensor_overlap=true: tp_comm_overlap needs sequence") !=
        std::string::npos);
}

// accelerate reads fsdp_config for distributed_type FSDP alone.
TEST_CASE("What accelerate reads under FSDP only is written under FSDP only, and read so") {
  std::mt19937 random{3};
  int apart = 0;
  for (int i = 0; i < 400; ++i) {
    const auto question = random_question(random, "llama3-8b", "huggingface", PlanKinds::sharded);
    if (!question) continue;
    const Exported exported = export_launch(*question, {"accelerate"}, {});
    if (exported.files.empty()) continue;
    const std::string& text = exported.files[0].text;
    const bool sharded = text.find("distributed_type: \"FSDP\"") != std::string::npos;
    apart += !sharded;
    INFO(text);
    CHECK((sharded || text.find("\nfsdp_config:") == std::string::npos));
  }
  CHECK(apart > 5);
  const models::Question question = models::question(
      "llama3-8b", "dgx-h100 x 1", "zero=0,recompute=full,task=lora", "huggingface");
  const Exported exported = export_launch(question, {"accelerate"}, {});
  CHECK(not_said_of(exported).find("recompute=full: accelerate@1.15.0 has no option for it") !=
        std::string::npos);
  for (const char* type : {"MULTI_GPU", "DEEPSPEED"}) {
    const std::string text = fmt::format(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: {}\nnum_machines: 1\n"
        "num_processes: 8\nfsdp_config:\n  fsdp_activation_checkpointing: true\n  "
        "fsdp_offload_params: true\n",
        type);
    const ImportedLaunch back = import_launch({read_launch_file(text, "accelerate.yaml")},
                                              {.files = {}, .model = "llama3-8b"});
    CHECK(back.plan.value("recompute", "") != "full");
    CHECK(back.plan.value("offload", "none") == "none");
    for (const ImportedOption& each : back.options) {
      if (!each.option.starts_with("fsdp_config.")) continue;
      CHECK(each.use == ImportedOption::Use::without_effect);
      CHECK(each.says == "not looked at here: needs distributed_type=FSDP");
    }
  }
}

TEST_CASE("Exported options are in the tool's own list of that version") {
  const models::Question question = models::question(
      "mixtral-8x7b", "dgx-h100 x 4",
      "tensor=2,sequence=true,pipeline=2,expert=4,zero=1,dispatcher=deepep", "megatron-core");
  const Exported exported = export_launch(question, {"megatron@0.20"}, {});
  const LaunchFile file = read_launch_file(exported.files.at(0).text, "megatron.sh");
  int options = 0;
  for (const LaunchOption& each : file.options) {
    if (each.tool != "megatron") continue;
    INFO(each.option);
    CHECK(options_in("megatron@0.20").contains(each.option));
    ++options;
  }
  CHECK(options > 20);
}

TEST_CASE("Adapters of axolotl come back, and its 8-bit optimizer") {
  const std::string plan =
      "zero=0,task=lora,lora_rank=16,lora_targets=q_proj:v_proj:projection,moments=int8,"
      "micro_batch=2,global_batch=128,seq_len=4096,recompute=full,fused_cross_entropy=true";
  const models::Question question =
      models::question("llama3-8b", "dgx-h100 x 4", plan, "huggingface");
  const Exported exported = export_launch(question, {"axolotl"}, {});
  REQUIRE(exported.files.size() == 1);
  const std::string& text = exported.files[0].text;
  INFO(text);
  for (const char* line :
       {"base_model: \"llama3-8b\"", "adapter: \"lora\"", "lora_r: 16", "- \"o_proj\"",
        "optimizer: \"adamw_torch_8bit\"", "gradient_accumulation_steps: 2",
        "gradient_checkpointing: true", "cut_cross_entropy: true"}) {
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
  const ImportedLaunch back =
      import_launch({read_launch_file(text, "axolotl.yaml")},
                    {.files = {}, .model = "llama3-8b", .cluster = "dgx-h100 x 4"});
  CHECK(back.model == "llama3-8b");
  CHECK(back.plan["lora_targets"] == Json({"projection", "q_proj", "v_proj"}));
  CHECK(back.plan["moments"] == "int8");
  CHECK(back.plan["global_batch"] == 128);
  const auto refused = [](const std::string& stated) {
    const Exported found = export_launch(
        models::question("llama3-8b", "dgx-h100 x 4", stated, "huggingface"), {"axolotl"}, {});
    REQUIRE_FALSE(found.refused.empty());
    return found.refused[0].option;
  };
  CHECK(refused("zero=0,recompute=selective") == "recompute=selective");
  CHECK(refused("zero=0,pipeline=4") == "pipeline=4");
}

TEST_CASE("MaxText's axes are cut at the nodes, and batches counted by device") {
  // 32 GPUs in nodes of 8, tensor 4 and 8 replicas: 2 of a node's devices and 4 nodes shard.
  const models::Question question =
      models::question("llama3-8b", "dgx-h100 x 4",
                       "tensor=4,zero=3,micro_batch=2,global_batch=64,recompute=full", "maxtext");
  const Exported exported = export_launch(question, {"maxtext"}, {});
  REQUIRE(exported.files.size() == 1);
  const std::string& text = exported.files[0].text;
  INFO(text);
  for (const char* line :
       {"base_config: \"base.yml\"", "ici_tensor_parallelism: 4", "dcn_tensor_parallelism: 1",
        "ici_fsdp_parallelism: 2", "dcn_fsdp_parallelism: 4", "per_device_batch_size: 0.5",
        "gradient_accumulation_steps: 4", "remat_policy: \"full\""}) {
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
  const Exported launched = export_launch(question, {"maxtext", "slurm"}, {});
  REQUIRE(launched.refused.size() == 1);
  CHECK(launched.refused[0].why == "starts torchrun, and MaxText is a program of JAX");
}

TEST_CASE("Primus has Megatron-LM's options as overrides, and starts by its own program") {
  const models::Question question = models::question(
      "mixtral-8x7b", "dgx-h100 x 4", "tensor=2,sequence=true,expert=4,zero=1,dispatcher=alltoall",
      "megatron-core");
  const Exported exported = export_launch(question, {"primus", "slurm"}, {});
  REQUIRE(exported.files.size() == 2);
  const LaunchFile file = read_launch_file(exported.files[0].text, "primus.yaml");
  CHECK(file.tool == "primus");
  int options = 0;
  for (const LaunchOption& each : file.options) {
    if (each.option == "model") continue;
    INFO(each.option);
    CHECK((options_in("primus@2026-08").contains(each.option) ||
           options_in("megatron@0.20").contains(each.option)));
    ++options;
  }
  CHECK(options > 20);
  CHECK(exported.files[1].text.find("primus/cli/main.py train pretrain --config primus.yaml") !=
        std::string::npos);
  CHECK(export_targets().find("primus@0.20") == std::string::npos);
}

TEST_CASE("A task of SkyPilot says nodes, GPUs and what they start, and comes back") {
  const models::Question question = models::question(
      "llama3-8b", "dgx-h100 x 4", "tensor=2,sequence=true,zero=1,recompute=full", "megatron-core");
  const ExportRequest request{
      .job = "my run", .cluster = "dgx-h100 x 4", .collectives = {{"NCCL_ALGO", "Ring"}}};
  const Exported exported = export_launch(question, {"megatron", "skypilot"}, request);
  REQUIRE(exported.files.size() == 2);
  const std::string& text = exported.files[1].text;
  INFO(text);
  CHECK(exported.files[1].name == "skypilot.yaml");
  for (const char* line : {"name: \"my-run\"", "num_nodes: 4", "accelerators: \"H100:8\"",
                           "network_tier: \"best\"", "NCCL_ALGO: \"Ring\"", "  bash megatron.sh"}) {
    INFO(line);
    CHECK(text.find(line) != std::string::npos);
  }
  const ImportedLaunch back =
      import_launch({read_launch_file(exported.files[0].text, "megatron.sh"),
                     read_launch_file(text, "skypilot.yaml")},
                    {.files = {}, .cluster = "dgx-h100"});
  CHECK(back.nodes == 4);
  CHECK(back.gpus == 32);
  CHECK(back.cluster == "dgx-h100 x 4");
  // Written by hand: accelerators as a map, and a training that SkyPilot's variables start.
  const ImportedLaunch own = import_launch(
      {read_launch_file("resources:\n  accelerators: {H200: 8}\nnum_nodes: 2\nrun: |\n"
                        "  torchrun --nnodes=$SKYPILOT_NUM_NODES --nproc_per_node="
                        "$SKYPILOT_NUM_GPUS_PER_NODE \\\n    pretrain_gpt.py "
                        "--tensor-model-parallel-size 4 --micro-batch-size 1\n",
                        "task.yaml")},
      {.files = {}, .cluster = "dgx-h200"});
  CHECK(own.gpus == 16);
  CHECK(own.plan["tensor"] == 4);
  CHECK(std::ranges::none_of(own.options, [](const ImportedOption& each) {
    return each.use == ImportedOption::Use::not_understood;
  }));
  const models::Question unknown =
      models::question("llama3-8b", "l20-8x x 1", "zero=3,recompute=full", "pytorch-fsdp");
  const Exported other = export_launch(unknown, {"fsdp", "skypilot"}, {});
  REQUIRE_FALSE(other.not_said.empty());
  CHECK(other.not_said.back().option == "resources.accelerators");
}

TEST_CASE("Nothing that a user typed escapes from a launch file") {
  const Scratch scratch;
  const std::string mark = scratch.path("escaped"), touch = ": > " + mark;
  const std::string hostile = "x\"; " + touch + "; $(" + touch + ") `" + touch + "`\n" + touch +
                              "\n' ; " + touch + " ; ' - #\\";
  models::Question question =
      models::question("llama3-8b", "dgx-h100 x 4", "zero=3", "pytorch-fsdp");
  question.model.name = hostile;
  const ExportRequest request{.job = hostile,
                              .cluster = hostile,
                              .collectives = {{"NCCL_ALGO", hostile}, {"NCCL_X;" + touch, "1"}}};
  // A PyTorchJob starts torchrun, which cannot read accelerate's file.
  const std::vector<std::string> most{
      "megatron", "deepspeed",       "fsdp",  "accelerate", "axolotl",
      "primus",   "megatron-bridge", "slurm", "torchrun",   "skypilot"};
  const Exported with_job = export_launch(question, {"accelerate", "k8s"}, request);
  REQUIRE(with_job.refused.size() == 1);
  CHECK(with_job.refused[0].why.find("starts torchrun, which does not read") == 0);
  Exported exported = export_launch(question, most, request);
  REQUIRE(exported.files.size() == most.size());
  Exported job = export_launch(question, {"deepspeed", "k8s"}, request);
  REQUIRE(job.files.size() == 2);
  exported.files.push_back(std::move(job.files[1]));
  for (const LaunchText& each : exported.files) {
    INFO(each.text);
    const bool shell = each.name.ends_with(".sh") || each.name.ends_with(".sbatch");
    if (!shell) {
      CHECK_NOTHROW(read_launch_file(each.text, each.name));
      continue;
    }
    CHECK(read_launch_file(each.text, each.name).environment.at("NCCL_ALGO") == hostile);
    const std::string script = scratch.write("x.sh", each.text);
    CHECK(std::system(("/bin/bash -n " + script).c_str()) == 0);
    // Without a PATH only what the shell itself does can happen, such as writing the mark.
    const std::string line = "PATH=/nowhere /bin/bash " + script + " > /dev/null 2>&1";
    [[maybe_unused]] const int status = std::system(line.c_str());
    CHECK_FALSE(std::filesystem::exists(mark));
  }
}

TEST_CASE("orrery export writes files, and exits with 1 where the stack cannot") {
  const Scratch scratch;
  const Ran ran =
      orrery("export llama3-70b-64-h100 --to megatron,slurm --out " + scratch.path("launch"));
  INFO(ran.error);
  CHECK(ran.exit_code == 0);
  CHECK(scratch.read("launch/megatron.sh").find("--tensor-model-parallel-size 4") !=
        std::string::npos);
  CHECK(scratch.read("launch/job.sbatch").find("#SBATCH --nodes=8\n") != std::string::npos);
  const Ran refused = orrery("export llama3-70b-64-h100 --to deepspeed --json");
  CHECK(refused.exit_code == 1);
  const Json document = parsed(refused.out);
  CHECK(document["files"].empty());
  CHECK(document["refused"][0]["option"] == "tensor=4");
  CHECK(refused_line("export llama3-70b-64-h100 --to megatrn")
            .rfind("--to: unknown 'megatrn'; is it 'megatron'?", 0) == 0);
}

}  // namespace
}  // namespace orrery::scenarios

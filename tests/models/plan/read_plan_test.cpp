#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "models/plan/fields.hpp"
#include "models/plan/plan.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

Model planned_gpt() {
  ModelDraft model;
  model.depth = 32;
  model.attention.head_dim = 128;
  model.attention.heads = model.attention.kv_heads = 32;
  model.embedding.max_positions = 2048;
  return built(std::move(model));
}

/// Reads `{"plan": TEXT}` so that pointers look as they do in a scenario.
Plan read(const std::string& text, std::vector<std::string>& assumptions, std::int64_t gpus = 64) {
  const auto document = Document::parse(R"({"plan": )" + text + "}", "run.json");
  return read_plan(document.root()["plan"], planned_gpt(), gpus, assumptions);
}

Plan read(const std::string& text) {
  std::vector<std::string> assumptions;
  return read(text, assumptions);
}

std::string refused_plan(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string text_refusal(const std::string& text) {
  try {
    plan_from_text(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("What a plan leaves out is derived, and every default is reported") {
  std::vector<std::string> assumptions;
  const Plan plan = read(R"({"tensor": 4, "pipeline": 2, "micro_batch": 2})", assumptions);
  CHECK(plan.data == 8);           // 64 / (4 * 2)
  CHECK(plan.batch.global == 32);  // 8 replicas, 2 micro-batches of 2 each
  CHECK(plan.batch.seq_len == 2048);
  CHECK(plan.stages.schedule == "1f1b");
  CHECK(plan.formats.precision == Precision::bf16);
  CHECK(plan.gpus() == 64);
  CHECK(plan.micro_batches() == 2);
  CHECK(assumptions ==
        std::vector<std::string>{
            "/plan/sequence: not stated; false assumed",
            "/plan/virtual_stages: not stated; 1 assumed",
            "/plan/schedule: not stated; 1f1b assumed",
            "/plan/data: not stated; 8 assumed, the cluster's GPUs over tensor and pipeline",
            "/plan/zero: not stated; 0 assumed",
            "/plan/global_batch: not stated; 32 assumed, data x micro_batch x pipeline",
            "/plan/seq_len: not stated; 2048 assumed, the model's longest sequence",
            "/plan/precision: not stated; bf16 assumed",
            "/plan/recompute: not stated; none assumed",
            "/plan/overlap: not stated; true assumed",
            "/plan/bucket: not stated; the software's gradient bucket assumed",
            "/plan/stage_layers: not stated; as even as possible",
        });
}

TEST_CASE("Every member of a plan is read") {
  const Plan plan = read(R"({"tensor": 2, "sequence": true, "context": 1, "pipeline": 4,
    "virtual_stages": 2, "schedule": "interleaved-1f1b", "expert": 1, "data": 8, "zero": 1,
    "micro_batch": 3, "global_batch": 96, "seq_len": 1024, "precision": "fp8",
    "recompute": "selective", "offload": "none", "overlap": false, "overlap_gather": true,
    "rank_order": "tp-cp-ep-pp-dp", "bucket": "40 MB",
    "stage_layers": [3, 4, 4, 5, 4, 4, 4, 4], "embedding_counts": false})");
  CHECK(plan.tensor == 2);
  CHECK(plan.sequence_parallel);
  CHECK(plan.pipeline == 4);
  CHECK(plan.stages.virtual_stages == 2);
  CHECK(plan.stages.schedule == "interleaved-1f1b");
  CHECK(plan.data == 8);
  CHECK(plan.sharding.zero == Zero::one);
  CHECK(plan.batch.micro == 3);
  CHECK(plan.batch.global == 96);
  CHECK(plan.batch.seq_len == 1024);
  CHECK(plan.formats.precision == Precision::fp8);
  CHECK(plan.recompute.kind == Recompute::selective);
  CHECK(!plan.overlap.gradients);
  CHECK(plan.overlap.with_forward());
  CHECK(plan.rank_order == RankOrder::pipeline_first);
  CHECK(plan.sharding.bucket == 40_MB);
  CHECK(plan.stages.layers == std::vector<std::int64_t>{3, 4, 4, 5, 4, 4, 4, 4});
}

TEST_CASE("Virtual stages make the interleaved schedule the default") {
  CHECK(read(R"({"pipeline": 4, "virtual_stages": 2})").stages.schedule == "interleaved-1f1b");
  CHECK(read(R"({"schedule": "interleaved"})").stages.schedule == "interleaved-1f1b");
}

TEST_CASE("A complete plan written as JSON is read back without an assumption") {
  const Plan plan = read(R"({"tensor": 2, "pipeline": 4, "recompute": "full", "zero": 1,
    "bucket": "40 MB", "precision": "fp16"})");
  const auto document = Document::from(to_json(plan), "plan.json");
  std::vector<std::string> assumptions;
  const Plan again = read_plan(document.root(), planned_gpt(), 64, assumptions);
  CHECK(assumptions.empty());
  CHECK(to_json(again) == to_json(plan));
  CHECK(again.recompute.kind == Recompute::full);
  CHECK(again.sharding.bucket == 40_MB);
}

TEST_CASE("A sequence beyond the positions that a model was made for is reported") {
  const auto assumed = [](Positions positions, std::int64_t length) {
    Model model = planned_gpt();
    model.embedding.positions = positions;
    const auto document = Document::from(Json{{"seq_len", length}}, "plan.json");
    std::vector<std::string> assumptions;
    read_plan(document.root(), model, 64, assumptions);
    const auto found = std::find_if(assumptions.begin(), assumptions.end(), [](const auto& each) {
      return each.rfind("/seq_len:", 0) == 0;
    });
    return found == assumptions.end() ? "" : *found;
  };
  CHECK(assumed(Positions::rotary, 4096) ==
        "/seq_len: 4096 is longer than the model's longest sequence, 2048; its rotary angles are "
        "extrapolated");
  CHECK(assumed(Positions::alibi, 4096) ==
        "/seq_len: 4096 is longer than the model's longest sequence, 2048; its biases by distance "
        "are extrapolated");
  CHECK(assumed(Positions::rotary, 2048).empty());
  CHECK(assumed(Positions::learned, 4096).empty());  // a conflict
}

TEST_CASE("Ranks that share a sequence leave fewer for data, and state their form") {
  const Plan plan = read(R"({"tensor": 2, "context": 4, "context_form": "hierarchical",
    "context_heads": 2})");
  CHECK(plan.context_exchange.form == ContextForm::hierarchical);
  CHECK(plan.context_exchange.heads == 2);
  CHECK(plan.data == 8);
  CHECK(degrees_of(plan) == "TP 2 · CP 4 by hierarchical in groups of 2 · PP 1 · DP 8");
  CHECK(degrees_of(read(R"({"context": 2})")) == "TP 1 · CP 2 by ring · PP 1 · DP 32");
  CHECK(refused_plan(R"({"context_form": "ring"})") ==
        "run.json:/plan/context_form: applies only to context above 1");
  CHECK(refused_plan(R"({"context": 2, "context_heads": 2})") ==
        "run.json:/plan/context_heads: applies only to context_form hierarchical");
}

TEST_CASE("What is not simulated yet is refused by name") {
  CHECK(refused_plan(R"({"imbalance": 0.5})") ==
        "run.json:/plan/imbalance: expected a number from 1, at most 10000, found 0.5");
}

TEST_CASE("A plan may share optimizer state, gradients and parameters") {
  CHECK(read(R"({"zero": 0})").sharding.zero == Zero::none);
  CHECK(read(R"({"zero": 2})").sharding.zero == Zero::two);
  CHECK(read(R"({"zero": 3})").sharding.zero == Zero::three);
  CHECK(to_json(read(R"({"zero": 3})"))["zero"] == 3);
}

TEST_CASE("A plan may compress gradients") {
  CHECK(read("{}").compression.kind == Compression::none);
  CHECK(read(R"({"compression": "fp16"})").compression.kind == Compression::fp16);
  const Plan plan = read(R"({"compression": "top-k", "compression_share": 0.05})");
  CHECK(plan.compression.kind == Compression::top_k);
  CHECK(plan.compression.share == 0.05);
  CHECK(to_json(plan)["compression"] == "top-k");
  CHECK(to_json(plan)["compression_share"] == 0.05);
  CHECK_FALSE(to_json(read("{}")).contains("compression"));
  CHECK(plan_from_text("compression_share=0.05,bucket=0.5 MB") ==
        Json({{"compression_share", 0.05}, {"bucket", "0.5 MB"}}));
  const Plan factors = read(R"({"compression": "power-sgd", "compression_rank": 2})");
  CHECK(factors.compression.kind == Compression::power_sgd);
  CHECK(factors.compression.rank == 2);
  CHECK(to_json(factors)["compression_rank"] == 2);
  CHECK(refused_plan(R"({"compression": "fp8"})") ==
        "run.json:/plan/compression: expected one of \"none\", \"fp16\", \"top-k\", "
        "\"power-sgd\", \"int8\", found \"fp8\"");
  CHECK(refused_plan(R"({"compression": "top-k", "compression_rank": 2})") ==
        "run.json:/plan/compression_rank: applies only to compression power-sgd");
  CHECK(refused_plan(R"({"compression": "fp16", "compression_share": 0.1})") ==
        "run.json:/plan/compression_share: applies only to compression top-k");
  CHECK(refused_plan(R"({"compression": "top-k", "compression_share": 0})") ==
        "run.json:/plan/compression_share: expected a number above 0, at most 1, found 0");
}

TEST_CASE("A plan may choose its attention kernel") {
  CHECK(read("{}").kernels.attention == AttentionKernel::of_stack);
  CHECK(read(R"({"attention": "flash-2"})").kernels.attention == AttentionKernel::flash_2);
  CHECK(to_json(read(R"({"attention": "flash-2"})"))["attention"] == "flash-2");
  CHECK_FALSE(to_json(read("{}")).contains("attention"));
}

TEST_CASE("A plan may launch kernels as CUDA graphs") {
  CHECK_FALSE(read("{}").kernels.graphs);
  CHECK(read(R"({"cuda_graphs": true})").kernels.graphs);
  CHECK(to_json(read(R"({"cuda_graphs": true})"))["cuda_graphs"] == true);
  CHECK_FALSE(to_json(read("{}")).contains("cuda_graphs"));
  CHECK(plan_from_text("cuda_graphs=true") == Json({{"cuda_graphs", true}}));
  CHECK(refused_plan(R"({"cuda_graphs": 1})") ==
        "run.json:/plan/cuda_graphs: expected true or false, found 1");
}

TEST_CASE("A mistake in a plan is reported with its place") {
  CHECK(refused_plan(R"({"tensr": 4})")
            .starts_with("run.json:/plan/tensr: unknown key; did you mean 'tensor'?"));
  CHECK(refused_plan(R"({"tensor": "4"})") ==
        "run.json:/plan/tensor: expected an integer from 1 to 1048576, found \"4\"");
  CHECK(refused_plan(R"({"precision": "int8"})") ==
        "run.json:/plan/precision: expected one of \"fp32\", \"tf32\", \"fp16\", \"bf16\", "
        "\"fp8\", \"fp64\", \"fp8-current\", \"fp8-block\", \"mxfp8\", \"nvfp4\", found \"int8\"");
  CHECK(refused_plan(R"({"zero": 4})") ==
        "run.json:/plan/zero: expected an integer from 0 to 3, found 4");
  CHECK(refused_plan(R"({"stage_layers": []})") ==
        "run.json:/plan/stage_layers: is empty; leave it out for an even split");
}

TEST_CASE("A model without a longest sequence needs seq_len") {
  Model model = planned_gpt();
  model.embedding.max_positions = 0;
  const auto document = Document::parse("{}", "plan.json");
  std::vector<std::string> assumptions;
  CHECK_THROWS_WITH(
      read_plan(document.root(), model, 8, assumptions),
      "plan.json: seq_len is missing, and the model does not state its longest sequence");
}

TEST_CASE("Degrees that leave GPUs over still give a plan, which then conflicts") {
  std::vector<std::string> assumptions;
  CHECK(read(R"({"tensor": 3})", assumptions, 64).data == 21);
  CHECK(read(R"({"tensor": 8})", assumptions, 4).data == 1);
}

TEST_CASE("The command line's form of a plan is the same JSON") {
  CHECK(plan_from_text("tensor=8,pipeline=4,sequence=true,schedule=gpipe,stage_layers=7:9:9:7") ==
        Json::parse(R"({"tensor": 8, "pipeline": 4, "sequence": true, "schedule": "gpipe",
                        "stage_layers": [7, 9, 9, 7]})"));
  CHECK(plan_from_text("bucket=40 MB") == Json::parse(R"({"bucket": "40 MB"})"));
  CHECK(plan_from_text("") == Json::object());
}

TEST_CASE("A mistake in the command line's form is reported") {
  CHECK(text_refusal("tensor") == "--plan: expected KEY=VALUE, found 'tensor'");
  CHECK(text_refusal("tensor=8,,data=2") == "--plan: expected KEY=VALUE, found ''");
  CHECK(text_refusal("tensor=8,tensor=4") == "--plan: tensor is given twice");
}

}  // namespace orrery::models

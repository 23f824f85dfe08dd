#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <utility>

#include "models/model/model_file.hpp"
#include "models/prediction/prediction.hpp"
#include "models/program/text.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Program on_one_gpu(const Model& model, std::int64_t seq_len) {
  Plan plan;
  plan.batch.seq_len = seq_len;
  const Software software = fused_software();
  return lower(BlockInputs{model, plan, software});
}

/// Forward FLOPs of these blocks. The pooler works on one token per sequence and is left out of the
/// formula.
double forward_of(const Program& program, std::uint32_t kind) {
  double sum = 0;
  for (const Operation& op : program.blocks[program.kinds[kind].forward].operations) {
    const bool pooler = op.name == "pooler" || op.name == "relation";
    if (!pooler) sum += static_cast<double>(op.flops.count());
  }
  return sum;
}

double simulated_forward(const Program& program) {
  double sum = 0;
  for (const std::uint32_t kind : program.kind_of_layer) sum += forward_of(program, kind);
  for (std::uint32_t kind = 0; kind < program.kinds.size(); ++kind) {
    if (program.kinds[kind].part != ModelPart::layer) sum += forward_of(program, kind);
  }
  return sum;
}

Time row(const Prediction& prediction, const std::string& name) {
  const auto found = std::ranges::find(prediction.waterfall, name, &WaterfallPart::name);
  REQUIRE(found != prediction.waterfall.end());
  return found->time;
}

constexpr const char* more = "more work than the average rank";
constexpr const char* less = "less work than the average rank";

}  // namespace

TEST_CASE("Forward FLOPs of every model are those of the layers simulated, at every length") {
  for (const std::string& name : model_names()) {
    const Model model = catalogue_model(name);
    if (model.list) continue;  // no sequences; tests/models/model/operation_list_test.cpp
    for (const std::int64_t length : {512, 2048, 8192, 10'000, 131'072}) {
      // Each expert has whole rows: lengths that give all experts the same number of tokens.
      const std::int64_t unit = std::max<std::int64_t>(1, usual_experts(model).count);
      const std::int64_t seq = (length + unit - 1) / unit * unit;
      if (position_rows(model) > 0 && seq > model.embedding.max_positions) continue;
      CAPTURE(name, seq);
      CHECK(simulated_forward(on_one_gpu(model, seq)) ==
            Approx(static_cast<double>(seq) * forward_flops_per_token(model, seq)).epsilon(1e-12));
    }
  }
}

// An indexer's scores are work outside the model's count, and what it leaves out is in neither.
TEST_CASE("No model type's count has more FLOPs than the layers that are simulated") {
  const auto table =
      Document::load(std::string{ORRERY_SOURCE} + "/tests/models/model/import/small_configs.json");
  int simulated = 0;
  for (const Node& row : table.root().elements()) {
    Json config = row["config"].json();
    config["architectures"] = Json::array({row["class"].as<std::string>()});
    const auto file = Document::from(std::move(config), "config.json");
    const Model model = read_model(file.root());
    if (model.list || model.not_simulated) continue;
    const std::int64_t experts = std::max<std::int64_t>(1, usual_experts(model).count);
    const std::int64_t longest =
        position_rows(model) > 0 ? model.embedding.max_positions : std::int64_t{1} << 16;
    const std::int64_t seq = std::min<std::int64_t>(longest, 1 << 16) / experts * experts;
    if (seq == 0) continue;
    INFO(row["config"].json().dump() << model.inexact);
    // What is counted and not simulated is said.
    const double least = model.inexact.empty() ? 1 - 1e-12 : 0.9;
    const double counted = static_cast<double>(seq) * forward_flops_per_token(model, seq);
    CHECK(simulated_forward(on_one_gpu(model, seq)) >= counted * least);
    ++simulated;
  }
  CHECK(simulated > 200);
}

TEST_CASE("gpt-oss attends fully on every second layer") {
  // 120B: a layer multiplies 2880 (4096 + 2 * 512) + 4096 * 2880 + 2880 * 128 + 4 * 3 * 2880^2 =
  // 126,443,520 weights; 36 of them and the head's 201088 * 2880. A token sees 65,536 others on 18
  // layers and 128 - 128^2 / 2 / 131072 on 18, at 4 * 4096 FLOPs each.
  CHECK(forward_flops_per_token(catalogue_model("gpt-oss-120b"), 131'072) ==
        2.0 * (36 * 126'443'520.0 + 579'133'440.0) +
            18 * 4 * 4096.0 * (65'536.0 + 128 - 128 * 128 / 2.0 / 131'072));
}

TEST_CASE("Llama 4 attends within chunks of 8192 tokens on three of four layers") {
  // Scout: 5120 (5120 + 2 * 1024) + 5120^2 + 5120 * 16 + 2 * 3 * 5120 * 8192 = 314,654,720 weights
  // in a layer, 48 of them and the head's 202048 * 5120; 4096 others are seen on 36 layers.
  const Model scout = catalogue_model("llama4-scout-109b");
  const double weights = 2.0 * (48 * 314'654'720.0 + 1'034'485'760.0);
  CHECK(forward_flops_per_token(scout, 131'072) ==
        weights + 4 * 5120.0 * (12 * 65'536.0 + 36 * 4096.0));
  // 10,000 tokens: a chunk of 8192 and one of 1808.
  CHECK(forward_flops_per_token(scout, 10'000) ==
        Approx(weights + 4 * 5120.0 * (12 * 5000 + 36 * (8192.0 * 8192 + 1808 * 1808) / 20'000)));
}

TEST_CASE("A sequence of one chunk is attention without chunks") {
  const Model chunked = catalogue_model("llama4-scout-109b");
  const Model full = changed(chunked, [](ModelDraft& draft) {
    draft.attention.chunk = 0;
    draft.full.clear();
  });
  Program with = on_one_gpu(chunked, 8192), without = on_one_gpu(full, 8192);
  CHECK(text_of(with) == text_of(without));
  CHECK(text_of(on_one_gpu(chunked, 16'384)) != text_of(on_one_gpu(full, 16'384)));
}

TEST_CASE("Ranks with whole chunks pass no keys, and attend as much together as one rank") {
  const Model scout = catalogue_model("llama4-scout-109b");
  const Software software = fused_software();
  for (const ContextForm form :
       {ContextForm::ring, ContextForm::all_gather, ContextForm::contiguous}) {
    Plan plan;
    plan.batch.seq_len = 131'072;
    const Program alone = lower(BlockInputs{scout, plan, software});
    plan.context = 4;
    plan.context_exchange.form = form;
    const Program cut = lower(BlockInputs{scout, plan, software});
    const std::uint32_t chunked = cut.kind_of_layer[0], full = cut.kind_of_layer[3];
    const auto collectives = [&](std::uint32_t kind) {
      return std::ranges::count(cut.blocks[cut.kinds[kind].forward].operations, OpKind::collective,
                                &Operation::kind);
    };
    CHECK(collectives(full) > collectives(chunked));
    CHECK(collectives(chunked) == 0);
    CHECK(4 * forward_of(cut, chunked) == forward_of(alone, alone.kind_of_layer[0]));
  }
}

TEST_CASE("Among equal ranks none does more work than the average") {
  for (const auto& [model, plan] : std::vector<std::pair<const char*, const char*>>{
           {"gpt2", "global_batch=32,seq_len=512"},
           {"gpt2", "tensor=2,global_batch=32,seq_len=512,recompute=full"},
           {"mistral-7b", "tensor=8,sequence=true,global_batch=8,seq_len=16384"},
           {"gpt-oss-20b", "expert=8,zero=1,micro_batch=1,global_batch=8,seq_len=32768"},
           {"gpt-oss-20b", "expert=8,micro_batch=1,global_batch=8,seq_len=4096,recompute=full"},
           {"llama4-scout-109b", "expert=8,zero=1,micro_batch=1,global_batch=8,seq_len=32768"}}) {
    CAPTURE(model, plan);
    const Prediction found = predict(question(model, "dgx-h100", plan, "nemo"));
    CHECK(row(found, more) == Time{});
    CHECK(row(found, less) == Time{});
  }
}

TEST_CASE("FLOPs outside the model's count are backward's scores and a padded vocabulary") {
  // Backward multiplies five matrices where the count has four: a sixth of all attention FLOPs,
  // which are three times forward's. The vocabulary is padded to a multiple of 128 on each of 8
  // ranks, and each row of its head is multiplied three times.
  for (const auto& [model, padded] : {std::pair{"mistral-7b", 32'768 - 32'000},
                                      std::pair{"llama4-scout-109b", 202'752 - 202'048}}) {
    CAPTURE(model);
    const std::string plan = "tensor=8,sequence=true,micro_batch=1,global_batch=1,seq_len=32768";
    const Question asked = question(model, "dgx-h100", plan, "nemo");
    const Prediction found = predict(asked);
    const double attention = 3 * 32'768 * attention_flops_per_token(asked.model, 32'768);
    const double head = 3 * 32'768.0 * 2 * static_cast<double>(padded * asked.model.hidden);
    const FlopRate peak = *asked.cluster.gpu().peak(hardware::DType::bf16);
    CHECK(seconds(row(found, "FLOPs outside the model's count")) ==
          Approx((attention / 6 + head) / 8 / peak.count()).epsilon(1e-6));
  }
}

TEST_CASE("More work than the average rank is never negative, and all parts add up") {
  // The first case: the last stage has the head, and another one ends last.
  for (const char* plan :
       {"tensor=1,pipeline=8,virtual_stages=2,micro_batch=1,global_batch=16,seq_len=2048,"
        "recompute=full",
        "tensor=1,pipeline=4,data=2,micro_batch=1,global_batch=16,seq_len=2048",
        "tensor=2,pipeline=4,micro_batch=1,global_batch=16,seq_len=2048,schedule=gpipe"}) {
    CAPTURE(plan);
    const Prediction found = predict(question("gpt-7.5b", "dgx-a100-80gb", plan));
    CHECK(row(found, more) >= Time{});
    CHECK(row(found, less) <= Time{});
    Time sum{};
    for (const WaterfallPart& part : found.waterfall) sum += part.time;
    CHECK(sum == found.step);
  }
}

TEST_CASE("The busiest rank of unequal experts does more work than the average") {
  const std::string plan = "expert=8,micro_batch=1,global_batch=8,seq_len=4096,imbalance=";
  const Prediction even = predict(question("mixtral-8x7b", "dgx-h100", plan + "1", "nemo"));
  const Prediction uneven = predict(question("mixtral-8x7b", "dgx-h100", plan + "1.5", "nemo"));
  CHECK(row(even, more) == Time{});
  CHECK(row(uneven, more) > Time{});
  // The rest is the same, but for rounding to picoseconds.
  const char* outside = "FLOPs outside the model's count";
  CHECK(std::abs((row(uneven, outside) - row(even, outside)).count()) <= 2);
}

}  // namespace orrery::models

#include "scenarios/command/calibrate_blocks.hpp"

#include <fmt/format.h>

#include <set>

#include "calibrate/fit/experts.hpp"
#include "models/lowering/lower.hpp"
#include "models/model/model.hpp"
#include "models/operations/grouped.hpp"

namespace orrery::scenarios {

namespace {

/// One small model and how a rank runs it.
struct Case {
  const char* family;
  int hidden, heads, seq, micro_batch, tensor, vocab;
  bool with_others;  // also timed with several ranks at once
};

/// Corners and middles of what one core trains in seconds: widths 64 to 768, 64 to 512 tokens.
/// The optimizer's and the vocabulary's sizes vary along.
constexpr Case cases[] = {
    {"gpt", 64, 2, 64, 1, 1, 512, false},      {"gpt", 128, 4, 128, 1, 1, 1024, true},
    {"gpt", 128, 2, 256, 2, 1, 512, false},    {"gpt", 256, 4, 128, 1, 1, 2048, true},
    {"gpt", 256, 8, 256, 1, 2, 1024, false},   {"gpt", 256, 4, 64, 4, 1, 512, false},
    {"gpt", 384, 6, 256, 1, 1, 1024, false},   {"gpt", 512, 8, 256, 1, 1, 4096, true},
    {"gpt", 512, 8, 128, 1, 2, 2048, false},   {"gpt", 768, 12, 128, 1, 1, 1024, false},
    {"gpt", 192, 6, 512, 1, 1, 1024, false},   {"gpt", 128, 4, 128, 4, 2, 2048, false},
    {"llama", 256, 4, 128, 1, 1, 1024, false}, {"llama", 384, 6, 256, 1, 1, 2048, false},
    {"llama", 128, 4, 128, 2, 1, 512, false},  {"llama", 512, 8, 128, 1, 1, 4096, true},
    {"llama", 256, 8, 256, 2, 2, 1024, false},
};

Json model_json(const Case& of) {
  Json json{{"format", "orrery-model"}, {"name", of.family},
            {"family", of.family},      {"layers", 2},
            {"hidden", of.hidden},      {"heads", of.heads},
            {"vocab", of.vocab},        {"max_positions", of.seq}};
  if (json["family"] == "llama") json["ffn_hidden"] = (8 * of.hidden / 3 + 63) / 64 * 64;
  return json;
}

Json plan_json(const Case& of) {
  return {{"tensor", of.tensor}, {"micro_batch", of.micro_batch}, {"global_batch", of.micro_batch},
          {"seq_len", of.seq},   {"precision", "fp32"},           {"recompute", "none"}};
}

std::unique_ptr<models::Program> lowered(const Case& of, const models::Software& software) {
  const Document model_file = Document::from(model_json(of), "calibration model");
  const Document plan_file = Document::from(plan_json(of), "calibration plan");
  const models::Model model = models::read_model(model_file.root());
  std::vector<std::string> defaults;
  const models::Plan plan = models::read_plan(plan_file.root(), model, of.tensor, defaults);
  return std::make_unique<models::Program>(
      models::lower({model, plan, software, hardware::Generation::cpu}));
}

/// Layers of experts, of tokens whose counts are alike or follow Zipf's law.
constexpr struct {
  std::int64_t experts, k, n, rows;
} expert_cases[] = {{4, 128, 256, 128}, {8, 256, 512, 512}};

void add_experts(CalibrationBlocks& made) {
  using models::ExpertsProduct;
  for (const auto& of : expert_cases) {
    for (const bool skewed : {false, true}) {
      const models::ExpertsShape shape{.rows = skewed ? calibrate::zipf_rows(of.rows, of.experts)
                                                      : calibrate::even_rows(of.rows, of.experts),
                                       .k = of.k,
                                       .n = of.n,
                                       .dtype = models::DType::fp32};
      for (const auto which : {ExpertsProduct::forward, ExpertsProduct::input_gradient,
                               ExpertsProduct::weight_gradient}) {
        made.experts.push_back(std::make_unique<models::Block>(experts_block(shape, which)));
        const models::Block& block = *made.experts.back();
        made.blocks.push_back({fmt::format("{} x {} x {}, {} rows{}", of.experts, of.k, of.n,
                                           of.rows, skewed ? " skewed" : "") +
                                   " " + block.name,
                               &block, &made.programs.front()->model, false});
      }
    }
  }
}

}  // namespace

CalibrationBlocks calibration_blocks(const models::Software& software) {
  CalibrationBlocks made;
  std::set<std::string> names;
  for (const Case& of : cases) {
    made.programs.push_back(lowered(of, software));
    const models::Program& program = *made.programs.back();
    for (const models::Block& block : program.blocks) {
      std::string name = fmt::format("{} {} x {} x {} t{} v{} {}", of.family, of.hidden, of.seq,
                                     of.micro_batch, of.tensor, of.vocab, block.name);
      if (block.operations.empty() || !names.insert(name).second) continue;
      made.blocks.push_back({std::move(name), &block, &program.model, of.with_others});
    }
  }
  add_experts(made);
  return made;
}

}  // namespace orrery::scenarios

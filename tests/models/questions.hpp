#pragma once
// Questions from names of the catalogue, for tests.

#include <string>

#include "hardware/catalogue.hpp"
#include "models/lowering/lower.hpp"
#include "models/prediction/prediction.hpp"
#include "tests/models/draft.hpp"
#include "tests/models/indices.hpp"

namespace orrery::models {

inline Model catalogue_model(const std::string& name) {
  const Document document = Document::from(model_config(name), name);
  return read_model(document.root());
}

inline Software catalogue_software(const std::string& name) {
  const Document document = Document::from(software_profile(name), name);
  return read_software(document.root());
}

/// `plan` as on the command line; degrees and batches left out are derived.
inline Question question(const std::string& model, const std::string& cluster,
                         const std::string& plan, const std::string& software = "megatron-lm") {
  Question asked;
  asked.model = catalogue_model(model);
  asked.cluster = hardware::named_cluster(cluster);
  asked.software = catalogue_software(software);
  const Document document = Document::from(plan_from_text(plan), "plan");
  asked.plan = read_plan(document.root(), asked.model, asked.cluster.gpus(), asked.assumptions);
  return asked;
}

/// A GPT of a few layers, small enough to type its numbers.
///   h = 8, 2 heads of 4, f = 32, 16 tokens, 8 positions
inline Model tiny_gpt(std::int64_t layers) {
  ModelDraft model;
  model.name = "tiny";
  model.depth = layers;
  model.hidden = 8;
  model.attention.heads = model.attention.kv_heads = 2;
  model.attention.head_dim = 4;
  model.mlp.width = 32;
  model.embedding.vocab = 16;
  model.embedding.max_positions = 8;
  return built(std::move(model));
}

/// A plain stack for tests of structure: fp32 accumulation fused, no dropout, no host costs.
inline Software plain_software() {
  Software software;
  software.name = "plain";
  software.kernels.gemm_derate["default"] = 1;
  software.kernels.attention["default"] = "unfused";
  return software;
}

/// A stack whose fused kernel takes attention sinks, too: it computes no masked score.
inline Software fused_software() {
  Software software = plain_software();
  software.kernels.attention["default"] = "cudnn";
  return software;
}

/// A Program of the tiny model; the plan's degrees are given, its sequences are 8 tokens long.
inline Program tiny_program(Plan plan, std::int64_t layers,
                            const Software& software = plain_software()) {
  plan.batch.seq_len = 8;
  const Model model = tiny_gpt(layers);
  return lower(BlockInputs{model, plan, software});
}

}  // namespace orrery::models

#include "models/plan/layers_per_chunk.hpp"

#include "sim/errors.hpp"

namespace orrery::models {

std::vector<std::int64_t> layers_per_chunk(const Plan& plan, const Model& model) {
  if (!plan.stages.layers.empty()) return plan.stages.layers;
  const std::int64_t chunks = plan.chunks();
  ensure(chunks >= 1, "a plan has at least one chunk");
  const std::int64_t ends = plan.stages.embedding_counts ? 2 : 0;
  // A layer that predicts further tokens (MTP) takes as long as a layer and is on the last chunk.
  std::int64_t ahead =
      chunks > 1 ? model.prediction_layers * std::ssize(prediction_module(model)) : 0;
  if ((model.layers.size() + ahead + ends) / chunks < ahead + ends / 2) ahead = 0;
  const std::int64_t slots = model.layers.size() + ahead + ends;
  std::vector<std::int64_t> layers(static_cast<std::size_t>(chunks), slots / chunks);
  // Chunks 1, 2, ..., then 0: the remainder is below `chunks`, so the last one never gets more.
  for (std::int64_t extra = 0; extra < slots % chunks; ++extra) {
    const std::int64_t chunk = extra + 1 < chunks - 1 ? extra + 1 : 0;
    layers[static_cast<std::size_t>(chunk)] += 1;
  }
  if (plan.stages.embedding_counts) {
    layers.front() -= 1;
    layers.back() -= 1;
  }
  layers.back() -= ahead;
  return layers;
}

}  // namespace orrery::models

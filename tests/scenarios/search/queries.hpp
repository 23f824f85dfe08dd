#pragma once
// Small searches for tests.

#include <string>

#include "hardware/catalogue.hpp"
#include "models/software/software.hpp"
#include "scenarios/search/plan_search.hpp"

namespace orrery::scenarios {

inline PlanQuery plan_query(const std::string& model, const std::string& cluster,
                            std::int64_t global_batch, std::int64_t seq_len,
                            Breadth breadth = Breadth::reduced) {
  const Document config = Document::from(models::model_config(model), model);
  const Document profile = Document::from(models::software_profile("megatron-lm"), "profile");
  PlanQuery query;
  query.model = models::read_model(config.root());
  query.cluster = hardware::named_cluster(cluster);
  query.software = models::read_software(profile.root());
  query.global_batch = global_batch;
  query.seq_len = seq_len;
  query.breadth = breadth;
  return query;
}

/// What a search makes of a plan when it refines recomputation.
inline std::vector<models::Plan> recomputing_variants(const PlanQuery& query,
                                                      const models::Plan& plan) {
  std::vector<models::Plan> all = partly_recomputed(query, plan);
  for (models::Plan& each : with_other_modules(query, plan)) all.push_back(std::move(each));
  return all;
}

}  // namespace orrery::scenarios

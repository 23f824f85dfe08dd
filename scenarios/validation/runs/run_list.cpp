#include "scenarios/validation/runs/run_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/model/model_file.hpp"
#include "models/model/operation_list.hpp"
#include "models/plan/plan.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

/// The catalogue's lists, by their names and aliases.
const std::map<std::string, std::string, std::less<>>& known_lists() {
  static const std::map<std::string, std::string, std::less<>> known = [] {
    std::map<std::string, std::string, std::less<>> names;
    for (const std::string& name : models::model_names()) {
      const Document config = Document::from(models::model_config(name), name);
      if (!models::is_operation_list(config.root())) continue;
      names[name] = name;
      const auto aliases = config.root().find("aliases");
      if (!aliases) continue;
      for (const Node& each : aliases->elements()) names[each.as<std::string>()] = name;
    }
    return names;
  }();
  return known;
}

}  // namespace

bool names_list(const MeasuredRun& run) {
  return known_lists().contains(run.model) || run.model.ends_with(".json");
}

models::Model list_model_of(const MeasuredRun& run) {
  const auto found = known_lists().find(run.model);
  const Document document =
      found == known_lists().end()
          ? models::load_model(run.model)
          : Document::from(models::model_config(found->second), found->second);
  models::Model model = models::read_model(document.root());
  if (!model.list) {
    throw InputError{run.model, "is no list of operations; rows of other models state their sizes"};
  }
  return model;
}

std::string missing_of_list(const MeasuredRun& run) {
  if (!run.gpus) return "gpus is not stated";
  if (!run.plan.contains("global_batch")) return "global_batch is not stated";
  return {};
}

models::Plan list_plan_of(const MeasuredRun& run, const models::Model& model,
                          std::vector<std::string>& assumptions) {
  const std::int64_t gpus = *run.gpus, batch = *run.count("global_batch");
  Json plan{{"data", gpus}, {"global_batch", batch}};
  if (const auto micro = run.count("micro_batch")) {
    plan["micro_batch"] = *micro;
  } else if (batch % gpus == 0) {
    plan["micro_batch"] = batch / gpus;
    assumptions.push_back(
        fmt::format("/plan/micro_batch: not stated; {} assumed, one of each GPU", batch / gpus));
  } else {
    throw InputError{
        fmt::format("{} GPUs do not divide a batch of {}, and micro_batch is not "
                    "stated",
                    gpus, batch)};
  }
  if (const std::string precision = run.stated("precision"); !precision.empty()) {
    plan["precision"] = precision;
  }
  const Document document = Document::from(plan, "plan");
  return models::read_plan(document.root(), model, gpus, assumptions);
}

}  // namespace orrery::scenarios

// The plan of a measured run: its stated cells, and the stack's defaults for the others.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "models/plan/fields.hpp"
#include "models/software/recipes.hpp"
#include "scenarios/scenario/stack_defaults.hpp"
#include "scenarios/validation/runs/run_question.hpp"

namespace orrery::scenarios {

using models::Model;
using models::Plan;
using models::PlanField;
using models::RunDefaults;

namespace {

constexpr std::string_view default_of_stack = "the stack's default";

/// Default micro-batch: without a pipeline the whole batch of a rank, halved until it is at most
/// 16, as activations usually fit; with a pipeline 1, so that its bubble is short.
std::int64_t usual_micro_batch(const Plan& plan) {
  constexpr std::int64_t most = 16;
  if (plan.pipeline > 1) return 1;
  std::int64_t size = std::max<std::int64_t>(1, plan.batch.global / plan.data);
  while (size > most && size % 2 == 0) size /= 2;
  return size > most ? 1 : size;
}

/// Whether layers divide evenly over chunks only if embedding and head count as one layer each.
bool ends_count(const Plan& plan, const Model& model) {
  return plan.chunks() > 1 && model.layers.size() % plan.chunks() != 0 &&
         (model.layers.size() + 2) % plan.chunks() == 0;
}

/// A default plan with the fields that a run states.
Plan stated_plan(const MeasuredRun& run) {
  Plan plan;
  for (const PlanField& field : models::plan_fields()) {
    const std::string cell = run.stated(field.key);
    if (cell.empty()) continue;
    const Json value = field.json_of_cell(cell);
    field.read_value(Node{value, run.run, fmt::format("/plan/{}", field.key)}, plan);
  }
  return plan;
}

/// Fills in the plan fields that a run does not state.
struct Unstated {
  const MeasuredRun& run;
  const Model& model;
  const RunDefaults& defaults;
  std::string_view stack;

  /// Fills in one field; returns the reason, or an empty text if it needs no mention.
  std::string fill(const PlanField& field, Plan& plan) const {
    if (field.key == "data") {
      plan.data =
          std::max<std::int64_t>(1, *run.gpus / (plan.tensor * plan.context * plan.pipeline));
      return plan.context > 1 ? "the GPUs over tensor, context and pipeline"
                              : "the GPUs over tensor and pipeline";
    }
    if (field.key == "micro_batch") {
      plan.batch.micro = usual_micro_batch(plan);
      return std::string{default_of_stack};
    }
    if (field.key == "virtual_stages") {
      if (plan.pipeline == 1) return {};
      plan.stages.virtual_stages = usual_virtual_stages(plan, model, defaults.layers_per_chunk);
      return std::string{default_of_stack};
    }
    if (field.stack == PlanField::Stack::has_default) return fill_from_stack(field, plan);
    return field.title == PlanField::Title::degree ? "the field's default" : "";
  }

  std::string fill_from_stack(const PlanField& field, Plan& plan) const {
    const bool of_experts = field.group == PlanField::Group::experts;
    if (of_experts && usual_experts(model).count == 0) return {};
    if (field.key == "sequence" && plan.tensor == 1) return {};
    const Json value = field.json(defaults.plan);
    if (value.is_null()) return {};  // the field's own default
    field.read_value(Node{value, run.run, ""}, plan);
    return std::string{default_of_stack};
  }
};

/// The release that a run states, or else the last one of its year.
models::Release release_of(const MeasuredRun& run) {
  if (run.release.empty()) return models::last_release_of(static_cast<int>(run.year.value_or(0)));
  models::Release numbers{0};
  for (const char each : run.release) {
    if (each == '.') {
      numbers.push_back(0);
    } else if (each >= '0' && each <= '9' && numbers.back() < 10000) {
      numbers.back() = 10 * numbers.back() + (each - '0');
    } else {
      return {};
    }
  }
  return numbers;
}

/// Applies the stack's recipes to fields that the run does not state, except the keys in
/// `left_out`.
std::vector<models::RecipeChoice> from_recipes(const MeasuredRun& run, std::string_view stack,
                                               const Model& model, const hardware::Gpu* gpu,
                                               const std::vector<std::string>& left_out,
                                               Plan& plan) {
  if (gpu == nullptr) return {};
  const models::RecipeQuestion asked{.stack = run.software,
                                     .year = static_cast<int>(run.year.value_or(0)),
                                     .model = model,
                                     .gpu = *gpu,
                                     .task = plan.task,
                                     .precision = plan.formats.precision,
                                     .recompute = plan.recompute.kind,
                                     .zero = plan.sharding.zero,
                                     .degrees = models::recipe_degrees(plan),
                                     .release = release_of(run),
                                     .gpus = run.gpus.value_or(0),
                                     .global_batch = plan.batch.global};
  // A table's "fp8" does not say which scaling recipe: the stack's applies.
  const auto stated = [&](std::string_view key) {
    const bool any_fp8 = key == "precision" && plan.formats.precision == models::Precision::fp8;
    const bool left = std::find(left_out.begin(), left_out.end(), key) != left_out.end();
    return left || (run.plan.contains(key) && !any_fp8);
  };
  std::vector<models::RecipeChoice> taken = models::take_recipe(asked, stated, plan);
  if (stack == run.software) return taken;
  // The profile's own, for what the run's stack leaves open.
  models::RecipeQuestion of_profile = asked;
  of_profile.stack = stack;
  const std::vector<models::RecipeChoice> first = taken;
  const auto known = [&](std::string_view key) {
    return stated(key) || std::ranges::find(first, key, &models::RecipeChoice::key) != first.end();
  };
  std::ranges::move(models::take_recipe(of_profile, known, plan), std::back_inserter(taken));
  return taken;
}

/// Makes fields consistent with the degrees, even where a run states otherwise.
void settle(Plan& plan) {
  if (plan.pipeline == 1) plan.stages.virtual_stages = 1;
  if (plan.tensor == 1) plan.sequence_parallel = false;
  const models::Schedule& stated = models::builtin_schedules().at(plan.stages.schedule);
  const bool one = stated.chunks == models::ChunksPerStage::one;
  if (one != (plan.stages.virtual_stages == 1))
    plan.stages.schedule = models::default_schedule(plan.stages.virtual_stages);
}

/// A run's plan, the recipe settings in it, and the reasons for its other defaults.
struct FilledPlan {
  Plan plan;
  std::vector<models::RecipeChoice> taken{};
  std::vector<std::string> assumptions{};

  bool takes(std::string_view key) const {
    return std::any_of(taken.begin(), taken.end(),
                       [&](const models::RecipeChoice& each) { return each.key == key; });
  }
};

FilledPlan filled_plan(const Unstated& all, const hardware::Gpu* gpu,
                       const std::vector<std::string>& left_out) {
  const MeasuredRun& run = all.run;
  FilledPlan filled{.plan = stated_plan(run)};
  Plan& plan = filled.plan;
  filled.taken = from_recipes(run, all.stack, all.model, gpu, left_out, plan);
  for (const models::RecipeChoice& each : filled.taken) {
    filled.assumptions.push_back(assumption_of(each, run.software));
  }
  for (const PlanField& field : models::plan_fields()) {
    const bool stated = run.plan.contains(field.key) || filled.takes(field.key);
    if (field.column.empty() || stated) continue;
    const std::string reason = all.fill(field, plan);
    if (reason.empty()) continue;
    filled.assumptions.push_back(
        fmt::format("/plan/{}: not stated; {} assumed, {}", field.key, field.text(plan), reason));
  }
  settle(plan);
  const bool cut = filled.takes("stage_layers") || filled.takes("embedding_counts");
  if (!cut && ends_count(plan, all.model)) {
    plan.stages.embedding_counts = true;
    filled.assumptions.push_back(
        "/plan/embedding_counts: not stated; true assumed, as the layers divide evenly no other "
        "way");
  }
  return filled;
}

}  // namespace

Plan plan_of(const MeasuredRun& run, const Model& model, const models::Software& software,
             std::vector<std::string>& assumptions, const hardware::Gpu* gpu) {
  const Unstated all{run, model, software.defaults, software.name};
  std::vector<std::string> left_out;
  FilledPlan filled = filled_plan(all, gpu, left_out);
  while (!filled.taken.empty()) {
    const std::string key =
        models::key_in_conflict(models::conflicts(filled.plan, model, *run.gpus), filled.taken);
    if (key.empty()) break;
    left_out.push_back(key);
    filled = filled_plan(all, gpu, left_out);
  }
  assumptions.insert(assumptions.end(), filled.assumptions.begin(), filled.assumptions.end());
  return std::move(filled.plan);
}

}  // namespace orrery::scenarios

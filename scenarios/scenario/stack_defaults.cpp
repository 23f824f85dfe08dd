#include "scenarios/scenario/stack_defaults.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/plan/conflicts.hpp"
#include "models/plan/fields.hpp"

namespace orrery::scenarios {

using models::Plan;
using models::PlanField;

namespace {

constexpr std::string_view of_the_stack = "the stack's default";

/// Does the default concern this plan at all?
bool concerns(const PlanField& field, const models::Question& question) {
  const Plan& plan = question.plan;
  if (field.group == PlanField::Group::experts && usual_experts(question.model).count == 0) {
    return false;
  }
  if (field.key == "precision") return false;
  if (field.key == "zero") return plan.data > 1;
  return field.key != "sequence" || plan.tensor > 1;
}

/// Takes a changed plan unless it has a conflict that the plan had not before, and returns that.
std::optional<models::Conflict> take(models::Question& question, const Plan& changed) {
  const std::vector<models::Conflict> already = models::conflicts(question);
  const auto is_new = [&](const models::Conflict& each) {
    return std::ranges::none_of(already, [&](const models::Conflict& old) {
      return old.pointer == each.pointer && old.problem == each.problem;
    });
  };
  const Plan before = question.plan;
  question.plan = changed;
  const std::vector<models::Conflict> now = models::conflicts(question);
  const auto found = std::ranges::find_if(now, is_new);
  if (found == now.end()) return std::nullopt;
  question.plan = before;
  return *found;
}

/// Cuts a pipeline into as many chunks as the stack does.
void take_chunks(models::Question& question, const std::function<bool(std::string_view)>& stated,
                 std::vector<models::RecipeChoice>& taken) {
  for (const char* key : {"virtual_stages", "schedule", "stage_layers", "embedding_counts"}) {
    if (stated(key)) return;
  }
  Plan changed = question.plan;
  if (changed.pipeline == 1 || changed.stages.virtual_stages != 1) return;
  changed.stages.virtual_stages =
      usual_virtual_stages(changed, question.model, question.software.defaults.layers_per_chunk);
  if (changed.stages.virtual_stages == 1) return;
  changed.stages.schedule = models::default_schedule(changed.stages.virtual_stages);
  if (take(question, changed)) return;
  taken.push_back({"virtual_stages", changed.stages.virtual_stages, std::string{of_the_stack}});
}

}  // namespace

std::optional<models::AttentionKernel> kernel_with_sinks(const models::Model& model,
                                                         const hardware::Gpu& gpu,
                                                         const models::Software& software) {
  const auto with = models::AttentionKernel::cudnn;
  const std::string word{word_of(models::attention_kernel_words, with)};
  const std::string_view own = software.attention(gpu.generation.name);
  const bool changes = usual_attention(model).sinks && own != word && own != "unfused";
  return changes && gpu.attention.count(word) > 0 ? std::optional{with} : std::nullopt;
}

std::int64_t usual_virtual_stages(const Plan& plan, const models::Model& model,
                                  std::int64_t layers_per_chunk) {
  const bool cuts =
      layers_per_chunk > 0 && plan.pipeline > 1 && model.layers.size() % plan.pipeline == 0;
  if (!cuts || plan.micro_batches() % plan.pipeline != 0) return 1;
  const std::int64_t on_stage = model.layers.size() / plan.pipeline;
  std::int64_t best = 1;
  const auto distance = [&](std::int64_t chunks) {
    return std::abs(
        std::log(static_cast<double>(on_stage) / static_cast<double>(chunks * layers_per_chunk)));
  };
  for (std::int64_t chunks = 2; chunks <= on_stage; ++chunks) {
    if (on_stage % chunks == 0 && distance(chunks) <= distance(best)) best = chunks;
  }
  return best;
}

StackDefaults take_stack_defaults(models::Question& question,
                                  const std::function<bool(std::string_view)>& stated) {
  StackDefaults found;
  for (const std::string& key : question.software.defaults.stated) {
    const PlanField& field = models::plan_field(key);
    if (stated(key) || !concerns(field, question)) continue;
    Plan changed = question.plan;
    const Json value = field.json(question.software.defaults.plan);
    field.read_value(Node{value, question.software.name, "/defaults/" + key}, changed);
    if (field.json(changed) == field.json(question.plan)) continue;
    if (const auto conflict = take(question, changed)) {
      found.conflicting.push_back({key, value, conflict->problem});
    } else {
      found.taken.push_back({key, value, std::string{of_the_stack}});
    }
  }
  take_chunks(question, stated, found.taken);
  const auto kernel = kernel_with_sinks(question.model, question.cluster.gpu(), question.software);
  if (kernel && !stated("attention")) {
    question.plan.kernels.attention = *kernel;
    found.taken.push_back({"attention", models::plan_field("attention").json(question.plan),
                           std::string{of_the_stack}});
  }
  return found;
}

}  // namespace orrery::scenarios

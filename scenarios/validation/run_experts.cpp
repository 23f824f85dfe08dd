#include "scenarios/validation/run_experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "models/plan/fields.hpp"
#include "models/software/descent.hpp"
#include "scenarios/embedded.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

using models::Model;
using models::Plan;

namespace {

/// A published configuration: what it calls its architecture, and its model.
struct Architecture {
  std::string type;
  Model model;
};

std::string type_in(const Json& config) {
  std::string type = config.value("model_type", config.value("name", ""));
  constexpr std::string_view suffix = "_text";
  if (type.ends_with(suffix)) type.resize(type.size() - suffix.size());
  return type;
}

/// The catalogue's models with experts.
const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> known = [] {
    std::vector<Architecture> read;
    for (const std::string& name : models::model_names()) {
      const Json config = models::model_config(name);
      Model model = models::read_model(Document::from(config, name).root());
      if (model.experts > 0) read.push_back({type_in(config), std::move(model)});
    }
    return read;
  }();
  return known;
}

bool agrees(const std::optional<std::int64_t>& stated, std::int64_t value) {
  return !stated || *stated == value;
}

const Architecture* architecture_of(const MeasuredRun& run) {
  for (const Architecture& each : architectures()) {
    const Model& model = each.model;
    const bool same = agrees(run.hidden, model.hidden) && agrees(run.heads, model.heads) &&
                      agrees(run.kv_heads, model.kv_heads) && agrees(run.experts, model.experts) &&
                      agrees(run.experts_per_token, model.experts_per_token) &&
                      agrees(run.ffn_hidden, model.ffn_hidden);
    if (same) return &each;
  }
  return nullptr;
}

/// Ordinary attention, gated experts on every layer.
Model plain_model_of(const MeasuredRun& run) {
  Model model;
  model.family = models::Family::llama;
  model.hidden = *run.hidden;
  model.heads = *run.heads;
  model.head_dim = model.hidden / model.heads;
  model.kv_heads = run.kv_heads.value_or(model.heads);
  model.ffn_hidden = run.ffn_hidden.value_or(4 * model.hidden);
  model.experts = *run.experts;
  model.experts_per_token = run.experts_per_token.value_or(2);
  model.vocab = 32000;
  model.norm = models::Norm::rms_norm;
  model.positions = models::Positions::rotary;
  model.activation = models::Activation::silu;
  model.gated_mlp = true;
  model.qkv_bias = model.output_bias = model.mlp_bias = model.norm_bias = false;
  model.tied_embeddings = false;
  return model;
}

// --- recipes --------------------------------------------------------------------------------

/// "26.02.01" as numbers that compare in order.
std::vector<int> numbers_in(std::string_view release) {
  std::vector<int> numbers{0};
  for (const char each : release) {
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

/// Where it is not stated, the end of its year.
std::vector<int> release_of(const MeasuredRun& run) {
  if (!run.release.empty()) return numbers_in(run.release);
  return {static_cast<int>(run.year.value_or(2099) % 100), 99};
}

/// Of the release's month or earlier: patches of a month ship the recipes of that month.
bool by_month_of(const std::vector<int>& recipe, const std::vector<int>& run) {
  const auto month = [](const std::vector<int>& release) {
    return std::pair{release.empty() ? 0 : release[0], release.size() < 2 ? 0 : release[1]};
  };
  return month(recipe) <= month(run);
}

/// Stacks of which one took over another's recipes: a profile, its parent and its children.
bool share_recipes(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const auto parent_of = [](const std::string& stack) -> std::string {
    const std::vector<std::string> known = models::software_names();
    if (std::find(known.begin(), known.end(), stack) == known.end()) return {};
    return models::written_profile(stack).value("parent", "");
  };
  return parent_of(one) == other || parent_of(other) == one;
}

/// A line of recipes.csv.
struct Recipe {
  std::string stack, architecture, gpu, tensor, pipeline, virtual_stages, expert, source;
  std::string dispatcher, expert_tensor, capacity, expert_overlap, permute_fusion;
  std::vector<int> release;
  std::string release_text;
};

Recipe read_recipe(const Row& row) {
  const auto cell = [&](const char* column) { return std::string{row.text(column)}; };
  return {.stack = cell("stack"),
          .architecture = cell("architecture"),
          .gpu = cell("gpu"),
          .tensor = cell("tp"),
          .pipeline = cell("pp"),
          .virtual_stages = cell("virtual_stages"),
          .expert = cell("ep"),
          .source = cell("source"),
          .dispatcher = cell("dispatcher"),
          .expert_tensor = cell("expert_tensor"),
          .capacity = cell("capacity"),
          .expert_overlap = cell("expert_overlap"),
          .permute_fusion = cell("permute_fusion"),
          .release = numbers_in(cell("release")),
          .release_text = cell("release")};
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> known = [] {
    std::vector<Recipe> read;
    for (const EmbeddedFile& file : embedded_files()) {
      if (!file.path.ends_with("recipes.csv")) continue;
      const orrery::Table table =
          orrery::Table::parse(std::string{file.text}, std::string{file.path});
      for (std::size_t i = 0; i < table.size(); ++i) read.push_back(read_recipe(table[i]));
    }
    return read;
  }();
  return known;
}

/// Those that agree, if any does. Does any?
bool prefer(std::vector<const Recipe*>& left, const std::function<bool(const Recipe&)>& agrees) {
  const auto found =
      std::stable_partition(left.begin(), left.end(), [&](const Recipe* r) { return agrees(*r); });
  if (found == left.begin()) return false;
  left.erase(found, left.end());
  return true;
}

const Recipe* recipe_of(const MeasuredRun& run, const std::string& architecture) {
  const std::vector<int> release = release_of(run);
  std::vector<const Recipe*> left;
  for (const Recipe& each : recipes()) {
    if (each.architecture != architecture || !by_month_of(each.release, release)) continue;
    if (share_recipes(run.software, each.stack)) left.push_back(&each);
  }
  if (left.empty()) return nullptr;
  const std::string chunks = run.stated("virtual_stages");
  prefer(left, [&](const Recipe& each) { return each.gpu == run.gpu; });
  prefer(left, [&](const Recipe& each) { return each.expert == run.stated("expert"); });
  const bool same_degrees = prefer(left, [&](const Recipe& each) {
    return each.tensor == run.stated("tensor") && each.pipeline == run.stated("pipeline");
  });
  if (!same_degrees) prefer(left, [&](const Recipe& each) { return each.stack == run.software; });
  prefer(left, [&](const Recipe& each) {
    return each.virtual_stages == (chunks.empty() ? "1" : chunks);
  });
  prefer(left, [&](const Recipe& each) { return each.release <= release; });
  return *std::max_element(left.begin(), left.end(), [](const Recipe* a, const Recipe* b) {
    return a->release < b->release;
  });
}

}  // namespace

bool has_experts(const MeasuredRun& run) {
  return run.experts.value_or(1) > 1;
}

std::string missing_of_experts(const MeasuredRun& run) {
  if (run.experts_per_token.value_or(1) > *run.experts) {
    return "experts_per_token is more than the experts";
  }
  const Architecture* known = architecture_of(run);
  if (known && known->model.not_simulated) return *known->model.not_simulated;
  if (!known && run.family == "mla-moe") {
    return "latent attention of sizes that no known configuration has";
  }
  return {};
}

Model expert_model_of(const MeasuredRun& run, std::vector<std::string>& assumptions) {
  const Architecture* known = architecture_of(run);
  Model model = known ? known->model : plain_model_of(run);
  if (known) {
    assumptions.push_back(fmt::format("/model: what is not stated as in {}", model.name));
  } else {
    assumptions.push_back("/model: experts on every layer taken, gated, none shared");
  }
  model.name = run.model;
  model.layers = *run.layers;
  model.vocab = run.vocab.value_or(model.vocab);
  model.max_positions = *run.count("seq_len");
  model.gemm_parameters = 0;
  model.parameters = models::count_parameters(model);
  model.active_parameters = models::count_active_parameters(model);
  return model;
}

void follow_recipe(const MeasuredRun& run, Plan& plan, std::vector<std::string>& assumptions) {
  // Megatron-Core runs experts under tensor parallelism with sequence parallelism alone.
  if (plan.tensor > 1) plan.sequence_parallel = true;
  const std::int64_t ranks = plan.gpus() / plan.pipeline;
  plan.expert_tensor = ranks % (plan.expert * plan.tensor) == 0 ? plan.tensor : 1;
  const Architecture* known = architecture_of(run);
  const Recipe* recipe = known ? recipe_of(run, known->type) : nullptr;
  if (!recipe) {
    assumptions.push_back(
        "/plan/dispatcher: alltoall taken, expert_tensor as tensor; no recipe of this stack and "
        "release");
    return;
  }
  std::string taken;
  const auto take = [&](const char* key, const std::string& cell) {
    if (cell.empty()) return;
    const models::PlanField& field = models::plan_field(key);
    const Json value = field.json_of(cell);
    field.read_value(Node{value, run.run, ""}, plan);
    taken += fmt::format("{}{} {}", taken.empty() ? "" : ", ", key, cell);
  };
  take("dispatcher", recipe->dispatcher);
  take("expert_tensor", recipe->expert_tensor);
  take("capacity", recipe->capacity);
  take("expert_overlap", recipe->expert_overlap);
  take("permute_fusion", recipe->permute_fusion);
  assumptions.push_back(fmt::format("/plan: {} taken, as in the recipe of {} {} on {} ({})", taken,
                                    recipe->stack, recipe->release_text, recipe->gpu,
                                    recipe->source));
}

}  // namespace orrery::scenarios

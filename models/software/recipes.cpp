#include "models/software/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/embedded.hpp"
#include "models/plan/fields.hpp"
#include "models/software/published_recipes.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {

namespace {

constexpr std::string_view tables = "models/recipes/";
constexpr std::int64_t any_size = std::int64_t{1} << 40;

struct Rule {
  std::string stack, gpu, generation, source;
  std::optional<Task> task;
  std::optional<Precision> precision;
  std::optional<Recompute> recompute;
  std::optional<Zero> zero;
  std::int64_t from_year = 0, to_year = 9999;
  Release to_release;                     // none: any
  std::int64_t layers = 0, experts = -1;  // 0 and -1: any
  std::int64_t experts_from = 0;
  std::int64_t hidden_from = 0, hidden_to = any_size;
  Json plan;

  bool holds(const RecipeQuestion& asked) const {
    const bool of_year = asked.year == 0 || (asked.year >= from_year && asked.year <= to_year);
    const bool of_release =
        to_release.empty() || (!asked.release.empty() && asked.release <= to_release);
    const bool dated = of_year && of_release;
    const Model& model = asked.model;
    const bool sized = (layers == 0 || layers == model.layers.size()) &&
                       (experts < 0 || experts == usual_experts(model).count) &&
                       usual_experts(model).count >= experts_from && model.hidden >= hidden_from &&
                       model.hidden <= hidden_to;
    return stack == asked.stack && dated && sized && (!task || task == asked.task) &&
           (!precision || precision == asked.precision) &&
           (!recompute || recompute == asked.recompute) && (!zero || zero == asked.zero) &&
           (gpu.empty() || gpu == asked.gpu.name) &&
           (generation.empty() || generation == asked.gpu.generation.name);
  }
};

/// Parses every value as the plan field that it names, so that a mistake is found at the start.
void check_choices(const Node& choices, std::optional<Task> task) {
  for (const auto& [key, value] : choices.members()) {
    Plan plan;
    plan.task = task.value_or(plan.task);
    plan_field(key).read_value(value, plan);
  }
}

Rule read_rule(const Node& node) {
  node.only({"stack", "task", "from_year", "to_year", "to_release", "gpu", "generation",
             "precision", "recompute", "zero", "layers", "experts", "experts_from", "hidden_from",
             "hidden_to", "plan", "source"});
  Rule rule;
  rule.stack = node["stack"].as<std::string>();
  rule.gpu = node.value_or("gpu", std::string{});
  rule.generation = node.value_or("generation", std::string{});
  rule.source = node["source"].as<std::string>();
  rule.plan = node["plan"].json();
  if (const auto task = node.find("task")) rule.task = task->word(task_words);
  check_choices(node["plan"], rule.task);
  if (const auto each = node.find("precision")) rule.precision = each->word(precision_words);
  if (const auto each = node.find("recompute")) rule.recompute = each->word(recompute_words);
  if (const auto each = node.find("zero")) rule.zero = static_cast<Zero>(each->integer(0, 3));
  rule.from_year = node.value_or("from_year", rule.from_year);
  rule.to_year = node.value_or("to_year", rule.to_year);
  if (const auto each = node.find("to_release")) {
    rule.to_release = release_in(each->as<std::string>());
  }
  rule.layers = node.value_or("layers", rule.layers);
  rule.experts = node.value_or("experts", rule.experts);
  rule.experts_from = node.value_or("experts_from", rule.experts_from);
  rule.hidden_from = node.value_or("hidden_from", rule.hidden_from);
  rule.hidden_to = node.value_or("hidden_to", rule.hidden_to);
  return rule;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> read;
    for (const EmbeddedFile& file : embedded_files()) {
      const bool table = file.path.starts_with(tables) && file.path.ends_with(".json");
      if (!table) continue;
      const Document document = Document::parse(file.text, std::string{file.path});
      document.root().only({"says", "recipes"});
      for (const Node& each : document.root()["recipes"].elements()) {
        read.push_back(read_rule(each));
      }
    }
    return read;
  }();
  return all;
}

/// If the plan states its kind of recomputation, drops the recomputation keys of a recipe with
/// another kind.
void drop_other_recomputation(Recompute stated, std::vector<RecipeChoice>& choices) {
  const auto kind = std::ranges::find(choices, "recompute", &RecipeChoice::key);
  if (kind == choices.end() || kind->value == word_of(recompute_words, stated)) return;
  const std::string source = kind->source;
  std::erase_if(choices, [&](const RecipeChoice& each) {
    return each.source == source && each.key.starts_with("recompute");
  });
}

}  // namespace

Release release_in(std::string_view text) {
  Release release;
  for (const std::string_view part : split(text, '.')) {
    release.push_back(number_in<int>(part).value_or(0));
  }
  return release;
}

RecipeDegrees recipe_degrees(const Plan& plan) {
  return {plan.tensor, plan.pipeline, plan.stages.virtual_stages, plan.context, plan.experts.ranks};
}

Release last_release_of(int year) {
  return year == 0 ? Release{} : Release{year % 100, 99};
}

std::vector<RecipeChoice> recipe_of(const RecipeQuestion& question) {
  std::vector<RecipeChoice> choices = published_choices(question);
  for (const Rule& rule : rules()) {
    if (!rule.holds(question)) continue;
    for (const auto& [key, value] : rule.plan.items()) {
      const bool decided = std::ranges::any_of(
          choices, [&wanted = key](const auto& each) { return each.key == wanted; });
      if (!decided) choices.push_back({key, value, rule.source});
    }
  }
  return choices;
}

std::vector<RecipeChoice> take_recipe(const RecipeQuestion& question,
                                      const std::function<bool(std::string_view)>& stated,
                                      Plan& plan) {
  std::vector<RecipeChoice> choices = recipe_of(question);
  if (stated("recompute")) drop_other_recomputation(question.recompute, choices);
  // A stated imbalance is that of dropless routing: a recipe's capacity does not apply.
  const auto other_rows = [&](const RecipeChoice& each) {
    return each.key == "capacity" && stated("imbalance");
  };
  std::erase_if(choices, other_rows);
  // How layers are cut into chunks is one choice, which either key states.
  if (stated("stage_layers") || stated("embedding_counts")) {
    std::erase_if(choices, [](const RecipeChoice& each) {
      return each.key == "stage_layers" || each.key == "embedding_counts";
    });
  }
  std::erase_if(choices, [&](const RecipeChoice& each) { return stated(each.key); });
  for (const RecipeChoice& each : choices) {
    plan_field(each.key).read_value(Node{each.value, each.source, ""}, plan);
  }
  return choices;
}

std::string key_in_conflict(const std::vector<Conflict>& found,
                            const std::vector<RecipeChoice>& taken) {
  for (const Conflict& conflict : found) {
    for (const RecipeChoice& each : taken) {
      const bool whole = conflict.pointer.ends_with("/" + each.key);
      if (whole) return each.key;
    }
  }
  return {};
}

std::string assumption_of(const RecipeChoice& taken, std::string_view stack) {
  const Json& value = taken.value;
  return fmt::format("/plan/{}: not stated; {} assumed, from the recipes of {} ({})", taken.key,
                     value.is_string() ? value.get<std::string>() : value.dump(), stack,
                     taken.source);
}

}  // namespace orrery::models

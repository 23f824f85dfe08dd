#include <fmt/format.h>

#include <algorithm>

#include "hardware/catalogue.hpp"
#include "models/model/model_file.hpp"
#include "models/model/operation_list.hpp"
#include "models/plan/conflicts.hpp"
#include "models/plan/fields.hpp"
#include "scenarios/exchange/sections.hpp"
#include "scenarios/scenario/data_section.hpp"
#include "scenarios/scenario/network_request.hpp"
#include "scenarios/scenario/run_price.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "scenarios/scenario/stack_defaults.hpp"
#include "scenarios/scenario/stack_recipe.hpp"
#include "scenarios/scenario/tokens.hpp"

namespace orrery::scenarios {

namespace {

/// Reads the sections of one scenario.
class ScenarioReader {
 public:
  ScenarioReader(const Json& json, const std::string& file, const Origins& origins)
      : json_{json}, file_{file}, origins_{origins} {}

  /// Applies `read` to a section. Mistakes are reported where the user wrote them: in the section's
  /// own file if it has one, else in the scenario.
  template <class Read>
  auto section(Section which, Read read) const {
    const std::string key = name(which);
    const Json& value = json_.at(key);
    const auto origin = origins_.find(key);
    try {
      return read(Node{value, file_, "/" + key});
    } catch (const InputError& error) {
      const bool own = origin != origins_.end() && !is_changed(origin->second, error.place());
      if (own) read(Node{value, origin->second.file, origin->second.pointer});
      throw;
    }
  }

  [[noreturn]] void refuse(const models::Conflict& conflict) const {
    for (const auto& [key, origin] : origins_) {
      const std::string head = "/" + key;
      if (conflict.pointer.compare(0, head.size(), head) != 0) continue;
      if (is_changed(origin, file_ + ":" + conflict.pointer)) break;
      const std::string rest = origin.pointer + conflict.pointer.substr(head.size());
      throw InputError{rest.empty() ? origin.file : origin.file + ":" + rest, conflict.problem};
    }
    throw InputError{file_ + ":" + conflict.pointer, conflict.problem};
  }

 private:
  /// Whether a place in the scenario is one that was changed since the section was read.
  bool is_changed(const Origin& origin, std::string_view place) const {
    return std::ranges::any_of(origin.changed, [&](const std::string& pointer) {
      const std::string changed = file_ + ":" + pointer;
      return place == changed || place.starts_with(changed + "/");
    });
  }

  const Json& json_;
  const std::string& file_;
  const Origins& origins_;
};

/// Applies the stack's rule on whether embedding and head count as layers, if the plan leaves it
/// open.
void apply_stage_rule(const Json& plan, models::Question& question) {
  const bool said = plan.contains("embedding_counts") || plan.contains("stage_layers");
  if (said || !question.software.embedding_counts || question.plan.chunks() < 2) return;
  question.plan.stages.embedding_counts = true;
  for (std::string& each : question.assumptions) {
    if (each.rfind("/plan/stage_layers:", 0) == 0) {
      each = fmt::format("/plan/embedding_counts: not stated; true assumed, as {} splits a model",
                         question.software.name);
    }
  }
}

/// Takes the stack's usual form of context parallelism, if the plan leaves it open.
void apply_context_form(const Json& plan, models::Question& question) {
  const std::vector<models::ContextForm>& known = question.software.runs.context;
  if (plan.contains("context_form") || question.plan.context == 1 || known.empty()) return;
  question.plan.context_exchange.form = known.front();
  for (std::string& each : question.assumptions) {
    if (each.rfind("/plan/context_form:", 0) != 0) continue;
    each = fmt::format("/plan/context_form: not stated; {} assumed, as {} splits sequences",
                       word_of(models::context_form_words, known.front()), question.software.name);
  }
}

/// On one host whose CPU cores are the devices, the plan takes as many cores as it has ranks; the
/// others stay idle.
void take_cores(const Json& plan, models::Question& question) {
  hardware::NodeType& node = question.cluster.node;
  const bool cores = node.scale_up == hardware::ScaleUp::shared_memory;
  if (!cores || question.cluster.nodes != 1 || !plan.contains("data")) return;
  std::int64_t ranks = 1;
  for (const models::PlanField& axis : models::plan_fields()) {
    const std::string key{axis.key};
    if (!axis.is_degree() || !plan.contains(key)) continue;
    if (!plan[key].is_number_integer()) return;
    const auto degree = plan[key].get<std::int64_t>();
    if (degree < 1 || degree > node.gpus) return;
    ranks *= degree;
  }
  if (ranks >= node.gpus) return;
  question.assumptions.push_back(
      fmt::format("/cluster: {} of {} cores are used", ranks, node.gpus));
  node.gpus = static_cast<int>(ranks);
}

/// Takes the settings of the stack's recipes, then the stack's own defaults, for plan fields that
/// the user left open, unless they conflict with the rest of the plan. A default that does is among
/// the assumptions.
void take_usual(const Node& stated, const models::Question& question, models::Plan& plan,
                std::vector<std::string>& assumptions) {
  models::Question tried = question;
  tried.plan = plan;
  const auto choices =
      take_stack_recipe(tried, [&](std::string_view key) { return stated.has(key); });
  const auto defaults = take_stack_defaults(tried, [&](std::string_view key) {
    return stated.has(key) ||
           std::ranges::find(choices, key, &models::RecipeChoice::key) != choices.end();
  });
  plan = std::move(tried.plan);
  const auto drop = [&](std::string_view key) {
    const std::string head = fmt::format("/plan/{}:", key);
    std::erase_if(assumptions, [&](const std::string& old) { return old.rfind(head, 0) == 0; });
  };
  for (const models::RecipeChoice& each : choices) {
    drop(each.key);
    if (each.key == "embedding_counts") drop("stage_layers");  // no even cut then
    assumptions.push_back(assumption_of(each, question.software.name));
  }
  for (const models::RecipeChoice& each : defaults.taken) {
    drop(each.key);
    if (each.key == "virtual_stages") drop("schedule");
    const models::PlanField& field = models::plan_field(each.key);
    assumptions.push_back(fmt::format("/plan/{}: not stated; {} assumed, {}'s default", each.key,
                                      field.text(plan), question.software.name));
  }
  for (const models::RecipeChoice& each : defaults.conflicting) {
    drop(each.key);
    const std::string value =
        each.value.is_string() ? each.value.get<std::string>() : each.value.dump();
    assumptions.push_back(fmt::format("/plan/{}: not stated; {}'s default {} is not taken: {}",
                                      each.key, question.software.name, value, each.source));
  }
}

/// A plan without any of the choices that decide about memory is assumed, not stated.
bool is_assumed(const Json& plan) {
  const char* deciding[] = {"tensor", "pipeline", "micro_batch"};
  return std::ranges::none_of(deciding, [&](const char* key) { return plan.contains(key); });
}

}  // namespace

models::Question Scenario::question() const {
  const ScenarioReader reader{json_, file_, origins_};
  models::Question question;
  const Node root{json_, file_, ""};
  if (const auto noted = root.find("assumptions")) {
    for (const Node& each : noted->elements()) {
      question.assumptions.push_back(each.as<std::string>());
    }
  }
  question.model = reader.section(Section::model, models::read_model);
  question.cluster =
      cluster_ ? *cluster_ : reader.section(Section::cluster, hardware::read_cluster);
  if (const auto run = root.find("run")) take_run_price(*run, question.cluster);
  question.software = reader.section(Section::software, models::read_software);
  for (const std::string& each : question.cluster.assumptions) {
    question.assumptions.push_back("/cluster: " + each);
  }
  for (std::string& each : models::assumptions_said(question.model)) {
    question.assumptions.push_back(std::move(each));
  }
  for (std::string& each : models::unused_keys_said(question.model)) {
    question.assumptions.push_back(std::move(each));
  }
  take_cores(json_.at("plan"), question);
  question.network = read_network(root);
  question.network.jobs = read_jobs(root, json_.at("cluster"), question.cluster);
  const std::int64_t gpus = models::free_gpus(question.cluster, question.network);
  std::vector<std::string> of_plan;
  question.plan = reader.section(Section::plan, [&](const Node& plan) {
    of_plan.clear();
    models::Plan read = models::read_plan(plan, question.model, gpus, of_plan);
    const bool loops = question.model.list && !question.model.list->trains();
    if (!loops) take_usual(plan, question, read, of_plan);
    return read;
  });
  question.plan_is_assumed = is_assumed(json_.at("plan"));
  question.assumptions.insert(question.assumptions.end(), of_plan.begin(), of_plan.end());
  apply_stage_rule(json_.at("plan"), question);
  apply_context_form(json_.at("plan"), question);
  for (std::string& each :
       models::not_run(question.plan, question.software.runs, question.software.name)) {
    question.assumptions.push_back(std::move(each));
  }
  const std::vector<models::Conflict> found = models::conflicts(question);
  if (!found.empty()) reader.refuse(found.front());
  if (const auto data = root.find("data")) {
    const Json filled = with_measured_data(*data, json_.at("cluster"), question.plan.batch.seq_len,
                                           question.assumptions);
    question.data = read_data(Node{filled, file_, "/data"}, question, question.assumptions);
  }
  published();
  tokens();
  return question;
}

Scenario Scenario::with_cluster_read() const {
  Scenario read = *this;
  read.cluster_ = std::make_shared<const hardware::Cluster>(
      ScenarioReader{json_, file_, origins_}.section(Section::cluster, hardware::read_cluster));
  return read;
}

std::optional<Published> Scenario::published() const {
  const auto member = Node{json_, file_, ""}.find("published");
  if (!member) return std::nullopt;
  member->only({"step_time", "model_rate", "source"});
  Published published;
  if (const auto step = member->find("step_time")) published.step = step->as<Time>();
  if (const auto rate = member->find("model_rate")) published.model_rate = rate->as<FlopRate>();
  published.source = (*member)["source"].as<std::string>();
  return published;
}

std::optional<double> Scenario::tokens() const {
  const auto member = Node{json_, file_, ""}.find("tokens");
  if (!member) return std::nullopt;
  const std::string text = member->is_string() ? member->as<std::string>() : member->json().dump();
  const auto count = parse_tokens(text);
  if (!count) member->fail_expected(tokens_form);
  return count;
}

}  // namespace orrery::scenarios

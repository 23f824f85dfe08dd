#include "scenarios/validation/runs/run_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "hardware/catalogue.hpp"
#include "models/model/counts.hpp"
#include "models/model/import/config.hpp"
#include "models/plan/conflicts.hpp"
#include "models/plan/fields.hpp"
#include "scenarios/scenario/stack_defaults.hpp"
#include "scenarios/validation/runs/run_experts.hpp"
#include "scenarios/validation/runs/run_list.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using models::Family;
using models::Model;
using models::Plan;
using models::PlanField;
using models::RunDefaults;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The first size that a run must state and does not.
std::string missing_size(const MeasuredRun& run) {
  const std::array<std::pair<const char*, bool>, 6> sizes{{
      {"layers", run.layers.has_value()},
      {"hidden", run.hidden.has_value()},
      {"heads", run.heads.has_value()},
      {"seq_len", run.plan.contains("seq_len")},
      {"gpus", run.gpus.has_value()},
      {"global_batch", run.plan.contains("global_batch")},
  }};
  for (const auto& [name, stated] : sizes) {
    if (!stated) return fmt::format("{} is not stated", name);
  }
  return {};
}

/// The first size beyond what a model or a plan may have.
std::string oversize(const MeasuredRun& run) {
  using models::Limits;
  struct Size {
    std::string_view name;
    std::optional<std::int64_t> stated;
    std::int64_t most;
  };
  std::vector<Size> sizes{
      {"layers", run.layers, Limits::layers},
      {"hidden", run.hidden, Limits::hidden},
      {"heads", run.heads, Limits::heads},
      {"kv_heads", run.kv_heads, Limits::heads},
      {"ffn_hidden", run.ffn_hidden, Limits::ffn_hidden},
      {"vocab", run.vocab, Limits::vocab},
      {"gpus", run.gpus, models::most_gpus},
      {"gpus_per_node", run.gpus_per_node, models::most_gpus},
      {"prediction_layers", run.prediction_layers, Limits::layers},
  };
  for (const PlanField& field : models::plan_fields()) {
    if (field.value.count) {
      sizes.push_back({field.column.empty() ? field.key : field.column, run.count(field.key),
                       field.value.most});
    }
  }
  for (const auto& [name, stated, most] : sizes) {
    if (stated.value_or(0) > most) return fmt::format("{} {} is above {}", name, *stated, most);
  }
  return {};
}

std::string model_out_of_scope(const MeasuredRun& run) {
  if (run.family == "transformer-xl") {
    return "family transformer-xl is not simulated: attention over a memory of earlier segments, "
           "adaptive softmax";
  }
  if (has_experts(run)) {
    const std::string missing = missing_of_experts(run);
    if (!missing.empty()) return missing;
  } else if (run.dense_layers || run.prediction_layers) {
    return "dense_layers and prediction_layers are stated of models with experts alone";
  } else if (!is_one_of(run.family, {"gpt", "llama", "bert", "electra"})) {
    return fmt::format("family {} is not simulated yet; known: gpt llama bert electra moe mla-moe",
                       run.family);
  }
  return {};
}

std::string plan_out_of_scope(const MeasuredRun& run) {
  for (const PlanField& field : models::plan_fields()) {
    const std::string cell = run.stated(field.key);
    if (field.value.kind != models::PlanValue::Kind::word || cell.empty()) continue;
    const std::vector<std::string> words = field.value.words();
    if (std::find(words.begin(), words.end(), cell) != words.end()) continue;
    return fmt::format("{} {} is not simulated yet; known: {}", field.name, cell, listed(words));
  }
  return {};
}

/// Fills in model sizes that a run does not state, and records each as an assumption.
class Filling {
 public:
  explicit Filling(std::vector<std::string>& assumptions) : assumptions_{assumptions} {}

  std::int64_t value(const std::optional<std::int64_t>& stated, std::int64_t otherwise,
                     std::string_view pointer, std::string_view reason) {
    if (!stated) assume(pointer, fmt::format("{}", otherwise), reason);
    return stated.value_or(otherwise);
  }
  void assume(std::string_view pointer, std::string_view value, std::string_view reason) {
    assumptions_.push_back(fmt::format("{}: not stated; {} assumed, {}", pointer, value, reason));
  }

 private:
  std::vector<std::string>& assumptions_;
};

constexpr std::string_view taken_from_stack = "the stack's default";

void make_llama(models::ModelDraft& model) {
  model.norms.kind = models::Norm::rms_norm;
  model.embedding.positions = models::Positions::rotary;
  model.mlp.activation = models::Activation::silu;
  model.mlp.gated = true;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = model.norms.bias =
      false;
  model.embedding.tied = false;
}

void make_bert(Model& model) {
  model.causal = false;
  model.embedding.max_positions = std::max<std::int64_t>(512, model.embedding.max_positions);
  model.embedding.token_types = 2;
  model.norms.final = false;
  model.norms.embedding = true;
  model.head.transform = true;
  model.head.bias = true;
  model.head.pooler = true;
}

/// Takes the stack's usual form of context parallelism, unless the run or a recipe states one.
void take_context_form(const MeasuredRun& run, const models::Software& software, Plan& plan,
                       std::vector<std::string>& assumptions) {
  const bool stated =
      !run.stated("context_form").empty() ||
      std::any_of(assumptions.begin(), assumptions.end(), [](const std::string& each) {
        return each.starts_with("/plan/context_form:");  // from a recipe
      });
  if (plan.context == 1 || stated || software.runs.context.empty()) return;
  plan.context_exchange.form = software.runs.context.front();
  assumptions.push_back(fmt::format("/plan/context_form: not stated; {} assumed, {}",
                                    word_of(models::context_form_words, plan.context_exchange.form),
                                    taken_from_stack));
}

/// ELECTRA's discriminator: BERT with a one-column head over all tokens that detects which tokens a
/// smaller generator replaced.
/// Source  Clark et al. 2020, "ELECTRA", arXiv 2003.10555, table 6: the generator's width is a
///         third of the base model's, a quarter of the small and large ones'
void make_electra(Model& model) {
  constexpr std::int64_t base = 768;
  model.head.pooler = model.head.bias = model.embedding.tied = false;
  model.head.task_outputs = 1;
  model.generator_hidden = model.hidden / (model.hidden == base ? 3 : 4);
}

/// BERT fine-tuned for question answering: a two-column head over all tokens replaces the
/// pre-training heads.
/// Source  Devlin et al. 2018, "BERT", arXiv 1810.04805, section 4.2
void make_answering(Model& model) {
  model.head.transform = model.head.bias = model.head.pooler = false;
  model.embedding.tied = false;
  model.generator_hidden = 0;
  model.head.task_outputs = 2;
}

}  // namespace

std::string out_of_scope(const MeasuredRun& run) {
  if (names_list(run)) return missing_of_list(run);
  for (const std::string& reason :
       {model_out_of_scope(run), plan_out_of_scope(run), missing_size(run), oversize(run)}) {
    if (!reason.empty()) return reason;
  }
  return {};
}

Model model_of(const MeasuredRun& run, const RunDefaults& defaults,
               std::vector<std::string>& assumptions) {
  if (names_list(run)) return list_model_of(run);
  if (has_experts(run)) return expert_model_of(run, assumptions);
  Filling fill{assumptions};
  models::ModelDraft model;
  model.name = run.model;
  model.family = run.family == "llama"                        ? Family::llama
                 : is_one_of(run.family, {"bert", "electra"}) ? Family::bert
                                                              : Family::gpt;
  model.depth = *run.layers;
  model.hidden = *run.hidden;
  model.attention.heads = *run.heads;
  if (model.hidden % model.attention.heads != 0) {
    throw InputError{
        fmt::format("{} heads do not divide hidden {}", model.attention.heads, model.hidden)};
  }
  model.attention.head_dim = model.hidden / model.attention.heads;
  model.attention.kv_heads =
      fill.value(run.kv_heads, model.attention.heads, "/model/kv_heads", "one for each head");
  model.mlp.width =
      fill.value(run.ffn_hidden, 4 * model.hidden, "/model/ffn_hidden", "four times hidden");
  model.embedding.vocab = fill.value(run.vocab, defaults.vocab, "/model/vocab", taken_from_stack);
  model.embedding.max_positions = *run.count("seq_len");
  if (model.family == Family::llama) make_llama(model);
  model.embedding.tied = run.tied.value_or(model.embedding.tied);
  if (model.family == Family::bert) make_bert(model);
  if (run.family == "electra") make_electra(model);
  if (model.family == Family::bert && run.task == "sft") make_answering(model);
  return built(std::move(model));
}

namespace {

/// For a run that does not state its site: the site of the stack's fitted runs on the same GPU and
/// kind of network.
void take_site(const MeasuredRun& run, const models::Software& software,
               hardware::Cluster& cluster) {
  if (!cluster.site.name.empty() || !software.residuals) return;
  const std::string network = cluster.nodes > 1 ? cluster.fabric.latency_class : "";
  for (const models::FittedPlace& place : software.residuals->places) {
    const bool same_network = !place.network.empty() && network.rfind(place.network, 0) == 0;
    if (place.gpu != run.gpu || !(network.empty() || same_network)) continue;
    cluster.site = site_named(place.site);
    return;
  }
}

}  // namespace

models::Question Questions::question_of(const MeasuredRun& run) {
  std::vector<std::string> assumptions;
  hardware::Catalogue::gpu(run.gpu);  // throws for an unknown GPU, naming the known ones
  hardware::Cluster cluster = clusters_.of(run, assumptions);
  models::Software software =
      models::software_for_run({.stack = run.software,
                                .year = static_cast<int>(run.year.value_or(0)),
                                .nodes = cluster.nodes,
                                .site = run.site},
                               profiles_, assumptions);
  take_site(run, software, cluster);
  Model model = model_of(run, software.defaults, assumptions);
  if (model.list) {
    Plan plan = list_plan_of(run, model, assumptions);
    return {.model = std::move(model),
            .plan = std::move(plan),
            .cluster = std::move(cluster),
            .software = std::move(software),
            .assumptions = std::move(assumptions)};
  }
  Plan plan = plan_of(run, model, software, assumptions, &cluster.gpu());
  const auto kernel = kernel_with_sinks(model, cluster.gpu(), software);
  if (kernel && !run.plan.contains("attention")) {
    plan.kernels.attention = *kernel;
    assumptions.push_back("/plan/attention: not stated; cudnn assumed, which has attention sinks");
  }
  take_context_form(run, software, plan, assumptions);
  if (has_experts(run)) settle_experts(plan, assumptions);
  return {.model = std::move(model),
          .plan = std::move(plan),
          .cluster = std::move(cluster),
          .software = std::move(software),
          .assumptions = std::move(assumptions)};
}

std::variant<models::Question, Skip> Questions::of(const MeasuredRun& run) {
  const std::string reason = out_of_scope(run);
  if (!reason.empty()) return Skip{reason};
  try {
    models::Question question = question_of(run);
    const std::vector<models::Conflict> found = conflicts(question);
    if (!found.empty()) return Skip{found.front().pointer + ": " + found.front().problem};
    return question;
  } catch (const InputError& error) {
    return Skip{error.what()};
  }
}

}  // namespace orrery::scenarios

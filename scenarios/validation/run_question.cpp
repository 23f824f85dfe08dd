#include "scenarios/validation/run_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "hardware/catalogue.hpp"
#include "models/model/import/config.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using models::Family;
using models::Model;
using models::Plan;
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
      {"seq_len", run.seq_len.has_value()},
      {"gpus", run.gpus.has_value()},
      {"global_batch", run.global_batch.has_value()},
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
    const char* name;
    const std::optional<std::int64_t>& stated;
    std::int64_t most;
  };
  const std::array<Size, 15> sizes{{
      {"layers", run.layers, Limits::layers},
      {"hidden", run.hidden, Limits::hidden},
      {"heads", run.heads, Limits::heads},
      {"kv_heads", run.kv_heads, Limits::heads},
      {"ffn_hidden", run.ffn_hidden, Limits::ffn_hidden},
      {"vocab", run.vocab, Limits::vocab},
      {"seq_len", run.seq_len, models::most_seq_len},
      {"gpus", run.gpus, models::most_gpus},
      {"gpus_per_node", run.gpus_per_node, models::most_gpus},
      {"tp", run.tensor, models::most_gpus},
      {"pp", run.pipeline, models::most_gpus},
      {"virtual_stages", run.virtual_stages, models::most_virtual_stages},
      {"dp", run.data, models::most_gpus},
      {"micro_batch", run.micro_batch, models::most_gpus},
      {"global_batch", run.global_batch, models::most_batch},
  }};
  for (const auto& [name, stated, most] : sizes) {
    if (stated.value_or(0) > most) return fmt::format("{} {} is above {}", name, *stated, most);
  }
  return {};
}

std::string model_out_of_scope(const MeasuredRun& run) {
  if (is_one_of(run.family, {"moe", "mla-moe"}) || run.experts.value_or(1) > 1) {
    return "mixture of experts is not simulated yet";
  }
  if (!is_one_of(run.family, {"gpt", "llama", "bert"})) {
    return fmt::format("family {} is not simulated yet; known: gpt llama bert", run.family);
  }
  if (!is_one_of(run.task, {"pretrain", ""})) {
    return fmt::format("task {} is not simulated yet; known: pretrain", run.task);
  }
  return {};
}

std::string plan_out_of_scope(const MeasuredRun& run) {
  if (run.context.value_or(1) > 1) return "context parallelism is not simulated yet";
  if (run.expert.value_or(1) > 1) return "expert parallelism is not simulated yet";
  if (!is_one_of(run.zero, {"", "0", "1", "2", "3"})) {
    return fmt::format("ZeRO {} is not simulated yet; known: 0 1 2 3", run.zero);
  }
  if (!is_one_of(run.schedule, {"", "1f1b", "gpipe", "interleaved-1f1b"})) {
    return fmt::format("schedule {} is not simulated yet; known: gpipe 1f1b interleaved-1f1b",
                       run.schedule);
  }
  if (!is_one_of(run.precision, {"", "fp32", "tf32", "fp16", "bf16", "fp8"})) {
    return fmt::format("precision {} is not simulated yet; known: fp32 tf32 fp16 bf16 fp8",
                       run.precision);
  }
  if (!is_one_of(run.recompute, {"", "none", "selective", "full"})) {
    return fmt::format("recompute {} is not simulated yet; known: none selective full",
                       run.recompute);
  }
  return {};
}

/// Cells of a run with the stack's defaults behind them.
class Filling {
 public:
  explicit Filling(std::vector<std::string>& assumptions) : assumptions_{assumptions} {}

  template <class T>
  T value(const std::optional<T>& stated, T otherwise, std::string_view pointer,
          std::string_view told) {
    if (!stated) assume(pointer, fmt::format("{}", otherwise), told);
    return stated.value_or(otherwise);
  }
  /// Index of a stated word, or the default.
  template <class Enum>
  Enum word(const std::string& stated, std::initializer_list<std::string_view> words,
            Enum otherwise, std::string_view pointer) {
    const auto found = std::find(words.begin(), words.end(), stated);
    if (found != words.end()) return static_cast<Enum>(found - words.begin());
    assume(pointer, *(words.begin() + static_cast<int>(otherwise)), "the stack's default");
    return otherwise;
  }
  void assume(std::string_view pointer, std::string_view value, std::string_view told) {
    assumptions_.push_back(fmt::format("{}: {} taken, {}", pointer, value, told));
  }

 private:
  std::vector<std::string>& assumptions_;
};

constexpr std::string_view default_of_stack = "the stack's default";

void make_llama(Model& model) {
  model.norm = models::Norm::rms_norm;
  model.positions = models::Positions::rotary;
  model.activation = models::Activation::silu;
  model.gated_mlp = true;
  model.qkv_bias = model.output_bias = model.mlp_bias = model.norm_bias = false;
  model.tied_embeddings = false;
}

void make_bert(Model& model) {
  model.causal = false;
  model.max_positions = std::max<std::int64_t>(512, model.max_positions);
  model.token_types = 2;
  model.final_norm = false;
  model.embedding_norm = true;
  model.head_transform = true;
  model.head_bias = true;
  model.pooler = true;
}

/// A whole batch in one go without a pipeline, as far as activations usually fit; single samples
/// with one, so that its bubble is short.
std::int64_t usual_micro_batch(const Plan& plan) {
  constexpr std::int64_t most = 16;
  if (plan.pipeline > 1) return 1;
  std::int64_t size = std::max<std::int64_t>(1, plan.global_batch / plan.data);
  while (size > most && size % 2 == 0) size /= 2;
  return size > most ? 1 : size;
}

std::int64_t usual_virtual_stages(const Plan& plan, const Model& model,
                                  std::int64_t layers_per_chunk) {
  const std::int64_t on_stage = model.layers / plan.pipeline;
  const bool cuts = layers_per_chunk > 0 && plan.pipeline > 1 &&
                    model.layers % (plan.pipeline * layers_per_chunk) == 0;
  return cuts ? on_stage / layers_per_chunk : 1;
}

/// Layers that the stages do not share evenly, unless embedding and head count as one each.
bool ends_count(const Plan& plan, const Model& model) {
  return plan.chunks() > 1 && model.layers % plan.chunks() != 0 &&
         (model.layers + 2) % plan.chunks() == 0;
}

}  // namespace

std::string out_of_scope(const MeasuredRun& run) {
  for (const std::string& reason :
       {model_out_of_scope(run), plan_out_of_scope(run), missing_size(run), oversize(run)}) {
    if (!reason.empty()) return reason;
  }
  return {};
}

Model model_of(const MeasuredRun& run, const RunDefaults& defaults,
               std::vector<std::string>& assumptions) {
  Filling fill{assumptions};
  Model model;
  model.name = run.model;
  model.family = run.family == "llama"  ? Family::llama
                 : run.family == "bert" ? Family::bert
                                        : Family::gpt;
  model.layers = *run.layers;
  model.hidden = *run.hidden;
  model.heads = *run.heads;
  if (model.hidden % model.heads != 0) {
    throw InputError{fmt::format("{} heads do not divide hidden {}", model.heads, model.hidden)};
  }
  model.head_dim = model.hidden / model.heads;
  model.kv_heads = fill.value(run.kv_heads, model.heads, "/model/kv_heads", "one for each head");
  model.ffn_hidden =
      fill.value(run.ffn_hidden, 4 * model.hidden, "/model/ffn_hidden", "four times hidden");
  model.vocab = fill.value(run.vocab, defaults.vocab, "/model/vocab", default_of_stack);
  model.max_positions = *run.seq_len;
  if (model.family == Family::llama) make_llama(model);
  if (model.family == Family::bert) make_bert(model);
  model.parameters = model.active_parameters = models::count_parameters(model);
  return model;
}

Plan plan_of(const MeasuredRun& run, const Model& model, const RunDefaults& defaults,
             std::vector<std::string>& assumptions) {
  Filling fill{assumptions};
  Plan plan;
  plan.tensor = fill.value<std::int64_t>(run.tensor, 1, "/plan/tensor", "not stated");
  plan.pipeline = fill.value<std::int64_t>(run.pipeline, 1, "/plan/pipeline", "not stated");
  const std::int64_t others = std::max<std::int64_t>(1, *run.gpus / (plan.tensor * plan.pipeline));
  plan.data = fill.value(run.data, others, "/plan/data", "the GPUs over tensor and pipeline");
  plan.seq_len = *run.seq_len;
  plan.global_batch = *run.global_batch;
  plan.micro_batch =
      fill.value(run.micro_batch, usual_micro_batch(plan), "/plan/micro_batch", default_of_stack);
  if (plan.pipeline > 1) {
    plan.virtual_stages =
        fill.value(run.virtual_stages, usual_virtual_stages(plan, model, defaults.layers_per_chunk),
                   "/plan/virtual_stages", default_of_stack);
  }
  plan.schedule = plan.virtual_stages > 1   ? "interleaved-1f1b"
                  : run.schedule == "gpipe" ? "gpipe"
                                            : "1f1b";
  plan.precision = fill.word(run.precision, {"fp32", "tf32", "fp16", "bf16", "fp8"},
                             defaults.precision, "/plan/precision");
  plan.recompute = fill.word(run.recompute, {"none", "selective", "full"}, defaults.recompute,
                             "/plan/recompute");
  plan.zero = fill.word(run.zero, {"0", "1", "2", "3"}, defaults.zero, "/plan/zero");
  plan.sequence_parallel = run.sequence_parallel == "yes";
  if (run.sequence_parallel.empty() && plan.tensor > 1) {
    plan.sequence_parallel = defaults.sequence_parallel;
    fill.assume("/plan/sequence", plan.sequence_parallel ? "true" : "false", default_of_stack);
  }
  if (plan.tensor == 1) plan.sequence_parallel = false;
  plan.embedding_counts = ends_count(plan, model);
  if (plan.embedding_counts) {
    fill.assume("/plan/embedding_counts", "true", "the layers divide evenly no other way");
  }
  return plan;
}

models::Question Questions::question_of(const MeasuredRun& run) {
  std::vector<std::string> assumptions;
  hardware::Catalogue::gpu(run.gpu);  // says which are known
  hardware::Cluster cluster = clusters_.of(run, assumptions);
  models::Software software = models::software_for_run(
      run.software, static_cast<int>(run.year.value_or(0)), cluster.nodes, profiles_, assumptions);
  Model model = model_of(run, software.defaults, assumptions);
  Plan plan = plan_of(run, model, software.defaults, assumptions);
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

// From facts to a plan: each function settles one group of quantities.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "models/plan/derived.hpp"
#include "models/plan/fields.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "scenarios/exchange/facts.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

using Notes = std::vector<std::string>;

std::int64_t ranks_of_replica(const Facts& facts) {
  return facts.integer_or("tensor", 1) * facts.integer_or("context", 1) *
         facts.integer_or("pipeline", 1);
}

/// Replicas, 0 where they are not known.
std::int64_t replicas_in(const Facts& facts, const FactBasis& basis) {
  const std::int64_t ranks = std::max<std::int64_t>(1, ranks_of_replica(facts));
  return basis.gpus % ranks == 0 ? basis.gpus / ranks : 0;
}

std::int64_t chunks_in(const Facts& facts) {
  return std::max<std::int64_t>(1, facts.integer_or("pipeline", 1)) *
         std::max<std::int64_t>(1, facts.integer_or("virtual_stages", 1));
}

/// MaxText's axes, of which each is a product over slices and over devices of one.
void settle_products(Facts& facts) {
  for (const char* axis : {"tensor", "context", "pipeline", "expert"}) {
    const std::string product = std::string{"x."} + axis;
    if (facts.has(product)) facts.set(axis, facts.text(product));
  }
  const std::int64_t shards = facts.integer_or("x.fsdp", 1),
                     copies = facts.integer_or("x.copies", 1);
  if (shards == 1) return;
  facts.set("zero", "3");
  if (copies > 1 && shards > 1) facts.set("data_shard", std::to_string(shards));
}

/// Degrees of sharding and of copies, as torchtitan and accelerate have them.
void settle_shards(Facts& facts, const FactBasis& basis, Notes& notes) {
  if (const auto copies = facts.integer("shard_copies"); copies && *copies > 1) {
    const std::int64_t data = replicas_in(facts, basis);
    if (data == 0) {
      notes.push_back(
          fmt::format("{} copies of shards: data_shard needs the number of GPUs", *copies));
    } else {
      facts.set("data_shard", std::to_string(data / *copies));
    }
  }
  const auto shards = facts.integer("shard_degree");
  if (!shards) return;
  const std::int64_t copies = facts.integer_or("replicate_degree", 1);
  if (!facts.has("zero")) facts.set("zero", *shards == 1 ? "0" : "3");
  if (*shards == 1) facts.set("zero", "0");
  if (copies <= 1 || *shards == 1) return;
  const std::int64_t data = replicas_in(facts, basis);
  if (*shards > 1) facts.set("data_shard", std::to_string(*shards));
  if (*shards < 1 && data > 0) facts.set("data_shard", std::to_string(data / copies));
}

void settle_context(Facts& facts, Notes& notes) {
  if (facts.integer_or("ulysses_size", 1) > 1) {
    facts.set("context", facts.text("ulysses_size"));
    facts.set("context_form", "ulysses");
  }
  if (facts.has("context_sizes")) {
    const std::string sizes = facts.text("context_sizes");
    facts.set("context_heads", sizes.substr(0, sizes.find(':')));
  }
  if (facts.integer_or("sequence_of_tensor", 1) > 1) facts.set("sequence", "true");
  if (facts.integer_or("tensor", 1) == 1 && facts.is("sequence", "true")) {
    notes.emplace_back("sequence parallelism needs tensor parallelism; dropped, as Megatron does");
  }
  // Source  Megatron-LM, training/arguments.py, validate_args: tp_comm_overlap asserts it
  if (facts.integer_or("tensor", 1) > 1 && facts.is("tensor_overlap", "true") &&
      !facts.is("sequence", "true")) {
    facts.set("tensor_overlap", "false");
    notes.emplace_back(
        "tp_comm_overlap needs sequence parallelism, and Megatron refuses it without; predicted "
        "without overlap in the tensor group");
  }
}

void settle_stages(Facts& facts, const FactBasis& basis, Notes& notes) {
  if (facts.has("pipeline_or_none")) {
    facts.set("pipeline",
              std::to_string(std::max<std::int64_t>(1, facts.integer_or("pipeline_or_none", 1))));
  }
  const std::int64_t stages = std::max<std::int64_t>(1, facts.integer_or("pipeline", 1));
  if (stages == 1) return;
  if (facts.has("first_less") || facts.has("last_less")) {
    const bool first = !facts.is("first_less", "false"), last = !facts.is("last_less", "false");
    facts.set("embedding_counts", first && last ? "true" : "false");
    if (first != last)
      notes.emplace_back("embedding and head count as layers only together; neither does here");
  }
  if (facts.has("layers_per_virtual_stage")) {
    const std::int64_t per_chunk = facts.integer_or("layers_per_virtual_stage", 0);
    if (basis.model == nullptr || per_chunk < 1) {
      notes.emplace_back("layers per virtual stage: virtual_stages needs the model");
    } else {
      const bool more = facts.has("first_less") && facts.is("embedding_counts", "true");
      const std::int64_t layers = basis.model->layers.size() + (more ? 2 : 0);
      facts.set("virtual_stages", std::to_string(std::max<std::int64_t>(
                                      1, (layers + per_chunk - 1) / per_chunk / stages)));
    }
  }
  if (facts.has("stage_layout")) {
    const auto layers = layers_of_layout(facts.text("stage_layout"));
    if (!layers || static_cast<std::int64_t>(layers->size()) % stages != 0) {
      notes.push_back(
          fmt::format("pipeline layout {} is not understood", facts.text("stage_layout")));
    } else {
      facts.set("stage_layers", fmt::format("{}", fmt::join(*layers, ":")));
      facts.set("virtual_stages",
                std::to_string(static_cast<std::int64_t>(layers->size()) / stages));
    }
  }
}

/// The first and the last stage have as many layers as stated, the others share the rest.
void settle_ends(Facts& facts, const FactBasis& basis, Notes& notes) {
  if (!facts.has("first_stage_layers") && !facts.has("last_stage_layers")) return;
  const std::int64_t stages = facts.integer_or("pipeline", 1);
  const std::int64_t chunks = facts.integer_or("virtual_stages", 1);
  if (basis.model == nullptr || stages < 3) {
    notes.emplace_back(
        "layers of the first or last stage: stage_layers needs the model and 3 stages");
    return;
  }
  const auto first = facts.integer("first_stage_layers"), last = facts.integer("last_stage_layers");
  if (chunks < 1 || stages * chunks > basis.model->layers.size() + 2) return;
  const std::int64_t others = stages - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t rest = basis.model->layers.size() - first.value_or(0) - last.value_or(0);
  if (rest < 0 || rest % (others * chunks) != 0 || first.value_or(0) % chunks != 0 ||
      last.value_or(0) % chunks != 0) {
    notes.emplace_back(
        "layers of the first or last stage leave a rest that the others cannot share evenly");
    return;
  }
  std::vector<std::int64_t> layers;
  for (std::int64_t i = 0; i < chunks * stages; ++i) {
    const std::int64_t stage = i % stages;
    const std::int64_t own = stage == 0 && first           ? *first
                             : stage == stages - 1 && last ? *last
                                                           : rest / others;
    layers.push_back(own / chunks);
  }
  facts.set("stage_layers", fmt::format("{}", fmt::join(layers, ":")));
}

void settle_batch(Facts& facts, const FactBasis& basis, Notes& notes) {
  const std::int64_t data = replicas_in(facts, basis);
  const auto need_gpus = [&](std::string_view what) {
    notes.push_back(fmt::format("{} needs the number of GPUs: state --cluster", what));
  };
  if (facts.has("local_batch")) {
    const bool staged = facts.integer_or("pipeline", 1) > 1;
    facts.set("micro_batch", staged ? std::to_string(facts.integer_or("pipeline_micro_batch", 1))
                                    : facts.text("local_batch"));
    if (facts.integer_or("global_batch", -1) < 0) {
      facts.erase("global_batch");
      if (data == 0) need_gpus("global_batch = local batch x replicas");
      if (data > 0)
        facts.set("global_batch", std::to_string(facts.integer_or("local_batch", 1) * data));
    }
  }
  if (const auto each = facts.number("per_device_batch")) {
    if (data == 0) {
      need_gpus("micro_batch = batch per device x GPUs / replicas");
    } else {
      const double rows = *each * static_cast<double>(basis.gpus) / static_cast<double>(data);
      facts.set("micro_batch", std::to_string(std::max<std::int64_t>(1, std::llround(rows))));
    }
  }
  const auto micro = facts.integer("micro_batch");
  if (facts.has("global_batch") && !micro && facts.has("accumulation") && data > 0) {
    const std::int64_t passes =
        std::max<std::int64_t>(1, facts.integer_or("accumulation", 1)) * data;
    facts.set("micro_batch", std::to_string(std::max<std::int64_t>(
                                 1, facts.integer_or("global_batch", 1) / passes)));
  }
  const auto global = facts.integer("global_batch"), passes = facts.integer("accumulation");
  if (global && micro && passes && data > 0 && *global != *micro * *passes * data) {
    notes.push_back(
        fmt::format("a batch of {} is not {} x {} passes x {} replicas: the batch counts", *global,
                    *micro, *passes, data));
  }
  if (facts.has("global_batch")) return;
  if (!facts.has("accumulation") && !facts.is("accumulates_once", "true")) return;
  if (!micro && !facts.has("micro_batch")) return;
  if (data == 0) return need_gpus("global_batch = micro-batch x accumulation x replicas");
  facts.set("global_batch", std::to_string(facts.integer_or("micro_batch", 1) *
                                           facts.integer_or("accumulation", 1) * data));
}

void settle_recompute(Facts& facts, Notes& notes) {
  if (facts.is("recompute_mode", "selective") && !facts.has("recompute")) {
    if (const auto every = facts.integer("selective_option"); every && *every > 0) {
      facts.set("recompute", "full");
      facts.set("recompute_every", std::to_string(*every));
    } else {
      notes.push_back(fmt::format("selective recomputation by '{}': no field of a plan says it",
                                  facts.text("selective_option")));
    }
  }
  if (facts.integer_or("partial_recompute_micro_batches", 0) == 0 ||
      facts.integer_or("pipeline", 1) == 1 ||
      !(facts.is("recompute_method", "block") || facts.has("recompute_every"))) {
    facts.erase("partial_recompute_micro_batches");
  }
  if (!facts.is("recompute", "full")) return;
  const std::int64_t number = facts.integer_or("recompute_number", 1);
  if (facts.is("recompute_method", "block")) facts.set("recompute_layers", std::to_string(number));
  if (facts.is("recompute_method", "uniform") && number > 1) {
    notes.push_back(fmt::format(
        "recomputation keeps one input for {} layers; the plan keeps every layer's", number));
  }
}

/// As many tiles as the tool derives where their number is not stated: each as long as a row is
/// wide. Source  axolotl, monkeypatch/tiled_mlp: ceil(sequence / hidden)
void settle_tiles(Facts& facts, const FactBasis& basis, Notes& notes) {
  if (!facts.is("tiles_mlp", "true") || facts.has("tiled_mlp")) return;
  const auto length = facts.integer("seq_len");
  if (basis.model == nullptr || !length) {
    notes.emplace_back("an MLP in tiles: tiled_mlp needs the model and seq_len");
    return;
  }
  const std::int64_t own = *length / std::max<std::int64_t>(1, facts.integer_or("context", 1));
  const std::int64_t width = basis.model->hidden;
  facts.set("tiled_mlp", std::to_string(std::max<std::int64_t>(1, (own + width - 1) / width)));
}

void settle_offload(Facts& facts, const FactBasis& basis, Notes& notes) {
  const bool parameters = facts.has("offload_param");
  if (parameters || facts.has("offload_optimizer")) {
    facts.set("offload", parameters ? "parameters" : "optimizer");
    const std::string device = facts.text(parameters ? "offload_param" : "offload_optimizer");
    facts.set("offload_device", device);
  }
  if (facts.number("optimizer_offload_fraction").value_or(1) <= 0) {
    facts.erase("optimizer_offload_fraction");
    if (facts.is("offload", "optimizer")) facts.set("offload", "none");
  }
  if (!facts.is("all_layers_offloaded", "true")) return;
  if (basis.model == nullptr) {
    notes.emplace_back("activations on the host: offload_layers needs the model");
    return;
  }
  const std::int64_t chunks = chunks_in(facts);
  facts.set("offload_layers", std::to_string((basis.model->layers.size() + chunks - 1) / chunks));
}

/// Parameters of one layer on one rank, roughly: what a prefetch unit is.
double parameters_of_layer(const models::Model& model, std::int64_t tensor) {
  const double tables = static_cast<double>(model.embedding.vocab) *
                        static_cast<double>(model.hidden) * (model.embedding.tied ? 1 : 2);
  const double all = std::max(1.0, static_cast<double>(model.parameters) - tables);
  return std::max(1.0,
                  all / static_cast<double>(model.layers.size()) / static_cast<double>(tensor));
}

void settle_communication(Facts& facts, const FactBasis& basis, Notes& notes) {
  if (const auto elements = facts.number("bucket_elements"); elements && *elements > 0) {
    facts.set("bucket", fmt::format("{:.0f} B", *elements * basis.gradient_bytes));
  }
  if (const auto size = facts.number("bucket_mib"); size && *size > 0) {
    facts.set("bucket", fmt::format("{:.0f} B", *size * 1048576));
  }
  const auto elements = facts.number("prefetch_elements");
  if (!elements || !facts.is("zero", "3")) return;
  if (basis.model == nullptr) {
    notes.emplace_back("prefetch in elements: prefetch, in units, needs the model");
    return;
  }
  const double unit =
      parameters_of_layer(*basis.model, std::max<std::int64_t>(1, facts.integer_or("tensor", 1)));
  facts.set("prefetch",
            std::to_string(std::clamp<std::int64_t>(std::llround(*elements / unit), 0, 4096)));
}

/// Adapters have dropout or not: a plan does not say how much. Frozen weights in 4 bits are what
/// makes a task qlora.
void settle_adapters(Facts& facts, Notes& notes) {
  if (facts.is("frozen_in_4_bits", "true") && !facts.is("task", "qlora")) {
    notes.emplace_back(
        "frozen weights in 4 bits without adapter qlora: taken in 16 bits; task=qlora has them in "
        "4");
  }
  if (const auto rate = facts.number("lora_dropout_rate"); rate && !facts.has("lora_dropout"))
    facts.set("lora_dropout", *rate > 0 ? "true" : "false");
}

/// A field that does not matter where another has this value, or has not.
struct Irrelevance {
  std::string_view field, other, value;
  bool equal;  // it does not matter where `other` is `value`, or where it is anything else
};
constexpr std::array<Irrelevance, 24> irrelevant{
    {{"sequence", "tensor", "1", true},
     {"tensor_overlap", "tensor", "1", true},
     {"context_form", "context", "1", true},
     {"context_heads", "context_form", "hierarchical", false},
     {"virtual_stages", "pipeline", "1", true},
     {"schedule", "pipeline", "1", true},
     {"stage_layers", "pipeline", "1", true},
     {"embedding_counts", "pipeline", "1", true},
     {"rank_order", "pipeline", "1", true},
     {"deferred_head_gradients", "pipeline", "1", true},
     {"reshard", "zero", "3", false},
     {"prefetch", "zero", "3", false},
     {"data_shard", "zero", "0", true},
     {"overlap_gather", "zero", "0", true},
     {"low_precision_gather", "zero", "0", true},
     {"recompute_layers", "recompute", "none", true},
     {"recompute_every", "recompute", "none", true},
     {"recompute_elsewhere", "recompute", "none", true},
     {"recompute_modules", "recompute", "selective", false},
     {"offload_device", "offload", "none", true},
     {"optimizer_offload_fraction", "offload", "optimizer", false},
     {"overlap_p2p", "pipeline", "1", true},
     {"compression_share", "compression", "top-k", false},
     {"compression_rank", "compression", "power-sgd", false}}};

/// What says nothing of a model without experts. Degrees stay: there they are a mistake.
void drop_experts(Facts& facts) {
  for (const models::PlanField& each : models::plan_fields()) {
    const bool degree = each.key == "expert" || each.key == "expert_tensor";
    if (each.group == models::PlanField::Group::experts && !degree) {
      facts.erase(std::string{each.key});
    }
  }
}

void drop_irrelevant(Facts& facts) {
  const models::Plan plain;
  for (const Irrelevance& each : irrelevant) {
    if (!facts.has(each.field)) continue;
    std::string other = facts.text(each.other);
    if (other.empty()) {
      const Json usual = models::plan_field(each.other).json(plain);
      other = usual.is_string() ? usual.get<std::string>() : usual.dump();
    }
    if ((other == each.value) == each.equal) facts.erase(std::string{each.field});
  }
  if (!facts.has("capacity")) facts.erase("pad_to_capacity");
  if (facts.is("task", "lora") || facts.is("task", "qlora")) return;
  for (const char* field : {"lora_rank", "lora_targets", "lora_dropout"}) facts.erase(field);
}

}  // namespace

void Facts::narrow(const std::string& field, const std::vector<std::string>& values) {
  std::vector<std::string>& known = values_[field];
  std::vector<std::string> common;
  for (const std::string& each : values) {
    if (std::ranges::find(known, each) != known.end()) common.push_back(each);
  }
  known = known.empty() || common.empty() ? values : common;
}

std::string Facts::text(std::string_view field) const {
  const auto found = values_.find(field);
  return found == values_.end() || found->second.empty() ? std::string{} : found->second.front();
}

std::optional<std::int64_t> Facts::integer(std::string_view field) const {
  const auto value = number(field);
  if (!value || std::abs(*value) > 9e15 || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<double> Facts::number(std::string_view field) const {
  const auto value = orrery::number_in<double>(text(field));
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<std::string> Facts::fields() const {
  std::vector<std::string> names;
  for (const auto& [field, values] : values_) names.push_back(field);
  return names;
}

std::string layout_of(const std::vector<std::int64_t>& layers, std::int64_t predictions) {
  std::string text;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) text += '|';
    if (i == 0) text += 'E';
    if (layers[i] > 0) text += fmt::format("t*{}", layers[i]);
    if (i + 1 == layers.size()) {
      if (predictions > 0) text += fmt::format("m*{}", predictions);
      text += 'L';
    }
  }
  return text;
}

std::optional<std::vector<std::int64_t>> layers_of_layout(std::string_view layout) {
  std::vector<std::int64_t> layers;
  for (const std::string_view piece : split(layout, '|')) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < piece.size();) {
      const char kind = piece[i++];
      std::int64_t times = 1;
      if (i < piece.size() && piece[i] == '*') {
        const std::size_t begin = ++i;
        while (i < piece.size() && piece[i] >= '0' && piece[i] <= '9') ++i;
        const auto number = orrery::number_in<std::int64_t>(piece.substr(begin, i - begin));
        if (!number || *number > 4096) return std::nullopt;
        times = *number;
      }
      if (std::string_view{"EtmL,"}.find(kind) == std::string_view::npos) return std::nullopt;
      if (kind == 't') count += times;
    }
    layers.push_back(count);
  }
  return layers;
}

Json plan_of(Facts facts, const FactBasis& basis, std::vector<std::string>& notes) {
  settle_products(facts);
  settle_context(facts, notes);
  settle_stages(facts, basis, notes);
  settle_ends(facts, basis, notes);
  settle_shards(facts, basis, notes);
  settle_batch(facts, basis, notes);
  settle_recompute(facts, notes);
  settle_offload(facts, basis, notes);
  settle_tiles(facts, basis, notes);
  settle_adapters(facts, notes);
  settle_communication(facts, basis, notes);
  if (facts.is("reshard_by_pipeline", "true") && !facts.has("reshard")) {
    facts.set("reshard", facts.integer_or("pipeline", 1) > 1 ? "false" : "true");
  }
  if (const auto capacity = facts.number("capacity"); capacity && *capacity <= 0)
    facts.erase("capacity");
  if (basis.model != nullptr && usual_experts(*basis.model).count == 0) drop_experts(facts);
  drop_irrelevant(facts);
  Json plan = Json::object();
  for (const models::PlanField& field : models::plan_fields()) {
    if (facts.has(field.key)) plan[std::string{field.key}] = field.json_of(facts.text(field.key));
  }
  return plan;
}

namespace {

std::string text_of_value(const Json& value) {
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  std::string text;
  for (const Json& each : value) text += (text.empty() ? "" : ":") + text_of_value(each);
  return text;
}

/// The cut of a plan that states none, where tools that count layers alone do not find it: they
/// give each chunk as many, or with embedding and head as many of all these.
/// Source  Megatron-LM, arguments.py: num_layers must be divisible by the chunks
std::vector<std::int64_t> uneven_cut(const models::Plan& plan, const models::Model& model) {
  std::vector<std::int64_t> layers = layers_per_chunk(plan, model);
  std::vector<std::int64_t> counted = layers;
  if (plan.stages.embedding_counts) {
    counted.front() += 1;
    counted.back() += 1;
  }
  const bool even = std::ranges::all_of(counted, [&](auto each) { return each == counted[0]; });
  return even ? std::vector<std::int64_t>{} : layers;
}

void add_export_facts(const models::Plan& plan, const FactBasis& basis, Facts& facts) {
  const auto set = [&](const char* field, std::int64_t value) {
    facts.set(field, std::to_string(value));
  };
  set("accumulation", plan.micro_batches());
  set("shard_copies", plan.data / std::max<std::int64_t>(1, plan.data_shards()));
  const bool shards = plan.sharding.zero == models::Zero::three;
  set("shard_degree", shards ? plan.data_shards() : 1);
  set("replicate_degree",
      shards ? plan.data / std::max<std::int64_t>(1, plan.data_shards()) : plan.data);
  set("local_batch", plan.pipeline > 1 ? plan.batch.global / plan.data : plan.batch.micro);
  if (plan.pipeline > 1) {
    set("pipeline_micro_batch", plan.batch.micro);
    const char* counts = plan.stages.embedding_counts ? "true" : "false";
    facts.set("first_less", counts);
    facts.set("last_less", counts);
    const std::int64_t layers = basis.model->layers.size() + (plan.stages.embedding_counts ? 2 : 0);
    set("layers_per_virtual_stage", (layers + plan.chunks() - 1) / plan.chunks());
  }
  const std::vector<std::int64_t> cut = plan.pipeline == 1 ? std::vector<std::int64_t>{}
                                        : !plan.stages.layers.empty()
                                            ? plan.stages.layers
                                            : uneven_cut(plan, *basis.model);
  if (!cut.empty()) {
    facts.set("stage_layers", fmt::format("{}", fmt::join(cut, ":")));
    facts.set("stage_layout", layout_of(cut, basis.model->prediction_layers));
  }
  if (plan.context > 1 && plan.context_exchange.form == models::ContextForm::hierarchical) {
    facts.set("context_sizes",
              fmt::format("{}:{}", plan.context_exchange.heads,
                          plan.context / std::max<std::int64_t>(1, plan.context_exchange.heads)));
  }
  if (plan.stages.deferred_head_gradients > 0 && plan.pipeline > 1)
    facts.set("defers_head", "true");
  if (plan.optimizer.moments != models::Moments::full) facts.set("precision_aware", "true");
  if (plan.offload.layers > 0) {
    facts.set("offloads_layers", "true");
    if (plan.offload.layers * plan.chunks() >= basis.model->layers.size())
      facts.set("all_layers_offloaded", "true");
  }
  if (plan.formats.start_layers_bf16 > 0 || plan.formats.end_layers_bf16 > 0) {
    facts.set("keeps_layers_bf16", "true");
  }
  if (plan.recompute.kind == models::Recompute::full) {
    facts.set("recompute_method", plan.recompute.layers > 0 ? "block" : "uniform");
    set("recompute_number", std::max<std::int64_t>(1, plan.recompute.layers));
    if (plan.recompute.every > 1) {
      facts.set("recompute_mode", "selective");
      set("selective_option", plan.recompute.every);
    }
  }
  constexpr std::int64_t mebibyte = 1 << 20;
  const bool reduces_buckets = plan.sharding.zero == models::Zero::none;
  if (reduces_buckets && plan.sharding.bucket.count() > 0 &&
      plan.sharding.bucket.count() % mebibyte == 0) {
    set("bucket_mib", plan.sharding.bucket.count() / mebibyte);
  }
  if (plan.sharding.bucket.count() > 0) {
    set("bucket_elements",
        std::llround(static_cast<double>(plan.sharding.bucket.count()) / basis.gradient_bytes));
  }
  if (shards) {
    set("prefetch_elements", std::llround(static_cast<double>(plan.sharding.prefetch) *
                                          parameters_of_layer(*basis.model, plan.tensor)));
    set("fsdp_version", 2);
  }
  const char* device = plan.offload.device == models::OffloadDevice::nvme ? "nvme" : "cpu";
  if (plan.offload.state != models::Offload::none) facts.set("offload_optimizer", device);
  if (plan.offload.state == models::Offload::parameters) facts.set("offload_param", device);
}

}  // namespace

Facts facts_of(const models::Plan& plan, const FactBasis& basis) {
  Facts facts;
  for (const models::PlanField& field : models::plan_fields()) {
    Json value = field.json(plan);
    if (value.is_null() && basis.stated.contains(field.key)) {
      value = (field.write ? field.write : field.value.write)(plan);
    }
    if (!value.is_null() && !(value.is_array() && value.empty())) {
      facts.set(std::string{field.key}, text_of_value(value));
    }
  }
  facts.set("overlap_gather", plan.overlap.with_forward() ? "true" : "false");
  facts.set("expert_tensor", std::to_string(models::expert_tensor_of(plan)));
  facts.set("expert_gemms", std::string{word_of(models::expert_gemms_words, plan.experts.gemms)});
  if (usual_experts(*basis.model).count == 0) {
    drop_experts(facts);
    facts.erase("expert");
    facts.erase("expert_tensor");
  }
  drop_irrelevant(facts);
  add_export_facts(plan, basis, facts);
  return facts;
}

}  // namespace orrery::scenarios

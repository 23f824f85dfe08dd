#include <fmt/format.h>

#include "models/model/counts.hpp"
#include "models/model/model.hpp"
#include "models/model/operation_list.hpp"
#include "models/model/whole_model.hpp"
#include "models/schedules/csv.hpp"
#include "models/software/software.hpp"
#include "scenarios/collective/algorithms_table.hpp"
#include "scenarios/command/show/catalogue_tables.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/exchange/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::int64_t usual_seq_len = 2048;  // if a model states no maximum sequence length

/// A model, and what its file has besides.
struct ShownModel {
  models::Model model;
  std::optional<models::WholeModel> whole;
};

ShownModel model_of(const std::string& name) {
  const Document flag = Document::from(name, "show models");
  const Expansion found = expanded(Section::model, flag.root(), "");
  const std::string file = found.origin ? found.origin->file : name;
  const Node config{found.json, file, ""};
  ShownModel shown{models::read_model(config), std::nullopt};
  shown.whole = models::whole_model(config, shown.model);
  return shown;
}

/// The sequence length asked for, or else the model's maximum.
std::int64_t length_of(const models::Model& model, std::optional<std::int64_t> asked) {
  if (asked) return *asked;
  return model.embedding.max_positions > 0 ? model.embedding.max_positions : usual_seq_len;
}

/// Width of the MLP of layers without experts; 0 where all have some.
std::int64_t dense_width(const models::Model& model) {
  for (const models::Layer& kind : model.layers.kinds()) {
    if (kind.mlp() != nullptr && kind.experts() == nullptr) return kind.mlp()->width;
  }
  return 0;
}

Json experts_json(const models::Model& model) {
  const models::ExpertsPart& experts = usual_experts(model);
  if (experts.count == 0) return nullptr;
  return {{"experts", experts.count},
          {"experts_per_token", experts.per_token},
          {"layers", expert_layers(model)},
          {"shared_ffn", experts.shared_width},
          {"dense_ffn", dense_width(model)}};
}

/// "256 of 2048 on 58 layers, 8 for each token, 2048 shared; 18432 on the others"
std::string experts_text(const models::Model& model) {
  const models::ExpertsPart& experts = usual_experts(model);
  std::string text = fmt::format("{} of width {} on {} layers, {} for each token", experts.count,
                                 experts.mlp.width, expert_layers(model), experts.per_token);
  if (experts.shared_width > 0) text += fmt::format(", {} shared", experts.shared_width);
  const std::int64_t dense = dense_width(model);
  return dense > 0 ? text + fmt::format("; {} on the others", dense) : text;
}

Json model_json(const ShownModel& shown, std::int64_t seq_len) {
  const models::Model& model = shown.model;
  const double forward = models::forward_flops_per_token(model, seq_len);
  Json json;
  json["name"] = model.name;
  json["unit"] = std::string{models::unit_word(model)};
  json["parameters"] = model.parameters;
  json["parameters_without_mtp"] = model.parameters - models::count_prediction_parameters(model);
  json["counts"] = shown.whole ? "text model" : "model";
  json["parameters_whole"] =
      shown.whole ? or_null(shown.whole->parameters) : Json(model.parameters);
  json["active_parameters"] = model.active_parameters;
  json["flops_per_token"] = {{"forward", forward}, {"backward", 2 * forward}};
  json["seq_len"] = seq_len;
  json["layers"] = model.layers.size();
  json["hidden"] = model.hidden;
  json["heads"] = usual_attention(model).heads;
  json["kv_heads"] = usual_attention(model).kv_heads;
  json["ffn_hidden"] = usual_mlp(model).width;
  json["vocab"] = model.embedding.vocab;
  json["experts"] = experts_json(model);
  json["prediction_layers"] = model.prediction_layers;
  json["parameter_formula"] = model.formula;
  json["not_simulated"] = or_null(model.not_simulated);
  json["inexact"] = model.inexact;
  json["assumptions"] = model.assumptions;
  json["ignored_keys"] = model.ignored_keys;
  return json;
}

/// A list of operations: its counts, and its layers with what each holds.
std::string list_text(const models::Model& model) {
  const models::OperationList& list = *model.list;
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<18}{}\n", label, value);
  };
  line("parameters", fmt::format("{}", model.parameters));
  if (list.trains()) {
    line("FLOPs per sample",
         fmt::format("{:.0f} forward ({:.0f} multiply-adds), {:.0f} backward", list.matrix_flops(),
                     list.matrix_flops() / 2, 2 * list.matrix_flops()));
    const double others = list.forward_flops() - list.matrix_flops();
    if (others > 0) line("other kernels", fmt::format("{:.5g} FLOPs per sample forward", others));
    line("batch", fmt::format("{} samples on each GPU", list.batch()));
  } else {
    line("FLOPs per step",
         fmt::format("{:.5g} on one of {} GPUs", list.forward_flops(), list.gpus()));
    if (list.steps() > 0) line("steps", fmt::format("{:.6g}", list.steps()));
  }
  TextTable table{{"<layers", "times", "operations", "parameters", "GFLOPs"}};
  for (std::int64_t layer = 0; layer < list.layers();) {
    const std::int64_t kind = list.kind_of(layer);
    std::int64_t times = 0, parameters = 0;
    while (layer < list.layers() && list.kind_of(layer) == kind) ++times, ++layer;
    double flops = 0;
    const std::vector<models::ListedOperation> all = list.operations(kind);
    for (const models::ListedOperation& each : all) {
      flops += each.flops;
      parameters += each.parameters;
    }
    const auto samples = static_cast<double>(std::max<std::int64_t>(1, list.batch()));
    table.add({list.kind_name(kind), fmt::format("{}", times), fmt::format("{}", all.size()),
               fmt::format("{}", parameters), fmt::format("{:.4g}", flops / samples / 1e9)});
  }
  text += table.text(terminal().colour);
  for (const std::string& each : list.assumed()) line("assumed", each);
  return text;
}

/// "of 24 layers to 512 rows, the output of the first 24"
std::string crossing_text(const models::Model& model) {
  const auto layers =
      model.layers.count_if([](const models::Layer& each) { return each.cross.has_value(); });
  const std::string text =
      fmt::format("of {} layers to {} rows", layers, models::source_length(model));
  return model.encoder->given()
             ? text + ", which are given"
             : fmt::format("{}, the output of the first {} layers", text, model.encoder->layers);
}

/// "4014136320 with the encoder of images" of a multimodal file.
std::string whole_text(const models::WholeModel& whole) {
  return whole.parameters
             ? fmt::format("{} with encoder of images and projector", *whole.parameters)
             : std::string{"not counted with its encoders; these are of the text model"};
}

std::string model_text(const ShownModel& shown, std::int64_t seq_len) {
  const models::Model& model = shown.model;
  const double forward = models::forward_flops_per_token(model, seq_len);
  std::string text = toned(model.name, Tone::bold, terminal().colour) + "\n";
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<18}{}\n", label, value);
  };
  if (model.list) return text + list_text(model);
  const std::int64_t ahead = models::count_prediction_parameters(model);
  line("parameters",
       ahead > 0 ? fmt::format("{}, {} without MTP", model.parameters, model.parameters - ahead)
                 : fmt::format("{}", model.parameters));
  if (shown.whole) line("whole file", whole_text(*shown.whole));
  line("active", fmt::format("{}", model.active_parameters));
  line("counted as", model.formula);
  line("FLOPs per token",
       fmt::format("{:.5g} forward, {:.5g} backward, at {} tokens", forward, 2 * forward, seq_len));
  line("layers", fmt::format("{} of width {}, MLP width {}", model.layers.size(), model.hidden,
                             usual_mlp(model).width));
  if (crosses(model)) line("cross-attention", crossing_text(model));
  line("heads", fmt::format("{}, {} for keys and values, width {}", usual_attention(model).heads,
                            usual_attention(model).kv_heads, usual_attention(model).head_dim));
  if (usual_experts(model).count > 0) line("experts", experts_text(model));
  if (usual_attention(model).latents) {
    line("latents", fmt::format("rank {} for queries, {} for keys and values, {} rotary columns",
                                usual_attention(model).latents->query_rank,
                                usual_attention(model).latents->kv_rank,
                                usual_attention(model).latents->rotary_dim));
  }
  if (model.prediction_layers > 0) {
    line("further tokens", fmt::format("{}, each predicted by a layer", model.prediction_layers));
  }
  line("vocabulary",
       fmt::format("{}{}", model.embedding.vocab, model.embedding.tied ? ", tied" : ""));
  if (model.not_simulated) line("not simulated", *model.not_simulated);
  if (!model.inexact.empty()) line("inexact", model.inexact);
  for (const std::string& each : model.assumptions) line("assumed", each);
  for (const std::string& key : model.ignored_keys) line("not used", key);
  return text;
}

/// What one stage does, slot by slot.
std::string text_of(const models::Slots& slots, const models::PipelineShape& shape) {
  std::string text;
  for (const models::ScheduleSlot& slot : slots) {
    const std::int64_t virtual_stage = slot.chunk / shape.stages;
    text += fmt::format(" {}{}", word_of(models::slot_letters, slot.kind), slot.micro_batch);
    if (shape.chunks() > shape.stages) text += static_cast<char>('a' + virtual_stage);
  }
  return text;
}

/// "F forward, B backward".
std::string legend_of(const std::vector<models::SlotKind>& kinds) {
  std::string text;
  for (const models::SlotKind kind : kinds) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word_of(models::slot_letters, kind),
                        word_of(models::slot_words, kind));
  }
  return text;
}

}  // namespace

Shown show_models(const std::optional<std::string>& name, std::optional<std::int64_t> seq_len) {
  if (name) {
    const ShownModel shown = model_of(*name);
    const std::int64_t length = length_of(shown.model, seq_len);
    return {model_text(shown, length), model_json(shown, length)};
  }
  TextTable table{
      {"<model", "parameters", "layers", "hidden", "heads", "vocabulary", "tokens", "<"}};
  Json list = Json::array();
  for (const std::string& each : models::model_names()) {
    const ShownModel shown = model_of(each);
    const models::Model& model = shown.model;
    table.add({each, fmt::format("{:.4g} B", static_cast<double>(model.parameters) / 1e9),
               fmt::format("{}", model.layers.size()), fmt::format("{}", model.hidden),
               fmt::format("{}", usual_attention(model).heads),
               fmt::format("{}", model.embedding.vocab),
               fmt::format("{}", model.embedding.max_positions),
               model.not_simulated ? "counted only" : ""});
    list.push_back(model_json(shown, length_of(model, seq_len)));
  }
  return {table.text(terminal().colour), list};
}

namespace {

/// A profile as written, before inheritance, by name or path.
Document written_software(const std::string& name) {
  if (is_path(name)) return Document::load(name);
  return Document::from(models::written_profile(name), name);
}

/// Every value with the profile of the inheritance chain that states it, then the source of each of
/// those profiles.
Shown show_one_software(const std::string& name, std::optional<int> year) {
  const Document written = written_software(name);
  const models::ResolvedProfile found = models::resolve_profile(written.root(), year);
  models::read_software(Node{found.profile, written.name(), ""});
  const Terminal shown = terminal();
  const std::string line = fmt::format("{}", fmt::join(found.line, " < "));
  std::string text = toned(line, Tone::bold, shown.colour) + "\n";
  TextTable table{{"<value", "", "<from"}};
  for (const auto& [pointer, who] : found.origins) {
    const Json::json_pointer at{pointer};
    if (!found.profile.contains(at)) continue;  // removed by an era or a child profile
    const Json& value = found.profile.at(at);
    if (pointer == "/runs/source") continue;
    table.add({pointer, value.is_string() ? value.get<std::string>() : value.dump(), who});
  }
  text += table.text(shown.colour);
  const auto add_source = [&](const Document& of) {
    text += fmt::format("\n{}: {}\n", of.root().value_or<std::string>("name", name),
                        of.root().value_or<std::string>("source", "none"));
  };
  add_source(written);
  for (std::size_t i = 1; i < found.line.size(); ++i) add_source(written_software(found.line[i]));
  return {text, found.profile};
}

}  // namespace

Shown show_software(const std::optional<std::string>& name, std::optional<int> year) {
  if (name) return show_one_software(*name, year);
  TextTable table{{"<software", "year", "<source"}};
  Json list = Json::array();
  for (const std::string& each : models::software_names()) {
    const Json profile = models::software_profile(each);
    const models::Software software = models::read_software(Node{profile, each, ""});
    table.add({each, fmt::format("{}", software.year), software.source});
    list.push_back({{"name", each}, {"year", software.year}, {"source", software.source}});
  }
  return {table.text(terminal().colour), list};
}

namespace {

/// A built-in schedule for one pipeline size, or the slots of a file.
struct ScheduleOnShow {
  std::string title, paper;
  models::PipelineShape shape;
  std::vector<models::SlotKind> kinds;
  std::vector<models::Slots> slots;
};

ScheduleOnShow schedule_on_show(const std::string& name, const ScheduleView& view) {
  if (name.find('.') != std::string::npos) {
    models::ScheduleTable table = models::load_schedule(name);
    const auto ranks = static_cast<std::int64_t>(table.slots.size());
    std::vector<models::SlotKind> kinds = models::split_kinds;
    if (!table.splits_backward()) kinds.pop_back();
    const models::PipelineShape shape{ranks, (table.chunks + ranks - 1) / ranks,
                                      table.micro_batches};
    return {name, "a file", shape, std::move(kinds), std::move(table.slots)};
  }
  const models::Schedule& schedule = models::builtin_schedules().at(name);
  const bool several = schedule.chunks == models::ChunksPerStage::several;
  models::PipelineShape shape{view.stages, several ? 2 : 1, view.micro_batches};
  shape.copies = schedule.copies();
  if (view.csv && shape.copies > 1) {
    throw InputError{"--csv",
                     name + " holds two copies of the model, which the CSV format cannot express"};
  }
  if (schedule.unmet && !schedule.unmet(shape).empty()) {
    throw InputError{fmt::format("{} needs {}", name, fmt::join(schedule.unmet(shape), " and "))};
  }
  return {name, std::string{schedule.paper}, shape, schedule.kinds,
          models::slots_of(schedule, shape)};
}

}  // namespace

Shown show_schedules(const std::optional<std::string>& name, const ScheduleView& view) {
  if (!name) {
    Json list = Json::array();
    std::string text;
    for (const auto& [each, schedule] : models::builtin_schedules()) {
      list.push_back(each);
      text += fmt::format("  {}\n", each);
    }
    return {text, list};
  }
  const ScheduleOnShow found = schedule_on_show(*name, view);
  const models::PipelineShape& shape = found.shape;
  std::string text = toned(found.title, Tone::bold, terminal().colour);
  text += fmt::format(": {} stages, {} micro-batches; {}{}\n  {}\n", shape.stages,
                      shape.micro_batches, legend_of(found.kinds),
                      shape.copies > 1           ? "; a, b copies of the model"
                      : shape.virtual_stages > 1 ? "; a, b virtual stages"
                                                 : "",
                      found.paper);
  Json stages = Json::array();
  for (const models::Slots& each : found.slots) {
    const std::string slots = text_of(each, shape);
    text += fmt::format("  stage {}:{}\n", stages.size(), slots);
    stages.push_back(slots.substr(1));
  }
  if (view.csv) text = models::to_csv(found.slots);
  return {text, {{"name", *name}, {"paper", found.paper}, {"stages", stages}}};
}

Shown show_collectives() {
  const AlgorithmsTable table = algorithms_table();
  return {table.text(terminal().colour), table.json()};
}

}  // namespace orrery::scenarios

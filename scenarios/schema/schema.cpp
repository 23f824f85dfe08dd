#include "scenarios/schema/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "hardware/cluster/cluster.hpp"
#include "models/model/kinds.hpp"
#include "models/plan/fields.hpp"
#include "models/prediction/fit.hpp"
#include "models/prediction/network/network.hpp"
#include "scenarios/claims/claims.hpp"
#include "scenarios/embedded.hpp"
#include "scenarios/exchange/suggestion.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/search/plan_search.hpp"
#include "sim/input/csv.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::string_view draft = "https://json-schema.org/draft/2020-12/schema";

/// A member of a document. Required: "yes", "" or "or like", which a catalogue entry may state.
struct SchemaRow {
  std::string document, path, type, required, meaning;
  bool is_input = true;
};

std::vector<SchemaRow> rows_in(std::string_view file, bool is_input) {
  std::vector<SchemaRow> rows;
  for (const EmbeddedFile& each : embedded_files()) {
    if (!each.path.ends_with(file)) continue;
    const Table table = Table::parse(each.text, std::string{each.path});
    for (std::size_t i = 0; i < table.size(); ++i) {
      const auto cell = [&](const char* column) { return std::string{table[i].text(column)}; };
      rows.push_back({cell("document"), cell("path"), cell("type"), cell("required"),
                      cell("meaning"), is_input});
    }
  }
  return rows;
}

const std::vector<SchemaRow>& schema_rows() {
  static const std::vector<SchemaRow> all = [] {
    std::vector<SchemaRow> rows = rows_in("scenarios/schema/inputs.csv", true);
    for (SchemaRow& each : rows_in("scenarios/schema/answers.csv", false)) {
      rows.push_back(std::move(each));
    }
    return rows;
  }();
  return all;
}

// ---- What code's own tables say.

template <class Enum, std::size_t n>
Json enum_of(const Words<Enum, n>& words) {
  Json list = Json::array();
  for (const auto& each : words) list.push_back(each.text);
  return {{"enum", list}};
}

/// All spellings of units that a reader of this quantity takes, found by asking it.
template <class Q>
std::vector<std::string> unit_spellings(const std::string& before) {
  constexpr std::string_view prefixes[] = {"",   "m",  "u",  "\u00B5", "\u03BC", "n", "p",
                                           "k",  "K",  "M",  "G",      "T",      "P", "E",
                                           "Ki", "Mi", "Gi", "Ti",     "Pi"};
  constexpr std::string_view bases[] = {"s",    "B",      "B/s",   "b/s", "bit/s", "bps", "Bps",
                                        "FLOP", "FLOP/s", "FLOPS", "W",   "J",     "Wh",  "Hz"};
  constexpr std::string_view alone[] = {"",    "min",  "h",  "hour",  "hours", "d",
                                        "day", "days", "/h", "/hour", "k",     "M"};
  std::vector<std::string> taken;
  const auto ask = [&](const std::string& unit) {
    const bool known = std::ranges::find(taken, unit) != taken.end();
    if (!known && parse_quantity<Q>(before + "100 " + unit)) taken.push_back(unit);
  };
  for (const std::string_view each : alone) ask(std::string{each});
  ask("B");
  for (const std::string_view base : bases) {
    for (const std::string_view prefix : prefixes) ask(std::string{prefix} + std::string{base});
  }
  return taken;
}

template <class Q>
Json quantity_schema() {
  const bool dollars = parse_quantity<Q>("$1 /h") || parse_quantity<Q>("$1");
  std::vector<std::string> units = unit_spellings<Q>(dollars ? "$" : "");
  std::string choice;
  for (const std::string& each : units) choice += "|" + each;
  choice = choice.substr(1);  // no unit at all is one of Money's
  return {
      {"type", "string"},
      {"description", fmt::format("{}", expected_form<Q>())},
      {"pattern", fmt::format(R"(^\s*{}([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*({})\s*$)",
                              dollars ? R"(\$\s*)" : "", choice)}};
}

Json list_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

Json any_of(std::vector<Json> parts) {
  if (parts.size() == 1) return parts.front();
  Json list = Json::array();
  for (Json& each : parts) list.push_back(std::move(each));
  return {{"anyOf", list}};
}

/// The words of a field; those that are numbers may be written as numbers, too.
Json words_schema(const models::PlanValue& value) {
  Json list = Json::array();
  for (const std::string& each : value.words()) {
    list.push_back(each);
    if (const Json number = models::scalar_of(each); !number.is_string()) list.push_back(number);
  }
  return {{"enum", list}};
}

Json value_schema(const models::PlanField& field) {
  using Kind = models::PlanValue::Kind;
  const models::PlanValue& value = field.value;
  const Json count{{"type", "integer"}, {"minimum", value.least}, {"maximum", value.most}};
  std::vector<Json> forms;
  switch (value.kind) {
    case Kind::count:
      forms = {count};
      break;
    case Kind::flag:
      forms = {{{"type", "boolean"}}};
      break;
    case Kind::word:
      forms = {words_schema(value)};
      break;
    case Kind::share:
      forms = {{{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}}};
      break;
    case Kind::factor:
      forms = {{{"type", "number"}, {"minimum", 0}}, list_of({{"type", "number"}})};
      break;
    case Kind::bytes:
      forms = {{{"$ref", "#/$defs/bytes"}}};
      break;
    case Kind::counts:
      forms = {list_of(count)};
      break;
    case Kind::word_list:
      forms = {list_of(words_schema(value))};
      break;
  }
  const bool names_file = !field.other_values.empty() && !field.other_values.starts_with(' ');
  const bool named = field.other_values.find("file") != std::string_view::npos;
  if (names_file || named) forms.push_back({{"type", "string"}});  // a path, or a word of its own
  forms.push_back({{"type", "null"}});
  Json schema = any_of(std::move(forms));
  schema["description"] =
      fmt::format("{} ({}; default {})", field.meaning, field.accepted(), field.default_text());
  return schema;
}

Json plan_schema() {
  Json fields = Json::object();
  for (const models::PlanField& each : models::plan_fields()) {
    fields[std::string{each.key}] = value_schema(each);
  }
  return {{"type", "object"},
          {"description",
           "How a model is cut over ranks and trained; what is left out is derived or a default"},
          {"properties", std::move(fields)},
          {"additionalProperties", false}};
}

/// Fields that a software profile states for runs whose publication does not.
void add_stack_defaults(Json& software) {
  Json& defaults = software["properties"]["defaults"];
  Json& object = defaults.contains("anyOf") ? defaults["anyOf"][0] : defaults;
  for (const models::PlanField& each : models::plan_fields()) {
    if (each.stack != models::PlanField::Stack::has_default) continue;
    object["properties"][std::string{each.key}] = value_schema(each);
  }
}

/// The best plan of each kind that a search names.
void add_plan_kinds(Json& plans) {
  for (const PlanKind& each : named_kinds()) {
    plans["properties"][std::string{each.key}] = {
        {"anyOf", Json::array({{{"$ref", "#/$defs/kind_best"}}, {{"type", "null"}}})},
        {"description", fmt::format("The best {}; null if the best of all is one", each.name)}};
  }
}

Json claim_quantities() {
  Json list = Json::array();
  for (const auto& rules : {hardware_rules(), run_rules(), money_rules()}) {
    for (const ClaimRule& each : rules) list.push_back(each.quantity);
  }
  return {{"enum", list}};
}

Json perturbation_kinds() {
  Json kinds = enum_of(models::perturbed_part_words);
  kinds["enum"].push_back("jitter");
  return kinds;
}

Json model_schema() {
  const Json nested{{"type", "object"}, {"properties", {{"model_type", {{"type", "string"}}}}}};
  const Json config{{"type", "object"},
                    {"description",
                     "config.json of Hugging Face as it stands; orrery show models FILE says which "
                     "of its keys were not read"},
                    {"properties", {{"model_type", {{"type", "string"}}}, {"text_config", nested}}},
                    {"not", {{"required", Json::array({"format"})}}},
                    {"required", Json::array({"model_type"})}};
  return {{"description", "A model: Orrery's own form, or a config.json"},
          {"anyOf", Json::array({{{"$ref", "#/$defs/orrery-model"}},
                                 {{"$ref", "#/$defs/orrery-operations"}},
                                 config})}};
}

/// Members beyond these depend on the kind; models/model/README.md has them.
Json listed_operation_schema() {
  const Json name{{"type", "string"}};
  return {{"type", "object"},
          {"description", "An operation of one kind, or a group of operations"},
          {"properties",
           {{"name", name},
            {"kind", name},
            {"operations", list_of({{"$ref", "#/$defs/listed_operation"}})}}},
          {"required", Json::array({"name"})},
          {"anyOf", Json::array({{{"required", Json::array({"kind"})}},
                                 {{"required", Json::array({"operations"})}}})}};
}

/// Schemas that no row of the tables says.
const std::map<std::string, std::function<Json()>, std::less<>>& coded_schemas() {
  static const std::map<std::string, std::function<Json()>, std::less<>> all{
      {"plan", plan_schema},
      {"model", model_schema},
      {"listed_operation", listed_operation_schema},
      {"claim_quantity", claim_quantities},
      {"perturbation_kind", perturbation_kinds},
      {"sources",
       [] {
         return Json{{"type", "object"},
                     {"description", "Pointer -> source of all numbers at or below it"},
                     {"additionalProperties", {{"type", "string"}}}};
       }},
      {"fit",
       [] {
         return Json{{"enum", Json::array({"yes", "tight", "doubtful", "no"})}};
       }},
      {"scale_up_kind", [] { return enum_of(hardware::scale_up_words); }},
      {"fabric_kind", [] { return enum_of(hardware::fabric_kind_words); }},
      {"routing", [] { return enum_of(hardware::routing_words); }},
      {"norm", [] { return enum_of(models::norm_words); }},
      {"positions", [] { return enum_of(models::position_words); }},
      {"activation", [] { return enum_of(models::activation_words); }},
      {"time", quantity_schema<Time>},
      {"bytes", quantity_schema<Bytes>},
      {"flops", quantity_schema<Flops>},
      {"rate", quantity_schema<Bandwidth>},
      {"flop_rate", quantity_schema<FlopRate>},
      {"power", quantity_schema<Power>},
      {"energy", quantity_schema<Energy>},
      {"money", quantity_schema<Money>},
      {"price", quantity_schema<Price>},
      {"frequency", quantity_schema<Frequency>}};
  return all;
}

// ---- What the rows say.

std::string_view after(std::string_view text, std::string_view head) {
  return text.substr(head.size());
}

/// "integer 1..64", "number 0..", "string".
Json bounded(std::string_view type) {
  const std::size_t blank = type.find(' ');
  Json schema{{"type", std::string{type.substr(0, blank)}}};
  if (blank == type.npos) return schema;
  const std::string_view range = type.substr(blank + 1);
  const std::size_t dots = range.find("..");
  ensure(dots != range.npos, "a range in a schema has two dots");
  const auto put = [&](const char* key, std::string_view text) {
    if (!text.empty())
      schema[key] = models::scalar_of(text.starts_with('-') ? text.substr(1) : text);
    if (text.starts_with('-')) schema[key] = Json(-schema[key].get<double>());
  };
  put("minimum", range.substr(0, dots));
  put("maximum", range.substr(dots + 2));
  return schema;
}

/// A cell of column `type`: "list of string", "$plan or null", "words a b", "time".
Json typed(std::string_view type) {
  if (type.starts_with("list of ")) return list_of(typed(after(type, "list of ")));
  if (type.starts_with("map of ")) {
    return {{"type", "object"}, {"additionalProperties", typed(after(type, "map of "))}};
  }
  if (const std::size_t at = type.find(" or "); at != type.npos) {
    std::vector<Json> forms;
    for (std::size_t from = 0; from != type.npos;) {
      const std::size_t end = type.find(" or ", from);
      forms.push_back(typed(type.substr(from, end == type.npos ? end : end - from)));
      from = end == type.npos ? end : end + 4;
    }
    return any_of(std::move(forms));
  }
  if (type.starts_with("words ")) {
    Json list = Json::array();
    for (const std::string_view each : split(after(type, "words "), ' ')) list.push_back(each);
    return {{"enum", list}};
  }
  if (type.starts_with('$')) return {{"$ref", fmt::format("#/$defs/{}", type.substr(1))}};
  if (type == "any") return Json::object();
  if (coded_schemas().contains(type)) return {{"$ref", fmt::format("#/$defs/{}", type)}};
  return bounded(type);
}

/// The schema of one document, made row by row; a row follows that of what it is in.
class SchemaBuilder {
 public:
  explicit SchemaBuilder(std::string_view document) {
    for (const SchemaRow& each : schema_rows()) {
      if (each.document == document) add(each);
    }
  }
  Json take() && { return std::move(schema_); }

 private:
  void add(const SchemaRow& row) {
    Json own = typed(row.type);
    if (row.path.empty()) {
      schema_ = std::move(own);
      schema_["description"] = row.meaning;
      return;
    }
    const std::size_t slash = row.path.rfind('/');
    const std::string key = slash == row.path.npos ? row.path : row.path.substr(slash + 1);
    Json& object = within(slash == row.path.npos ? "" : row.path.substr(0, slash));
    if (row.is_input) object["additionalProperties"] = false;
    if (row.required == "yes") object["required"].push_back(key);
    if (row.required == "or like") either_or_like(object, key);
    const bool nullable = row.is_input && row.required != "yes";  // null counts as absent
    if (nullable && !own.empty()) own = with_null(std::move(own));
    own["description"] = row.meaning;
    object["properties"][key] = std::move(own);
  }

  static Json with_null(Json schema) {
    if (!schema.contains("anyOf")) {
      Json forms = Json::array();
      forms.push_back(std::move(schema));
      schema = Json{{"anyOf", std::move(forms)}};
    }
    schema["anyOf"].push_back({{"type", "null"}});
    return schema;
  }

  static void either_or_like(Json& object, const std::string& key) {
    if (!object.contains("anyOf")) {
      object["anyOf"] =
          Json::array({{{"required", Json::array()}}, {{"required", Json::array({"like"})}}});
    }
    object["anyOf"][0]["required"].push_back(key);
  }

  /// The form of a schema that has members, or elements.
  static Json& form(Json& schema, std::string_view type) {
    if (schema.value("type", "") == type) return schema;
    for (Json& each : schema.at("anyOf")) {
      if (each.value("type", "") == type) return each;
    }
    throw ContractError{"a row of a schema has no object that it is in"};
  }

  /// The object at a path, in which "*" are the elements of a list and "+" the values of a map.
  Json& within(std::string_view path) {
    Json* at = &schema_;
    while (!path.empty()) {
      const std::size_t slash = path.find('/');
      const std::string step{path.substr(0, slash)};
      path = slash == path.npos ? std::string_view{} : path.substr(slash + 1);
      at = step == "*"   ? &form(*at, "array").at("items")
           : step == "+" ? &form(*at, "object").at("additionalProperties")
                         : &form(*at, "object").at("properties").at(step);
    }
    return form(*at, "object");
  }

  Json schema_;
};

/// What every printed document begins with: named_document of
/// scenarios/command/terminal/document.hpp.
void add_document_head(Json& schema) {
  const Json text{{"type", "string"}}, text_or_null{{"type", Json::array({"string", "null"})}};
  const Json made{
      {"type", "object"},
      {"description",
       "What it was made with: version, commit of the sources, hash of "
       "the data that are built in"},
      {"properties", {{"version", text}, {"commit", text_or_null}, {"catalogue", text}}},
      {"required", Json::array({"version", "commit", "catalogue"})}};
  const Json inputs{{"type", "object"},
                    {"description", "The flags that were given, by name; true of a switch"}};
  const Json change{{"type", "object"},
                    {"properties", {{"pointer", text}, {"value", text}}},
                    {"required", Json::array({"pointer", "value"})}};
  Json changes = list_of(change), command = text;
  changes["description"] = "What --set changed";
  command["description"] = "The command that made it";
  Json properties{{"orrery", made}, {"command", command}, {"inputs", inputs}, {"changes", changes}};
  Json required = Json::array({"orrery", "command", "inputs", "changes"});
  for (const auto& [key, value] : schema["properties"].items()) properties[key] = value;
  for (const Json& each : schema["required"]) required.push_back(each);
  schema["properties"] = std::move(properties);
  schema["required"] = std::move(required);
}

Json document_schema(const std::string& name) {
  if (const auto coded = coded_schemas().find(name); coded != coded_schemas().end()) {
    return coded->second();
  }
  Json schema = SchemaBuilder{name}.take();
  ensure(!schema.is_null(), "a schema refers to one that does not exist");
  if (name == "software") add_stack_defaults(schema);
  if (name == "plan_result") add_plan_kinds(schema);
  if (name == "claims") {
    const Json list = schema["properties"]["claims"];
    schema = Json{{"description", schema["description"]},
                  {"anyOf", Json::array({std::move(schema), list})}};
  }
  return schema;
}

/// Adds every schema that `schema` refers to, each once.
void add_referred(const Json& schema, Json& definitions) {
  if (schema.is_object()) {
    if (const auto found = schema.find("$ref"); found != schema.end() && found->is_string()) {
      const std::string name =
          found->get<std::string>().substr(std::string_view{"#/$defs/"}.size());
      if (!definitions.contains(name)) {
        definitions[name] = Json::object();  // ends the recursion
        Json referred = document_schema(name);
        add_referred(referred, definitions);
        definitions[name] = std::move(referred);
      }
    }
  }
  if (schema.is_structured()) {
    for (const Json& each : schema) add_referred(each, definitions);
  }
}

/// Documents that are only parts of others.
bool is_part(std::string_view name) {
  constexpr std::string_view parts[] = {
      "orrery-model",  "orrery-operations", "stage",     "evidence",   "out_of_memory", "advice",
      "offered_price", "sharded_error",     "network",   "range",      "quantiles",     "chain",
      "variant",       "ranked_plan",       "kind_best", "loop_phase", "tally"};
  return std::ranges::find(parts, name) != std::end(parts);
}

}  // namespace

std::vector<SchemaName> schema_names() {
  std::vector<SchemaName> names;
  for (const SchemaRow& each : schema_rows()) {
    if (!each.path.empty() || is_part(each.document)) continue;
    if (each.document == "run") {  // before it those that code says
      for (const char* coded : {"model", "plan"}) {
        names.push_back({coded, true, document_schema(coded).at("description").get<std::string>()});
      }
    }
    names.push_back({each.document, each.is_input, each.meaning});
  }
  return names;
}

Json schema_named(const std::string& name) {
  const std::vector<SchemaName> names = schema_names();
  if (std::ranges::find(names, name, &SchemaName::name) == names.end()) {
    std::vector<std::string> known;
    for (const SchemaName& each : names) known.push_back(each.name);
    throw InputError{unknown_with_suggestion("schema", name, nearest_name(name, known)) +
                     "; known: " + listed(known)};
  }
  Json schema{{"$schema", draft}, {"$id", fmt::format("urn:orrery:{}", name)}, {"title", name}};
  Json own = document_schema(name);
  const auto found = std::ranges::find(names, name, &SchemaName::name);
  const auto accept_own_schema = [](Json& object) {
    if (object.contains("properties")) object["properties"]["$schema"] = {{"type", "string"}};
  };
  if (found->is_input) {  // an editor's hint, which readers ignore
    accept_own_schema(own);
    for (Json& each : own.contains("anyOf") ? own["anyOf"] : Json::array()) accept_own_schema(each);
  }
  Json definitions = Json::object();
  add_referred(own, definitions);
  for (const char* form : {"orrery-model", "orrery-operations"}) {
    if (name == "model") accept_own_schema(definitions[form]);
  }
  if (!found->is_input && name != "error") add_document_head(own);
  schema.update(own);
  if (!definitions.empty()) schema["$defs"] = std::move(definitions);
  return schema;
}

std::string schema_list_text(int width, bool colour) {
  std::string text;
  constexpr std::size_t column = 16;
  bool inputs = false, answers = false;
  for (const SchemaName& each : schema_names()) {
    bool& begun = each.is_input ? inputs : answers;
    if (!begun) {
      text +=
          fmt::format("{}{}\n", text.empty() ? "" : "\n",
                      toned(each.is_input ? "Read" : "Printed with --json", Tone::bold, colour));
    }
    begun = true;
    std::string key = each.name;
    for (const std::string& line :
         wrapped(each.meaning, static_cast<std::size_t>(width) - column - 2)) {
      text += fmt::format("  {:<{}}{}\n", key, column, line);
      key.clear();
    }
  }
  return text;
}

}  // namespace orrery::scenarios

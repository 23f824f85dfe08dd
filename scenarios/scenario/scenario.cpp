#include "scenarios/scenario/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "hardware/entries.hpp"
#include "hardware/gpu/generation.hpp"
#include "models/software/software.hpp"
#include "scenarios/embedded.hpp"
#include "scenarios/exchange/import.hpp"
#include "scenarios/exchange/suggestion.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::string_view usual_software = "generic";
constexpr std::string_view no_file = "command line";

/// The name of a shipped scenario's file; empty for other files.
std::string stem(std::string_view path) {
  return path.ends_with(".json") ? std::filesystem::path{path}.stem().string() : std::string{};
}

/// What a launch file of another tool says, as a scenario that lists what it could not. A node in
/// --cluster becomes as many as the file says.
Json scenario_of_launch(const LaunchFile& file, ScenarioParts& parts) {
  const ImportedLaunch imported =
      import_launch({file}, {.files = {}, .model = parts.model, .cluster = parts.cluster});
  Json scenario = imported.scenario();
  if (parts.cluster) parts.cluster = imported.cluster.get<std::string>();
  scenario.erase("cluster");
  if (parts.model) scenario.erase("model");
  std::string unknown;
  for (const ImportedOption& each : imported.options) {
    if (each.use == ImportedOption::Use::not_understood) unknown += " " + each.option;
  }
  scenario["assumptions"] = imported.notes;
  if (!unknown.empty()) {
    scenario["assumptions"].push_back("not understood (orrery import says why):" + unknown);
  }
  return scenario;
}

/// A scenario as written, before names are expanded.
Document read_written(const std::string& path_or_name, ScenarioParts& parts) {
  if (path_or_name.rfind('{', 0) == 0) return Document::parse(path_or_name, "scenario");
  if (is_path(path_or_name)) {
    constexpr std::size_t most_bytes = std::size_t{64} << 20;  // as a document
    const std::string text = read_file(path_or_name, most_bytes);
    if (!is_launch_file(text, path_or_name)) return Document::parse(text, path_or_name);
    return Document::from(scenario_of_launch(read_launch_file(text, path_or_name), parts),
                          path_or_name);
  }
  for (const EmbeddedFile& file : embedded_files()) {
    if (stem(file.path) == path_or_name) return Document::parse(file.text, path_or_name);
  }
  std::string known;
  for (const std::string& name : scenario_names()) known += " " + name;
  throw InputError{unknown_with_suggestion("scenario", path_or_name,
                                           nearest_name(path_or_name, scenario_names())) +
                   "; known:" + known};
}

/// A plan in a file of another tool becomes text; the cluster tells how many replicas there are.
void read_launch_plan(ScenarioParts& parts) {
  if (!parts.plan || parts.plan->find('=') != std::string::npos || !is_path(*parts.plan)) return;
  const std::filesystem::path path{*parts.plan};
  constexpr std::array<std::string_view, 6> suffixes{".json", ".yaml", ".yml",
                                                     ".toml", ".sh",   ".sbatch"};
  const bool known = std::ranges::count(suffixes, path.extension().string()) > 0;
  std::error_code unreadable;
  if (!known || !std::filesystem::is_regular_file(path, unreadable)) return;
  constexpr std::size_t most_bytes = std::size_t{4} << 20;
  const std::string text = read_file(*parts.plan, most_bytes);
  if (!is_launch_file(text, *parts.plan)) return;
  std::optional<LaunchFile> file;
  try {
    file = read_launch_file(text, *parts.plan);
  } catch (const InputError&) {
    return;  // refused where plans are read, with what a plan looks like
  }
  const LaunchRequest request{.files = {}, .model = parts.model, .cluster = parts.cluster};
  parts.plan = import_launch({*file}, request).plan.dump();
}

std::string folder_of(const std::string& file) {
  return is_path(file) ? std::filesystem::path{file}.parent_path().string() : std::string{};
}

const std::optional<std::string>& flag_of_section(Section section, const ScenarioParts& parts) {
  switch (section) {
    case Section::model:
      return parts.model;
    case Section::cluster:
      return parts.cluster;
    case Section::plan:
      return parts.plan;
    default:
      return parts.software;
  }
}

Expansion of_flag(Section section, const std::string& text, std::optional<int> year) {
  const Document flag = Document::from(text, std::string{"--"} + name(section));
  Expansion part = expanded(section, flag.root(), "", year);
  if (!part.origin) part.origin = Origin{flag.name()};
  return part;
}

/// The software profile inside a calibrated cluster, if it has one.
std::optional<Json> software_of(const Json& known) {
  const auto cluster = known.find("cluster");
  if (cluster == known.end() || !cluster->contains("software")) return std::nullopt;
  const Json& own = (*cluster)["software"];
  if (own.is_string()) return models::software_profile(own.get<std::string>());
  return own;
}

/// Whether the cluster's own, measured profile replaces the shipped one of the same name.
bool prefers_own_software(const std::optional<std::string>& flag, const std::optional<Node>& member,
                          const Json& known) {
  const std::optional<Json> own = software_of(known);
  if (!own || !own->is_object() || !own->contains("name")) return false;
  const Json asked = flag ? Json(*flag) : member ? member->json() : Json{};
  return asked == (*own)["name"];
}

/// The default of a section that is not given.
Expansion of_nothing(Section section, const Node& root, const Json& known, Json& assumptions) {
  if (section == Section::plan) return {Json::object()};  // all derived or default, each reported
  if (section == Section::software) {
    if (const auto own = software_of(known)) {
      assumptions.push_back("/software: the cluster's own, measured on it");
      return {*own};
    }
    assumptions.push_back(fmt::format("/software: not stated; {} assumed", usual_software));
    return {models::software_profile(usual_software)};
  }
  if (root.file() != no_file) {
    root[name(section)].fail_expected("a name, a path or an object");  // null, or nothing at all
  }
  throw InputError{fmt::format("--{}: missing; give it or name a scenario", name(section))};
}

/// Says that another profile stands for the stack that was named, in the year that was asked for.
void note_other_profile(const Json& asked, const Json& profile, Json& assumptions) {
  const std::vector<std::string> shipped = models::software_names();
  if (!asked.is_string()) return;
  const auto stack = asked.get<std::string>();
  const auto name = profile.at("name").get<std::string>();
  if (stack == name || std::ranges::find(shipped, stack) == shipped.end()) return;
  assumptions.push_back(fmt::format("/software: runs of {} in {} are those of {}", stack,
                                    profile.at("year").get<int>(), name));
}

/// Says that the GPUs are younger than the software's year that was asked for.
void note_younger_gpus(const Json& scenario, int year, Json& assumptions) {
  const Json::json_pointer place{"/cluster/node/gpu/generation"};
  if (!scenario.contains(place) || !scenario[place].is_string()) return;
  const auto generation = scenario[place].get<std::string>();
  if (!hardware::find_entry(hardware::EntryKind::generation, generation)) return;
  const std::optional<int> announced = hardware::generation_named(generation).announced;
  if (!announced || *announced <= year) return;
  assumptions.push_back(
      fmt::format("/software: of {}, before GPUs of generation {} ({}): no stack of that year runs "
                  "on them; predicted as if it did",
                  year, generation, *announced));
}

/// The cluster's own profile; its mistakes are reported where the cluster is written.
Expansion own_software(const Json& known, const std::string& file, const Origins& origins) {
  const auto cluster = origins.find("cluster");
  if (cluster == origins.end()) return {*software_of(known), Origin{file, "/cluster/software"}};
  return {*software_of(known), Origin{cluster->second.file, cluster->second.pointer + "/software"}};
}

}  // namespace

// Parentheses: braces would wrap the document in a JSON array.
Scenario::Scenario(Json json, std::string file, Origins origins)
    : json_(std::move(json)), file_{std::move(file)}, origins_{std::move(origins)} {}

std::string Scenario::name() const {
  const auto name = json_.find("name");
  return name != json_.end() && name->is_string() ? name->get<std::string>() : file_;
}

Scenario Scenario::load(const std::string& path_or_name) {
  return load(path_or_name, {});
}

Scenario Scenario::load(const std::optional<std::string>& path_or_name,
                        const ScenarioParts& parts) {
  ScenarioParts left = parts;  // without those that an import has used
  const Document written = path_or_name ? read_written(*path_or_name, left)
                                        : Document::from(Json::object(), std::string{no_file});
  read_launch_plan(left);
  return expand(written, left);
}

Scenario Scenario::parse(const Json& json, const std::string& name) {
  return expand(Document::from(json, name), {});
}

namespace {

/// Whether --plan states fields, which change a scenario's plan; a file or an object replaces it.
bool states_fields(const std::string& plan) {
  return plan.find('=') != std::string::npos && plan.rfind('{', 0) != 0;
}

/// The plan of a scenario with the fields that --plan states.
Expansion changed_plan(Expansion own, const Expansion& stated) {
  own.json.update(stated.json);
  own.origin = stated.origin;
  return own;
}

}  // namespace

Scenario Scenario::expand(const Document& written, const ScenarioParts& parts) {
  const Node root = written.root();
  root.only({"name", "model", "cluster", "plan", "software", "tokens", "published", "notes",
             "assumptions", "unpriced", "network", "placement", "perturbations", "jobs",
             "collectives", "run", "data"});
  if (const auto own = root.find("name"); own && own->is_string()) own->as<std::string>();
  Origins origins;
  Json result = root.json();
  result.erase("unpriced");  // added by `show scenario`, no input
  Json assumptions = Json::array();
  std::string changed = parts.cluster && !parts.plan ? "--cluster" : "";
  for (const Section section : all_sections) {
    const auto& flag = flag_of_section(section, parts);
    const auto member = root.find(scenarios::name(section));
    Expansion part = flag     ? of_flag(section, *flag, parts.year)
                     : member ? expanded(section, *member, folder_of(written.name()), parts.year)
                              : of_nothing(section, root, result, assumptions);
    const bool changes = flag && member && section == Section::plan && states_fields(*flag);
    if (changes) {
      part = changed_plan(expanded(section, *member, folder_of(written.name()), parts.year), part);
      changed = "--plan";
    }
    const bool own = section == Section::software && (prefers_own_software(flag, member, result) ||
                                                      (!flag && !member && software_of(result)));
    if (own) part = own_software(result, written.name(), origins);
    if (flag && section != Section::software) result.erase("published");
    if (section == Section::software && !own) {
      note_other_profile(flag     ? Json(*flag)
                         : member ? member->json()
                                  : Json{},
                         part.json, assumptions);
    }
    result[scenarios::name(section)] = std::move(part.json);
    if (part.origin) origins[scenarios::name(section)] = *part.origin;
  }
  if (parts.year) note_younger_gpus(result, *parts.year, assumptions);
  for (Json& each : assumptions) result["assumptions"].push_back(std::move(each));
  Scenario scenario{std::move(result), written.name(), std::move(origins)};
  if (!changed.empty()) scenario.derive_refused_data(changed);
  return scenario;
}

std::string Scenario::refusal() const {
  try {
    question();
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

void Scenario::derive_refused_data(const std::string& changed) {
  const auto of_data = [](const std::string& refusal) {
    return refusal.find("/plan/data:") != std::string::npos || refusal.starts_with("--plan:/data:");
  };
  const Json& plan = json_.at("plan");
  if (!plan.is_object() || !plan.contains("data") || !of_data(refusal())) return;
  Scenario derived = *this;
  const Json stated = plan.at("data");
  derived.json_["plan"].erase("data");
  const std::string refused = derived.refusal();
  if (of_data(refused)) return;  // no degree of data makes up for the others
  if (refused.empty()) {
    const std::int64_t data = derived.question().plan.data;
    derived.json_["plan"]["data"] = data;
    derived.json_["assumptions"].push_back(fmt::format(
        "/plan/data: {} stated; {} derived, because {} changes", stated.dump(), data, changed));
  }
  *this = std::move(derived);
}

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (std::string name = stem(file.path); !name.empty()) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace orrery::scenarios

#include "scenarios/exchange/sections.hpp"

#include <algorithm>
#include <filesystem>

#include "hardware/catalogue.hpp"
#include "hardware/node_import/node_import.hpp"
#include "models/model/model.hpp"
#include "models/model/model_file.hpp"
#include "models/plan/plan.hpp"
#include "models/software/profile_in_year.hpp"
#include "models/software/software.hpp"
#include "scenarios/exchange/import.hpp"
#include "scenarios/exchange/suggestion.hpp"
#include "sim/input/byte_order_mark.hpp"
#include "sim/input/text.hpp"
#include "sim/input/unreadable_file.hpp"

namespace orrery::scenarios {

namespace {

/// Looks a name up in a catalogue; an error is reported where the name is written.
/// meant  the name that a user probably meant; empty: none
template <class Lookup>
Json looked_up(const Node& value, Lookup lookup, std::string (*meant)(std::string_view) = nullptr) {
  try {
    return lookup(value.as<std::string>());
  } catch (const InputError& error) {
    value.fail(with_suggestion(error.what(), meant ? meant(value.as<std::string>()) : ""));
  }
}

/// Errors  as hardware::expand_cluster, with the name that was probably meant
Json expanded_cluster(const Node& value) {
  try {
    return hardware::expand_cluster(value);
  } catch (const InputError& error) {
    const std::string meant = value.is_string() ? cluster_meant(value.as<std::string>()) : "";
    if (meant.empty()) throw;
    const std::string problem = with_suggestion(std::string{error.problem()}, meant);
    if (error.place().empty()) throw InputError{problem};
    throw InputError{std::string{error.place()}, problem};
  }
}

Json of_name(Section section, const Node& value, std::optional<int> year) {
  switch (section) {
    case Section::model:
      return looked_up(value, models::model_config, model_meant);
    case Section::cluster:
      return expanded_cluster(value);
    case Section::software:
      return looked_up(value, [&](const std::string& name) {
        return models::software_profile(year ? models::profile_in_year(name, *year) : name, year);
      });
    case Section::plan:
      break;
  }
  try {
    return models::plan_from_text(value.as<std::string>());
  } catch (const InputError& error) {
    // The error already names --plan; in a file it gets the file's place.
    if (value.place() == "--plan") throw;
    value.fail(error.what());
  }
}

/// A software profile with everything it inherits.
Json whole_software(const Node& written, std::optional<int> year) {
  const bool inherits = written.has("parent") || written.has("eras") || year;
  return inherits ? models::resolve_profile(written, year).profile : written.json();
}

/// The file that a text means; nullopt if it is a name. A model may be a folder; a name of the
/// catalogue stays one where such a folder exists.
std::optional<std::string> file_of(Section section, const std::string& text,
                                   const std::string& folder) {
  const std::string path = from_folder(folder, text);
  const bool known = std::ranges::count(models::model_names(), text) > 0;
  if (section == Section::model && !known) {
    if (const auto config = models::config_of_folder(path)) return config;
  }
  return is_path(text, folder) ? std::optional{path} : std::nullopt;
}

/// The model that a launch file of another tool states. Errors  none: InputError
Document launched_model(const std::string& path) {
  const ImportedLaunch imported = import_launch({.files = {path}});
  if (imported.model.is_null()) throw InputError{path, "states no model; expected one that does"};
  if (!imported.model.is_string()) return Document::from(imported.model, path);
  return Document::from(models::model_config(imported.model.get<std::string>()), path);
}

/// Errors  a plan that is a file of another tool, a cluster that is the topology of a node:
/// InputError
Document section_file(Section section, const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  const auto suffix = std::filesystem::path{path}.extension();
  const bool launch = suffix == ".sh" || suffix == ".sbatch" || suffix == ".yaml" ||
                      suffix == ".yml" || suffix == ".toml";
  if (section == Section::model && launch) return launched_model(path);
  if (section == Section::model) return models::load_model(path);
  if (section != Section::plan && section != Section::cluster) return Document::load(path);
  const std::string text = read_file(path, most_bytes);
  const std::string_view content = trimmed(without_byte_order_mark(text));
  if (section == Section::plan && !content.empty() && content.front() != '{') {
    require_text(content, path);
    throw InputError{
        path,
        "is not a plan; expected a JSON object such as {\"tensor\": 8, \"pipeline\": 4, "
        "\"global_batch\": 1024, \"seq_len\": 8192}, or --plan tensor=8,pipeline=4,..."};
  }
  if (section == Section::cluster && hardware::is_node_import(text)) {
    throw InputError{path,
                     "is the topology of a node, not a cluster; `orrery show topology` prints the "
                     "cluster of it"};
  }
  return Document::parse(text, path);
}

/// A file that a scenario names; where it cannot be read, the error says which value names it.
Document referred(Section section, const Node& value, const std::string& path) {
  try {
    return section_file(section, path);
  } catch (const UnreadableFile& error) {
    if (value.pointer().empty()) throw;  // a flag's: it is the path alone
    value.fail(error.what());
  }
}

}  // namespace

bool is_path(const std::string& text, const std::string& folder) {
  const bool suffix = text.size() > 5 && text.compare(text.size() - 5, 5, ".json") == 0;
  std::error_code unreadable;
  return suffix || text.find('/') != std::string::npos ||
         std::filesystem::is_regular_file(from_folder(folder, text), unreadable);
}

std::string from_folder(const std::string& folder, const std::string& path) {
  if (folder.empty() || std::filesystem::path{path}.is_absolute()) return path;
  return (std::filesystem::path{folder} / path).string();
}

Expansion expanded(Section section, const Node& value, const std::string& folder,
                   std::optional<int> year) {
  if (value.is_string()) {
    const std::string text = value.as<std::string>();
    if (text.rfind('{', 0) == 0) {  // the object itself, written in a flag
      return expanded(section, Document::parse(text, value.place()).root(), folder, year);
    }
    const bool assignments = section == Section::plan && text.find('=') != std::string::npos;
    const auto path = assignments ? std::nullopt : file_of(section, text, folder);
    if (path) {
      const Document document = referred(section, value, *path);
      if (!document.root().is_object()) document.root().fail_expected("an object");
      return {expanded(section, document.root(), "", year).json, Origin{document.name()}};
    }
    return {of_name(section, value, year)};
  }
  if (!value.is_object()) {
    value.fail_expected(section == Section::plan ? "an object, a path or KEY=VALUE,..."
                                                 : "a name, a path or an object");
  }
  if (section == Section::software) return {whole_software(value, year)};
  return {section == Section::cluster ? hardware::expand_cluster(value) : value.json()};
}

}  // namespace orrery::scenarios

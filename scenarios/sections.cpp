#include "scenarios/sections.hpp"

#include <filesystem>

#include "hardware/catalogue.hpp"
#include "models/model/model.hpp"
#include "models/plan/plan.hpp"
#include "models/software/software.hpp"

namespace orrery::scenarios {

namespace {

/// Looks a name up in a catalogue; an error is reported where the name is written.
template <class Lookup>
Json looked_up(const Node& value, Lookup lookup) {
  try {
    return lookup(value.as<std::string>());
  } catch (const InputError& error) {
    value.fail(error.what());
  }
}

Json of_name(Section section, const Node& value, std::optional<int> year) {
  switch (section) {
    case Section::model:
      return looked_up(value, models::model_config);
    case Section::cluster:
      return hardware::expand_cluster(value);
    case Section::software:
      return looked_up(
          value, [&](const std::string& name) { return models::software_profile(name, year); });
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

/// Names a model without a name after its file.
void name_after(Json& model, const std::string& path) {
  if (!model.is_object() || model.contains("name") || model.contains("_name_or_path")) return;
  model["name"] = std::filesystem::path{path}.stem().string();
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
    if (!assignments && is_path(text, folder)) {
      const Document document = Document::load(from_folder(folder, text));
      if (!document.root().is_object()) document.root().fail_expected("an object");
      Expansion read{expanded(section, document.root(), "", year).json, Origin{document.name()}};
      if (section == Section::model) name_after(read.json, text);
      return read;
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

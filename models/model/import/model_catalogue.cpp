// The shipped models: models/catalogue/NAME.json, embedded in the library.
#include <algorithm>

#include "models/embedded.hpp"
#include "models/model/model.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

constexpr std::string_view model_folder = "models/catalogue/";
constexpr std::string_view model_suffix = ".json";

/// The model's name in a path of the catalogue; empty for other files.
std::string_view name_in(std::string_view path) {
  if (!path.starts_with(model_folder) || !path.ends_with(model_suffix)) return {};
  return path.substr(model_folder.size(), path.size() - model_folder.size() - model_suffix.size());
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (const auto name = name_in(file.path); !name.empty()) names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Json model_config(std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!name.empty() && name_in(file.path) == name) {
      return Document::parse(file.text, std::string{file.path}).json();
    }
  }
  throw InputError{"unknown model '" + std::string{name} + "'; known: " + listed(model_names())};
}

}  // namespace orrery::models

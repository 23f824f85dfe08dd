#include "models/model/model_file.hpp"

#include <filesystem>
#include <utility>

#include "models/model/import/irrelevant_keys.hpp"
#include "sim/input/parse_json.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {
namespace {

constexpr std::size_t largest_config = std::size_t{64} << 20;

bool is_named(const Json& model) {
  for (const char* key : {"name", "_name_or_path"}) {
    const auto found = model.find(key);
    if (found != model.end() && found->is_string() && !found->get_ref<const std::string&>().empty())
      return true;
  }
  return false;
}

std::string name_of(const std::string& path) {
  const std::filesystem::path file = std::filesystem::absolute(path).lexically_normal();
  const std::string stem = file.stem().string();
  const std::string folder = file.parent_path().filename().string();
  return stem == "config" && !folder.empty() ? folder : stem;
}

}  // namespace

std::optional<std::string> config_of_folder(const std::string& path) {
  std::error_code unreadable;
  const std::filesystem::path inside = std::filesystem::path{path} / "config.json";
  if (!std::filesystem::is_directory(path, unreadable)) return std::nullopt;
  if (!std::filesystem::is_regular_file(inside, unreadable)) return std::nullopt;
  return inside.string();
}

Document load_model(const std::string& path) {
  std::string file = printable(path);
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable)) {
    throw InputError{file, "is a folder without a config.json"};
  }
  Json model = parse_json(read_file(path, largest_config), file,
                          {.python_numbers = true, .repeatable = irrelevant});
  if (model.is_object() && !is_named(model)) model["name"] = name_of(path);
  return Document::from(std::move(model), std::move(file));
}

}  // namespace orrery::models

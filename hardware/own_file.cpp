#include "hardware/own_file.hpp"

#include <filesystem>
#include <string_view>

namespace orrery::hardware {

namespace {

bool is_path(std::string_view text) {
  constexpr std::string_view suffix = ".json";
  const bool json =
      text.size() > suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
  return json || text.find('/') != std::string_view::npos;
}

std::string from_folder(const std::filesystem::path& folder, const std::string& path) {
  return std::filesystem::path{path}.is_absolute() ? path : (folder / path).string();
}

/// Of names in a file, those that are paths begin at its folder.
void begin_at(const std::filesystem::path& folder, Json& object) {
  for (const char* key :
       {"like", "node", "gpu", "nic", "scale_up", "fabric", "switch", "latency_class"}) {
    const auto member = object.find(key);
    if (member == object.end()) continue;
    if (member->is_object()) begin_at(folder, *member);
    if (!member->is_string() || !is_path(member->get_ref<const std::string&>())) continue;
    *member = from_folder(folder, member->get<std::string>());
  }
}

}  // namespace

std::optional<Document> own_file(const Node& name) {
  const auto text = name.as<std::string>();
  if (!is_path(text)) return std::nullopt;
  const std::filesystem::path folder = std::filesystem::path{name.file()}.parent_path();
  Document document = Document::load(from_folder(folder, text));
  if (!document.root().is_object()) document.root().fail_expected("an object");
  begin_at(std::filesystem::path{document.name()}.parent_path(), document.json());
  return document;
}

}  // namespace orrery::hardware

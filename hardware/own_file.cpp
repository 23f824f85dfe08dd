#include "hardware/own_file.hpp"

#include <filesystem>
#include <string_view>

#include "hardware/node_import/node_import.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"
#include "sim/input/unreadable_file.hpp"

namespace orrery::hardware {

namespace {

bool is_path(std::string_view text) {
  const auto ends_in = [text](std::string_view suffix) {
    return text.size() > suffix.size() && text.ends_with(suffix);
  };
  if (ends_in(".json") || ends_in(".xml")) return true;
  const bool rate = parse_quantity<Bandwidth>(text).has_value();  // a GPU's scale_up, "450 GB/s"
  return !rate && text.find('/') != std::string_view::npos;
}

/// The file's JSON; NCCL's topology XML or a table of nvidia-smi is imported as a node.
Document loaded(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  const std::string text = read_file(path, most_bytes);
  return is_node_import(text) ? Document::from(imported_node(text, path).json, path)
                              : Document::parse(text, path);
}

/// As `loaded`; where the file cannot be read, the error says which value names it.
Document referred(const Node& name, const std::string& path) {
  try {
    return loaded(path);
  } catch (const UnreadableFile& error) {
    if (name.pointer().empty()) throw;  // a flag's: it is the path alone
    name.fail(error.what());
  }
}

std::string from_folder(const std::filesystem::path& folder, const std::string& path) {
  return std::filesystem::path{path}.is_absolute() ? path : (folder / path).string();
}

/// Resolves the paths among the names in a file relative to the file's folder.
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
  Document document = referred(name, from_folder(folder, text));
  if (!document.root().is_object()) document.root().fail_expected("an object");
  begin_at(std::filesystem::path{document.name()}.parent_path(), document.json());
  return document;
}

}  // namespace orrery::hardware

#include "hardware/entries.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "hardware/embedded.hpp"

namespace orrery::hardware {

namespace {

struct KindWords {
  std::string_view folder;
  std::string_view title;
};
constexpr std::array<KindWords, 11> kind_words{{{"gpus", "GPU"},
                                                {"generations", "generation"},
                                                {"nodes", "node"},
                                                {"scale_up", "scale-up network"},
                                                {"nics", "NIC"},
                                                {"switches", "switch"},
                                                {"fabrics", "fabric"},
                                                {"latency_classes", "latency class"},
                                                {"clusters", "cluster"},
                                                {"sites", "site"},
                                                {"offers", "offer"}}};

const KindWords& named(EntryKind kind) {
  return kind_words[static_cast<std::size_t>(kind)];
}

struct Entries {
  std::map<std::string, Json, std::less<>> by_name;
  std::map<std::string, std::string, std::less<>> aliases;
};

Entries read_entries(EntryKind kind) {
  Entries entries;
  const std::string folder = fmt::format("hardware/catalogue/{}/", named(kind).folder);
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path.substr(0, folder.size()) != folder) continue;
    const Document document = Document::parse(file.text, std::string{file.path});
    const std::string name = document.root()["name"].as<std::string>();
    if (const auto aliases = document.root().find("aliases")) {
      for (const Node& alias : aliases->elements()) {
        entries.aliases.emplace(alias.as<std::string>(), name);
      }
    }
    entries.by_name.emplace(name, document.json());
  }
  return entries;
}

const Entries& entries_of(EntryKind kind) {
  static const std::array<Entries, kind_words.size()> all_entries = [] {
    std::array<Entries, kind_words.size()> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = read_entries(static_cast<EntryKind>(i));
    return all;
  }();
  return all_entries[static_cast<std::size_t>(kind)];
}

}  // namespace

const Json* find_entry(EntryKind kind, std::string_view name) {
  const Entries& entries = entries_of(kind);
  const auto alias = entries.aliases.find(name);
  const auto entry = entries.by_name.find(alias == entries.aliases.end() ? name : alias->second);
  return entry == entries.by_name.end() ? nullptr : &entry->second;
}

std::vector<std::string> entry_names(EntryKind kind) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_of(kind).by_name) names.push_back(name);
  return names;
}

std::string unknown_entry(EntryKind kind, std::string_view name) {
  return fmt::format("unknown {} '{}'; known: {}", named(kind).title, name,
                     listed(entry_names(kind)));
}

}  // namespace orrery::hardware

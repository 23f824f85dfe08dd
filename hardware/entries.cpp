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

struct NamedEntry {
  Json json;
  std::string file, pointer;
};

struct Entries {
  std::map<std::string, NamedEntry, std::less<>> by_name;
  std::map<std::string, std::string, std::less<>> aliases;

  void add(const std::string& name, const Node& read, Json json) {
    if (const auto list = read.find("aliases")) {
      for (const Node& alias : list->elements()) aliases.emplace(alias.as<std::string>(), name);
    }
    by_name.emplace(name, NamedEntry{std::move(json), read.file(), read.pointer()});
  }

  const NamedEntry* find(std::string_view name) const {
    const auto alias = aliases.find(name);
    const auto entry = by_name.find(alias == aliases.end() ? name : alias->second);
    return entry == by_name.end() ? nullptr : &entry->second;
  }
};

Entries read_entries(EntryKind kind) {
  Entries entries;
  const std::string folder = fmt::format("hardware/catalogue/{}", named(kind).folder);
  for (const EmbeddedFile& file : embedded_files()) {
    const bool is_table = file.path == folder + ".json";
    if (!is_table && !file.path.starts_with(folder + "/")) continue;
    const Document document = Document::parse(file.text, std::string{file.path});
    if (!is_table) {
      entries.add(document.root()["name"].as<std::string>(), document.root(), document.json());
      continue;
    }
    for (const auto& [name, member] : document.root().members()) {
      Json entry{{"name", name}};
      entry.update(member.json());
      entries.add(name, member, std::move(entry));
    }
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
  const NamedEntry* entry = entries_of(kind).find(name);
  return entry ? &entry->json : nullptr;
}

Node entry_node(EntryKind kind, std::string_view name) {
  const NamedEntry* entry = entries_of(kind).find(name);
  if (!entry) throw InputError{unknown_entry(kind, name)};
  return Node{entry->json, entry->file, entry->pointer};
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

#include "models/software/resolved_profile.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/embedded.hpp"

namespace orrery::models {

namespace {

constexpr std::string_view folder = "models/software/";
constexpr std::string_view own_keys[] = {"name",        "year",       "source",
                                         "limits",      "stands_for", "unexplained",
                                         "uncertainty", "parent",     "eras"};
constexpr std::size_t longest_line = 16;
constexpr int first_year = 2012, last_year = 2100;

bool is_own(std::string_view key) {
  return std::find(std::begin(own_keys), std::end(own_keys), key) != std::end(own_keys);
}

/// Records `who` as the origin of every leaf value, by JSON pointer.
void note_origins(const Json& changes, const std::string& pointer, const std::string& who,
                  std::map<std::string, std::string>& origins) {
  for (const auto& [key, value] : changes.items()) {
    if (pointer.empty() && is_own(key)) continue;
    const std::string at = pointer + "/" + key;
    if (value.is_object()) {
      note_origins(value, at, who, origins);
    } else {
      origins[at] = who;
    }
  }
}

struct Era {
  int from_year = first_year, to_year = last_year;
  Json changes;
  std::string source;

  bool holds(int year) const { return year >= from_year && year <= to_year; }
  std::string years() const {
    if (from_year == first_year) return fmt::format("to {}", to_year);
    if (to_year == last_year) return fmt::format("from {}", from_year);
    return fmt::format("{} to {}", from_year, to_year);
  }
};

Era read_era(const Node& node) {
  node.only({"from_year", "to_year", "changes", "source"});
  Era era;
  era.from_year = static_cast<int>(node.integer_or("from_year", first_year, last_year, first_year));
  era.to_year = static_cast<int>(node.integer_or("to_year", era.from_year, last_year, last_year));
  if (!node["changes"].is_object()) node["changes"].fail_expected("an object");
  era.changes = node["changes"].json();
  for (const auto& [key, value] : era.changes.items()) {
    if (is_own(key)) node["changes"][key].fail("an era cannot change this key");
  }
  era.source = node["source"].as<std::string>();
  return era;
}

int year_of(const Node& written, std::optional<int> asked) {
  if (asked) return *asked;
  return static_cast<int>(written.integer_or("year", first_year, last_year, last_year));
}

/// Merges a profile's own values and the eras that hold in `year` over what it inherits.
void merge_profile(const Node& written, int year, ResolvedProfile& found) {
  const std::string name = written.value_or<std::string>(
      "name", found.line.empty() ? std::string{"profile"} : found.line.back());
  Json own = written.json();
  own.erase("parent");
  own.erase("eras");
  found.profile.merge_patch(own);
  note_origins(own, "", name, found.origins);
  if (const auto eras = written.find("eras")) {
    found.dated = true;
    for (const Node& each : eras->elements()) {
      const Era era = read_era(each);
      if (!era.holds(year)) continue;
      found.profile.merge_patch(era.changes);
      note_origins(era.changes, "", fmt::format("{}, {}: {}", name, era.years(), era.source),
                   found.origins);
    }
  }
  found.line.insert(found.line.begin(), name);
}

ResolvedProfile resolve_profile(const Node& written, int year, std::size_t depth) {
  ResolvedProfile found;
  found.profile = Json::object();
  if (const auto parent = written.find("parent")) {
    if (depth >= longest_line) parent->fail("the chain of parents is a cycle or longer than 16");
    const auto name = parent->as<std::string>();
    Json above;
    try {
      above = written_profile(name);
    } catch (const InputError& error) {
      parent->fail(error.what());
    }
    found =
        resolve_profile(Node{above, fmt::format("{}{}.json", folder, name), ""}, year, depth + 1);
    for (const char* key : {"stands_for", "unexplained", "uncertainty", "limits", "year"}) {
      found.profile.erase(key);
    }
  }
  merge_profile(written, year, found);
  return found;
}

std::string stem(std::string_view path) {
  path.remove_prefix(folder.size());
  return std::string{path.substr(0, path.size() - std::string_view{".json"}.size())};
}

bool is_profile(const EmbeddedFile& file) {
  return file.path.substr(0, folder.size()) == folder;
}

}  // namespace

ResolvedProfile resolve_profile(const Node& written, std::optional<int> year) {
  ResolvedProfile found = resolve_profile(written, year_of(written, year), std::size_t{0});
  if (year) found.profile["year"] = *year;
  return found;
}

std::vector<std::string> software_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (is_profile(file)) names.push_back(stem(file.path));
  }
  std::ranges::sort(names);
  return names;
}

Json written_profile(std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!is_profile(file) || stem(file.path) != name) continue;
    return Document::parse(file.text, std::string{file.path}).json();
  }
  throw InputError{"unknown software '" + std::string{name} +
                   "'; known: " + listed(software_names())};
}

Json software_profile(std::string_view name, std::optional<int> year) {
  const Json written = written_profile(name);
  return resolve_profile(Node{written, fmt::format("{}{}.json", folder, name), ""}, year).profile;
}

}  // namespace orrery::models

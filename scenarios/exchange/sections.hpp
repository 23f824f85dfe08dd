#pragma once
// Expands the four sections of a scenario, written as names, paths or objects, into self-contained
// objects.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

enum class Section : std::uint8_t { model, cluster, plan, software };
inline constexpr std::array section_names{"model", "cluster", "plan", "software"};
inline constexpr std::array all_sections{Section::model, Section::cluster, Section::plan,
                                         Section::software};
constexpr const char* name(Section section) {
  return section_names[static_cast<std::size_t>(section)];
}

/// Where something was written.
struct Origin {
  std::string file, pointer{};
  std::vector<std::string> changed{};  // pointers of the scenario that were changed since
};

/// An expanded section.
struct Expansion {
  Json json;
  std::optional<Origin> origin{};  // if it has a file of its own
};

/// value   a name, a path, or an object, which may be written as text (of a plan also
///         `tensor=8,...`)
/// folder  where relative paths start; empty: the working directory
/// year    a software profile as of that year
/// Errors  an unknown name, a file that cannot be read, neither text nor object: InputError
Expansion expanded(Section section, const Node& value, const std::string& folder,
                   std::optional<int> year = std::nullopt);

/// Whether a text means a file, not a name: it looks like a path, or such a file exists.
bool is_path(const std::string& text, const std::string& folder = {});
/// `path` relative to `folder`, unless it is absolute.
std::string from_folder(const std::string& folder, const std::string& path);

}  // namespace orrery::scenarios

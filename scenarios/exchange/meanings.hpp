#pragma once
// What the options of training tools and launchers mean: tables, one row an option. Files of
// options/ list every option of a tool's version and what it affects, those of meanings/ say which
// fact of a plan, model or cluster an option states, for readers and writers alike.
//   option,value,field,means,needs,way,tools
//   use_distributed_optimizer,true,zero,1|2|3,,,
// reads: the option is true exactly where zero is 1, 2 or 3. `needs` are options without which the
// tool does not look at this one. Several rows about one field narrow it
// down; the first value left is meant. As a value, * is any, copied to the field. As an option, -
// is nothing written (the tool's default), ! what the tool cannot do, # what its files cannot say.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::scenarios {

/// One row of meanings/.
struct Meaning {
  /// Used in both directions, by the importer or by the exporter alone.
  enum class Way : std::uint8_t { both, in, out };

  std::string option, value, field;
  std::vector<std::string> means;
  std::vector<std::string> needs;  // options of which one must be set, or OPTION=VALUE; empty: none
  Way way = Way::both;
  std::vector<std::string> tools;  // empty: all that share the table; TOOL or TOOL@VERSION

  bool is_for(std::string_view tool) const;
  /// list  of options/, "megatron@0.20": is the row not of another version?
  bool is_of_version(std::string_view list) const;
  bool states(std::string_view text) const;  // is `text` among `means`?
};

/// One row of options/: time, memory, both, model, cluster or none.
struct ListedOption {
  std::string option, affects, unset, meaning;
};

/// A tool or launcher, and its tables.
struct LaunchTool {
  std::string_view name, table;           // table: file of meanings/
  std::vector<std::string_view> lists{};  // files of options/: TOOL@VERSION, the newest first
  std::string_view software{};            // the profile that predicts it; empty: none
  /// Does an option that is not written have the tool's default? Else a recipe may state it.
  bool complete = true;
  std::string_view sections{};  // of nested files: preferred sections of an option, the first first
  /// Its files take the options of all its lists: the lists after the first are those of the tools
  /// that it wraps, not versions of it.
  bool wraps = false;
};

std::span<const LaunchTool> launch_tools();
/// Errors  a tool that is not in the table: ContractError
const LaunchTool& launch_tool(std::string_view name);

/// Rows of the tool's table, without those of other tools.
const std::vector<Meaning>& meanings_of(const LaunchTool& tool);
/// The options of one list by name. Errors  `unknown version 'x'`: ContractError
const std::map<std::string, ListedOption, std::less<>>& options_in(std::string_view list);

/// The longest suffix of a dotted option, cut at dots, for which `has` is true; empty: none.
template <class Has>
std::string_view known_suffix(std::string_view option, const Has& has) {
  while (!has(option)) {
    const std::size_t dot = option.find('.');
    if (dot == std::string_view::npos) return {};
    option.remove_prefix(dot + 1);
  }
  return option;
}

}  // namespace orrery::scenarios

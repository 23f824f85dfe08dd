#include <fmt/format.h>

#include <algorithm>

#include "scenarios/whatif/variants.hpp"

namespace orrery::scenarios {

namespace {

/// Parts between commas that are in no bracket, brace or string.
std::vector<std::string_view> outer_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char at = text[i];
    if (quoted && at == '\\')
      ++i;
    else if (at == '"')
      quoted = !quoted;
    else if (quoted)
      continue;
    else if (at == '[' || at == '{')
      ++depth;
    else if (at == ']' || at == '}')
      --depth;
    else if (at == ',' && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(std::min(begin, text.size())));
  return parts;
}

/// Does the scenario read with this change?
bool is_one_value(const Scenario& base, const std::string& change) {
  try {
    base.replace({parse_change(change)}).question();
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

std::optional<ValueList> value_list(std::string_view change) {
  const std::size_t equals = change.find('=');
  if (equals == std::string_view::npos || change.empty() || change[0] != '/') return std::nullopt;
  const std::vector<std::string_view> parts = outer_parts(change.substr(equals + 1));
  if (parts.size() < 2) return std::nullopt;
  ValueList list{.pointer = std::string{change.substr(0, equals)}, .values = {}};
  for (const std::string_view part : parts) {
    if (part.empty()) return std::nullopt;
    try {
      list.values.push_back(parse_change(fmt::format("{}={}", list.pointer, part)).second);
    } catch (const InputError&) {
      return std::nullopt;
    }
  }
  return list;
}

ListedChanges sorted_changes(const Scenario& base, const std::vector<std::string>& changes) {
  ListedChanges sorted;
  std::vector<std::string> doubtful;
  for (const std::string& change : changes) {
    if (value_list(change)) {
      doubtful.push_back(change);
    } else {
      sorted.single.push_back(parse_change(change));
    }
  }
  if (doubtful.empty()) return sorted;
  const Scenario changed = sorted.single.empty() ? base : base.replace(sorted.single);
  for (const std::string& change : doubtful) {
    if (is_one_value(changed, change)) {
      sorted.single.push_back(parse_change(change));
    } else {
      sorted.lists.push_back(*value_list(change));
    }
  }
  return sorted;
}

}  // namespace orrery::scenarios

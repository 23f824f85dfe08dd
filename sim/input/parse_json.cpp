#include "sim/input/parse_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "sim/input/text.hpp"

namespace orrery {
namespace {

/// Builds the tree from the parser's events. Returning false ends the parse.
class TreeBuilder {
 public:
  explicit TreeBuilder(const JsonLeniency& leniency) : leniency_{leniency} {}

  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(number_integer_t value) { return put(value); }
  bool number_unsigned(number_unsigned_t value) { return put(value); }
  bool number_float(number_float_t value, const string_t&) { return put(value); }
  bool string(string_t& value) { return put(std::move(value)); }
  bool binary(binary_t&) { return false; }  // does not occur in text
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    Level& level = levels_.back();
    level.key = std::move(name);
    const auto [known, first] = level.members.try_emplace(level.key, level.members.size());
    level.member = known->second;
    const bool may_repeat = leniency_.repeatable != nullptr && leniency_.repeatable(level.key);
    if (first || may_repeat) return true;
    problem_ = {pointer(), "duplicate key"};
    return false;
  }

  bool parse_error(std::size_t offset, const std::string&, const Json::exception& error) {
    error_offset_ = offset;
    syntax_ = error.what();
    return false;
  }

  struct Problem {
    std::string pointer;
    std::string text;
  };
  const Problem& problem() const { return problem_; }
  std::size_t error_offset() const { return error_offset_; }
  const std::string& syntax() const { return syntax_; }
  Json take() { return std::move(root_); }

 private:
  struct Level {
    Json* value;
    std::string key;
    /// Places of the object's keys: the ordered map itself searches linearly.
    std::unordered_map<std::string, std::size_t> members{};
    std::size_t member = 0;  // place of `key`
  };

  /// Adds a value at the parser's current position. Only the innermost container grows, so the
  /// pointers to those around it stay valid.
  Json* add(Json value) {
    if (levels_.empty()) return &(root_ = std::move(value));
    Level& level = levels_.back();
    if (level.value->is_array()) {
      auto& elements = level.value->get_ref<Json::array_t&>();
      return &elements.emplace_back(std::move(value));
    }
    Json::object_t::Container& members = level.value->get_ref<Json::object_t&>();
    if (level.member < members.size()) return &(members[level.member].second = std::move(value));
    return &members.emplace_back(level.key, std::move(value)).second;
  }

  bool put(Json value) {
    add(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (levels_.size() == json_levels) {
      problem_ = {"", fmt::format("nested deeper than {} levels", json_levels)};
      return false;
    }
    levels_.push_back({.value = add(std::move(container)), .key = {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string pointer() const {
    std::string path;
    for (const Level& level : levels_) {
      path += level.value->is_array() ? fmt::format("/{}", level.value->size() - 1)
                                      : pointer_step(level.key);
    }
    return path;
  }

  JsonLeniency leniency_;
  Json root_;
  std::vector<Level> levels_;
  Problem problem_;
  std::size_t error_offset_ = 0;
  std::string syntax_;
};

/// `text` with quotes around Python's numbers that JSON lacks. Lines keep their numbers.
std::string with_quoted_numbers(std::string_view text) {
  constexpr std::string_view names[] = {"NaN", "Infinity", "-Infinity"};
  std::string quoted;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto found = std::ranges::find_if(
        names, [&](std::string_view name) { return text.substr(i).starts_with(name); });
    if (!in_string && found != std::end(names)) {
      quoted.append(1, '"').append(*found).append(1, '"');
      i += found->size() - 1;
      continue;
    }
    quoted += text[i];
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      quoted += text[++i];
    } else if (text[i] == '"') {
      in_string = !in_string;
    }
  }
  return quoted;
}

/// The parser's message without its error number: "unexpected end of input; expected '}'".
std::string plain_reason(std::string_view what) {
  const std::size_t dash = what.find(" - ");
  if (dash != std::string_view::npos) {
    what.remove_prefix(dash + 3);
  } else if (const std::size_t bracket = what.find("] "); bracket != std::string_view::npos) {
    what.remove_prefix(bracket + 2);
  }
  // The last token read may be as long as the file and comes before what was expected.
  const std::size_t token = what.find("; last read: ");
  if (token == std::string_view::npos) return printable(what, 100);
  const std::string_view problem = what.substr(0, token);
  what.remove_prefix(token + 2);
  const std::size_t expected = what.rfind("; expected ");
  if (expected == std::string_view::npos) {
    return fmt::format("{}; {}", problem, printable(what, 40));
  }
  return fmt::format("{}; {}{}", problem, printable(what.substr(0, expected), 40),
                     printable(what.substr(expected), 60));
}

}  // namespace

std::string pointer_step(std::string_view key) {
  std::string step = "/";
  for (const char letter : key) {
    if (letter == '~') {
      step += "~0";
    } else if (letter == '/') {
      step += "~1";
    } else {
      step += letter;
    }
  }
  return step;
}

namespace {

/// An entry of the catalogue as `orrery show NAME --json` printed it.
bool is_shown_entry(const Json& json) {
  const auto command = json.find("command");
  return json.contains("orrery") && command != json.end() && *command == "show";
}

/// Editors find the schema of a file by it, and an entry that was printed names itself; no reader
/// has either.
Json without_head(Json json) {
  if (!json.is_object()) return json;
  if (json.contains("$schema") && json["$schema"].is_string()) json.erase("$schema");
  if (!is_shown_entry(json)) return json;
  for (const char* key : {"orrery", "command", "inputs", "changes"}) json.erase(key);
  return json;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& name, const JsonLeniency& leniency) {
  if (leniency.python_numbers) {
    return parse_json(with_quoted_numbers(text), name, {.repeatable = leniency.repeatable});
  }
  if (trimmed(text).empty()) throw InputError{name, "is empty"};
  require_text(text, name);
  TreeBuilder tree{leniency};
  if (Json::sax_parse(text, &tree)) return without_head(tree.take());
  if (!tree.problem().text.empty()) {
    const std::string& pointer = tree.problem().pointer;
    throw InputError{pointer.empty() ? name : name + ":" + printable(pointer, 200),
                     tree.problem().text};
  }
  throw InputError{fmt::format("{}:line {}", name, line_of(text, tree.error_offset())),
                   "is not JSON: " + plain_reason(tree.syntax())};
}

}  // namespace orrery

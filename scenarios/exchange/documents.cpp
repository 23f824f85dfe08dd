// YAML and TOML as JSON.

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <toml++/toml.h>
#include <sstream>

#include "scenarios/exchange/launch_file.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_yaml_values = 100000;
constexpr int most_yaml_levels = 64;

/// A plain scalar of YAML 1.2's core schema, with 1.1's digits grouped by underscores, which
/// Python's reader still takes.
Json json_of_plain(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  std::string digits = text;
  if (std::isdigit(static_cast<unsigned char>(text.back()))) std::erase(digits, '_');
  if (digits[0] == '+') digits.erase(0, 1);
  if (const auto integer = orrery::number_in<std::int64_t>(digits)) return *integer;
  const auto number = orrery::number_in<double>(digits);
  const bool numeric = number && digits.find_first_of("0123456789") != std::string::npos;
  return numeric ? Json(*number) : Json(text);
}

class YamlReader {
 public:
  explicit YamlReader(const std::string& file) : file_{file} {}

  Json json_of(const YAML::Node& node, int level) {
    const YAML::Mark mark = node.Mark();
    const std::string place = fmt::format("{}:line {}", file_, mark.line + 1);
    if (++values_ > most_yaml_values) throw InputError{place, "more than 100,000 values"};
    if (level > most_yaml_levels) throw InputError{place, "more than 64 levels"};
    if (node.IsScalar()) {
      return node.Tag() == "!" ? Json(node.Scalar()) : json_of_plain(node.Scalar());
    }
    if (node.IsSequence()) {
      Json list = Json::array();
      for (const YAML::Node& each : node) list.push_back(json_of(each, level + 1));
      return list;
    }
    if (!node.IsMap()) return nullptr;
    Json object = Json::object();
    for (const auto& member : node) {
      if (!member.first.IsScalar()) throw InputError{place, "expected a key that is text"};
      if (object.contains(member.first.Scalar())) {
        throw InputError{
            place, fmt::format("key '{}' is there twice", printable(member.first.Scalar(), 60))};
      }
      object[member.first.Scalar()] = json_of(member.second, level + 1);
    }
    return object;
  }

 private:
  const std::string& file_;
  std::size_t values_ = 0;
};

Json json_of_toml_node(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [key, value] : *table)
      object[std::string{key.str()}] = json_of_toml_node(value);
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const auto& each : *array) list.push_back(json_of_toml_node(each));
    return list;
  }
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* text = node.as_string()) return text->get();
  std::ostringstream date;
  node.visit([&](const auto& each) {
    if constexpr (toml::is_date<decltype(each)> || toml::is_time<decltype(each)> ||
                  toml::is_date_time<decltype(each)>) {
      date << each.get();
    }
  });
  return date.str();
}

}  // namespace

Json json_of_yaml(std::string_view text, const std::string& file) {
  try {
    return YamlReader{file}.json_of(YAML::Load(std::string{text}), 0);
  } catch (const YAML::Exception& error) {
    throw InputError{fmt::format("{}:line {}", file, error.mark.line + 1),
                     fmt::format("is not YAML: {}", error.msg)};
  }
}

Json json_of_toml(std::string_view text, const std::string& file) {
  try {
    return json_of_toml_node(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw InputError{fmt::format("{}:line {}", file, error.source().begin.line),
                     fmt::format("is not TOML: {}", error.description())};
  }
}

}  // namespace orrery::scenarios

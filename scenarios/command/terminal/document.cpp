#include "scenarios/command/terminal/document.hpp"

#include <fmt/format.h>

#include <string>

#include "scenarios/version.hpp"

namespace orrery::scenarios {

namespace {

/// Set once, before anything is parsed.
const CLI::App*& asking() {
  static const CLI::App* application = nullptr;
  return application;
}

Json given_value(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return true;  // a switch
  const std::vector<std::string>& texts = option.results();
  if (texts.size() == 1) return texts.front();
  return texts;
}

Json change_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  return {{"pointer", text.substr(0, equals)},
          {"value", equals == std::string::npos ? "" : text.substr(equals + 1)}};
}

/// Flags that say how an answer is printed, not what it is of.
bool is_of_printing(const std::string& name) {
  return name == "json" || name == "timing" || name == "set";
}

}  // namespace

void set_asking(const CLI::App& application) {
  asking() = &application;
}

Json named_document(const Json& document) {
  Json inputs = Json::object(), changes = Json::array();
  std::string command;
  const CLI::App* at = asking();
  while (at != nullptr && !at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    command += (command.empty() ? "" : " ") + at->get_name();
    for (const CLI::Option* option : at->get_options()) {
      const std::string name = option->get_single_name();
      if (option->count() == 0) continue;
      if (name == "set") {
        for (const std::string& each : option->results()) changes.push_back(change_of(each));
      }
      if (!is_of_printing(name)) inputs[name] = given_value(*option);
    }
  }
  Json named{{"orrery", made_with()},
             {"command", command},
             {"inputs", std::move(inputs)},
             {"changes", std::move(changes)}};
  for (const auto& [key, value] : document.items()) {
    if (key != "command") named[key] = value;
  }
  return named;
}

void print_document(const Json& document) {
  fmt::print("{}\n", named_document(document).dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace orrery::scenarios

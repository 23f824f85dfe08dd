// orrery schema: JSON Schema of the documents that are read and printed.

#include "scenarios/schema/schema.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/terminal.hpp"

namespace orrery::scenarios {

namespace {

struct SchemaFlags {
  std::optional<std::string> name;
  bool json = false;
};

Json schema_list_json() {
  Json list = Json::array();
  for (const SchemaName& each : schema_names()) {
    list.push_back({{"name", each.name},
                    {"kind", each.is_input ? "input" : "answer"},
                    {"meaning", each.meaning}});
  }
  return list;
}

}  // namespace

void add_schema(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "schema", "Print the JSON Schema of a document that orrery reads or prints");
  const auto flags = std::make_shared<SchemaFlags>();
  command.add_option("name", flags->name, "Document, such as scenario or simulate (lists them)");
  command.add_flag("--json", flags->json, "The list as JSON; a schema always is");
  command.footer(
      "A file may name its schema, for editors that check while you type:\n"
      "  {\"$schema\": \"scenario.schema.json\", \"model\": \"llama3-8b\", ...}");
  command.callback([flags, &exit_code] {
    if (flags->name) {
      fmt::print("{}\n", schema_named(*flags->name).dump(2));
    } else if (flags->json) {
      print_document({{"schemas", schema_list_json()}});
    } else {
      const Terminal shown = terminal();
      fmt::print("{}", schema_list_text(shown.width, shown.colour));
    }
    exit_code = exit_done;
  });
}

}  // namespace orrery::scenarios

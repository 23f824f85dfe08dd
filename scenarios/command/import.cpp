// orrery import: files of training tools and launchers as a scenario.

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/exchange/import.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct ImportFlags {
  LaunchRequest request;
  bool json = false;
  std::optional<std::string> out;
};

int import_files(const ImportFlags& flags) {
  const ImportedLaunch imported = import_launch(flags.request);
  if (flags.out) write_durably(*flags.out, imported.scenario().dump(2) + "\n");
  if (flags.json)
    print_document(to_json(imported));
  else
    fmt::print("{}", text_of(imported));
  return exit_done;
}

}  // namespace

void add_import(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "import", "Read launch files of Megatron-LM, DeepSpeed, torchtitan and others as a scenario");
  const auto flags = std::make_shared<ImportFlags>();
  command
      .add_option("files", flags->request.files,
                  "Scripts, YAML, TOML or JSON of one launch: the tool's and the launcher's")
      ->required();
  command.add_option("--model", flags->request.model, "Model instead of the files' own");
  command.add_option("--cluster", flags->request.cluster,
                     "Cluster that it runs on; of a node alone, as many as the files say");
  command.add_option("--out", flags->out, "File for the scenario, which simulate reads");
  command.add_flag("--json", flags->json, "One JSON document instead of the tables");
  command.callback([flags, &exit_code] { exit_code = import_files(*flags); });
}

}  // namespace orrery::scenarios

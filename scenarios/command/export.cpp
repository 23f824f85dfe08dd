// orrery export: launch files for a plan.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/execute/launch_output.hpp"
#include "scenarios/command/question_flags.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/repeated.hpp"
#include "sim/input/text.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct ExportFlags {
  QuestionFlags question;
  std::vector<std::string> to;
  std::optional<std::string> out;
  bool json = false;
};

void print_launch_files(const Exported& exported) {
  for (const LaunchText& each : exported.files) {
    if (exported.files.size() > 1) fmt::print("==> {} <==\n", each.name);
    fmt::print("{}", each.text);
  }
}

int export_files(const ExportFlags& flags) {
  const Scenario scenario = flags.question.load();
  const Json& written = scenario.json();
  const ExportRequest request{.job = flags.question.scenario ? scenario.name() : "orrery",
                              .cluster = flags.question.parts.cluster.value_or(""),
                              .collectives = written.value("collectives", Json(nullptr)),
                              .plan = written.value("plan", Json(nullptr))};
  const Exported exported = export_launch(scenario.question(), launch_targets(flags.to), request);
  if (flags.json) {
    print_document(to_json(exported));
  } else {
    print_unsaid(exported);
    if (!flags.out) print_launch_files(exported);
  }
  if (!exported.refused.empty()) return exit_answer_is_no;
  if (flags.out) write_launch_files(exported, *flags.out);
  return exit_done;
}

}  // namespace

std::vector<std::string> launch_targets(const std::vector<std::string>& flags) {
  std::vector<std::string> targets;
  for (const std::string& each : flags) {
    for (const std::string_view part : split(each, ',')) targets.emplace_back(trimmed(part));
  }
  return targets;
}

void print_unsaid(const Exported& exported) {
  for (const UnsaidOption& each : exported.refused) {
    fmt::print(stderr, "refused: {}: {}\n", each.option, each.why);
  }
  for (const UnsaidOption& each : exported.not_said) {
    fmt::print(stderr, "not said: {}{}{}\n", each.option, each.option.empty() ? "" : ": ",
               each.why);
  }
}

std::vector<std::string> write_launch_files(const Exported& exported, const std::string& folder) {
  make_folder(folder);
  std::vector<std::string> paths;
  for (const LaunchText& each : exported.files) {
    paths.push_back((std::filesystem::path{folder} / each.name).string());
    write_durably(paths.back(), each.text);
    fmt::print(stderr, "wrote {}\n", paths.back());
  }
  return paths;
}

void add_export(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "export", "Write a plan as launch files of a training tool or launcher");
  const auto flags = std::make_shared<ExportFlags>();
  flags->question.add_to(command);
  repeated(*command.add_option(
               "--to", flags->to,
               "Tools and launchers, each with a version or the newest known: " + export_targets()))
      .type_name("TARGET[@VERSION]")
      ->required();
  command.add_option("--out", flags->out, "Folder for the files; standard output without it");
  command.add_flag("--json", flags->json, "One JSON document instead of the files");
  command.callback([flags, &exit_code] { exit_code = export_files(*flags); });
}

}  // namespace orrery::scenarios

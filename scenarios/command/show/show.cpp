// orrery show: the catalogue, a scenario's expansion, a program's instructions.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/question_flags.hpp"
#include "scenarios/command/show/catalogue_tables.hpp"
#include "scenarios/command/show/show_topology.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/scenario/unpriced.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

struct ShowFlags {
  std::string what;
  QuestionFlags question;  // its scenario is the NAME or FILE
  std::optional<std::int64_t> rank, seq_len;
  TopologyPictures pictures;
  std::optional<std::string> gpu;
  ScheduleView schedule;
  bool markdown = false;
  bool json = false;
};

Shown show_scenario(const QuestionFlags& flags) {
  if (flags.scenario || flags.parts.model) {
    Json expansion = flags.load().json();
    expansion["unpriced"] = unpriced_in(expansion);
    return {expansion.dump(2) + "\n", expansion};
  }
  TextTable table{{"<scenario", "<notes"}};
  Json list = Json::array();
  for (const std::string& name : scenario_names()) {
    const Json json = Scenario::load(name).json();
    table.add({name, json.value("notes", "")});
    list.push_back({{"name", name}, {"notes", json.value("notes", "")}});
  }
  return {table.text(terminal().colour), list};
}

Shown show_program(const ShowFlags& flags) {
  const models::Question question = flags.question.load().question();
  const std::int64_t ranks = question.plan.gpus();
  if (flags.rank && (*flags.rank < 0 || *flags.rank >= ranks)) {
    throw InputError{"--rank", fmt::format("expected an integer from 0 to {}, found {}", ranks - 1,
                                           *flags.rank)};
  }
  const models::Program program = models::lower(question);
  const std::string text =
      flags.rank ? models::text_of_rank(program, *flags.rank)
                 : fmt::format("{}plan {}\n{}", models::text_of(question.model),
                               models::to_json(question.plan).dump(), models::text_of(program));
  return {text, {{"rank", or_null(flags.rank)}, {"text", text}}};
}

Shown shown(const ShowFlags& flags) {
  const std::optional<std::string>& name = flags.question.scenario;
  if (flags.what == "gpus") return show_gpus(name);
  if (flags.what == "nodes") return show_nodes(name);
  const ScenarioParts& parts = flags.question.parts;  // the entry, by the flag of its kind
  if (flags.what == "clusters") return show_clusters(name ? name : parts.cluster);
  if (flags.what == "models") return show_models(name ? name : parts.model, flags.seq_len);
  if (flags.what == "software") return show_software(name ? name : parts.software, parts.year);
  if (flags.what == "sites") return show_sites(name);
  if (flags.what == "schedules") return show_schedules(name, flags.schedule);
  if (flags.what == "collectives") return show_collectives();
  if (flags.what == "data-formats") return show_data_formats(name);
  if (flags.what == "plan-fields") {
    return show_plan_fields(name, flags.markdown ? FieldsAs::markdown : FieldsAs::lines);
  }
  if (flags.what == "topology") {
    return show_topology(name ? name : parts.cluster, flags.pictures, flags.gpu);
  }
  if (flags.what == "scenario") return show_scenario(flags.question);
  if (flags.what == "program") return show_program(flags);
  throw InputError{
      fmt::format("show: unknown '{}'; known: gpus nodes clusters sites models software "
                  "schedules collectives data-formats plan-fields topology scenario program",
                  flags.what)};
}

/// An entry as it is; a list under the name of its kind: `{"gpus": [...]}`.
Json document_of(const std::string& what, Json shown) {
  if (shown.is_object()) return shown;
  std::string kind = what == "scenario" ? "scenarios" : what;
  std::ranges::replace(kind, '-', '_');
  return {{kind, std::move(shown)}};
}

}  // namespace

void add_show(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand("show", "Print the catalogue or a scenario");
  const auto flags = std::make_shared<ShowFlags>();
  command
      .add_option("what", flags->what,
                  "gpus, nodes, clusters, sites, models, software, schedules, collectives, "
                  "data-formats, plan-fields, topology, scenario or program")
      ->required();
  flags->question.add_to(command);
  command.get_option("scenario")
      ->description("Entry to show: h100, dgx-h100, or a scenario by path or name (all)");
  command.add_option("--rank", flags->rank, "For program: rank whose instructions to print");
  command.add_option("--seq-len", flags->seq_len, "For models: tokens at which FLOPs are counted")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  command.add_option("--gpu", flags->gpu,
                     "For topology: the GPU of a node whose file does not say which");
  command.add_option("--svg", flags->pictures.svg, "For topology: SVG picture to write");
  command.add_option("--html", flags->pictures.html,
                     "For topology: page to write, the picture for a browser");
  command.add_option("--stages", flags->schedule.stages, "For schedules: stages of the pipeline")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 10));
  command
      .add_option("--micro-batches", flags->schedule.micro_batches, "For schedules: micro-batches")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 12));
  command.add_flag("--csv", flags->schedule.csv,
                   "For schedules: PyTorch's CSV, a line for each rank");
  command.add_flag("--markdown", flags->markdown,
                   "For plan-fields: the tables of models/plan/README.md");
  command.add_flag("--json", flags->json, "JSON instead of text");
  command.callback([flags, &exit_code] {
    const Shown result = shown(*flags);
    if (flags->json) {
      print_document(document_of(flags->what, result.json));
    } else {
      fmt::print("{}", result.text);
    }
    exit_code = exit_done;
  });
}

}  // namespace orrery::scenarios

// orrery plan: the best plans of a model on a cluster, and why the others lose.

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/execute/launch_output.hpp"
#include "scenarios/command/search_flags.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/command/terminal/repeated.hpp"
#include "scenarios/question/plan_request.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct PlanFlags : SearchFlags {
  PlanRequest request;
  std::string network = "auto";
  std::optional<std::string> gap, out, picture;
  std::vector<std::string> launch;  // --export
};

/// The best plan as a question, on the nodes that it uses.
models::Question question_of_best(const PlanRequest& request, const PlanSearch& found) {
  const PlacedPlan& best = found.best.front().candidate.placed;
  const ScenarioParts parts{.model = request.model,
                            .cluster = request.cluster,
                            .plan = models::to_json(best.plan).dump(),
                            .software = request.software};
  Scenario scenario = Scenario::load(std::nullopt, parts);
  if (best.nodes != found.query.cluster.nodes) {
    scenario = scenario.replace({{"/cluster/nodes", best.nodes}, {"/plan/data", nullptr}});
  }
  if (found.query.data) scenario = scenario.replace({{"/data", *found.query.data}});
  return scenario.question();
}

/// Writes the best plan's launch files; what a tool cannot do is reported, and none is written.
Json export_best(const PlanFlags& flags, const PlanSearch& found) {
  const Exported exported =
      export_launch(question_of_best(flags.request, found), launch_targets(flags.launch),
                    {.job = "orrery", .cluster = flags.request.cluster, .collectives = nullptr});
  if (!flags.json) print_unsaid(exported);
  Json written = Json::array();
  if (exported.refused.empty()) written = write_launch_files(exported, *flags.out);
  return {{"exported", std::move(written)}, {"export_refused", to_json(exported)["refused"]}};
}

int plan(PlanFlags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  flags.complete(flags.request);
  if (flags.picture && !flags.request.pareto) flags.request.pareto = "memory";
  if (flags.gap) flags.request.gap = read_gap_flag(*flags.gap);
  if (!flags.launch.empty() && !flags.out) {
    throw InputError{"--out", "missing; --export writes the launch files into that folder"};
  }
  if (flags.launch.empty() && flags.out) {
    throw InputError{"--out", "without --export there is nothing to write"};
  }
  flags.request.network = *value_of(models::network_mode_words, flags.network);
  const InterruptGuard guard;
  const PlanSearch found = search(flags.request, watched_progress("plans"));
  if (flags.picture) write_durably(*flags.picture, picture_of(found.report()));
  const bool exports = !flags.launch.empty() && !found.best.empty() && !found.answer.stopped;
  const Json more = exports ? export_best(flags, found) : Json::object();
  flags.print(found.report(), begin, more);
  if (found.answer.stopped) return InterruptGuard::exit_code();
  if (exports && !more["export_refused"].empty()) return exit_answer_is_no;
  return found.best.empty() ? exit_answer_is_no : exit_done;
}

}  // namespace

void add_plan(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand("plan", "Find the best plans for a cluster");
  const auto flags = std::make_shared<PlanFlags>();
  PlanRequest& request = flags->request;
  constexpr std::int64_t most = std::int64_t{1} << 30;
  flags->add_to(command, request, "plans");
  command.add_option("--cluster", request.cluster, "Cluster: a path, a name, or 'NODE x COUNT'")
      ->required();
  command.add_option("--global-batch", request.global_batch, "Sequences of one step")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, most));
  command
      .add_option("--seq-len", request.seq_len,
                  "Tokens of one sequence; not for a model that is a list of operations")
      ->check(CLI::Range(std::int64_t{1}, most));
  command.add_option(
      "--fixed", request.fixed,
      "Fields that every plan has, searched or not: 'zero=1,tensor=8' or 'task=lora,moments=int8'");
  command.add_option("--exclude", request.exclude,
                     "Values that no plan may have: 'zero=0,3,dispatcher=hybridep'");
  command.add_option(
      "--objective", request.objective,
      fmt::format("What to minimise: {} ({})", objective_words(), request.objective));
  command.add_option("--gap", flags->gap,
                     "By how much another plan may be faster when the search ends: '2%' or 0.02 "
                     "(0: the best one is found)");
  command.add_option("--tokens", request.tokens,
                     "Tokens to train on, such as 15T: days and dollars of each plan in --json");
  command.add_option("--deadline", request.deadline,
                     "Longest time for --tokens, such as 30d: slower plans are left out");
  command.add_option("--pareto", request.pareto,
                     "Also the Pareto front of --objective and this one, such as memory");
  command.add_option("--picture", flags->picture,
                     "SVG file for the Pareto front (of --objective and memory)");
  command.add_option(
      "--data", request.data,
      "What steps read: member data of a scenario as JSON, such as "
      "'{\"format\": \"jpeg-q90\", \"decode\": {\"cores\": 16}}', or a file with it");
  command
      .add_option("--network", flags->network,
                  "auto: the plans shown are evaluated with their traffic sharing links, and "
                  "sorted by the result (default); static: sorted as in the search")
      ->check(CLI::IsMember({"auto", "static"}));
  repeated(*command.add_option("--export", flags->launch,
                               "Also write the best plan as launch files, as orrery export does: " +
                                   export_targets()))
      .type_name("TARGET[@VERSION]");
  command.add_option("--out", flags->out, "With --export: folder for the files");
  command.callback([flags, &exit_code] { exit_code = plan(*flags); });
}

}  // namespace orrery::scenarios

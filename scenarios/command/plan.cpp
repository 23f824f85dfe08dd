// orrery plan: the best plans of a model on a cluster, and why the others lose.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/progress.hpp"
#include "scenarios/command/search_flags.hpp"
#include "scenarios/search/plan_report.hpp"
#include "scenarios/search/query.hpp"

namespace orrery::scenarios {

namespace {

/// Plans that fit tightly and would beat the best one: so many are named.
constexpr std::size_t most_tight = 3;

struct PlanFlags : SearchFlags {
  std::string cluster;
  std::string objective = "time";
  std::int64_t global_batch = 0, seq_len = 0;
};

Objective objective_of(const PlanFlags& flags, const PlanQuery& query) {
  for (const Objective each : {Objective::time, Objective::cost, Objective::energy}) {
    if (flags.objective != name(each)) continue;
    if (each == Objective::cost && !query.cluster.price_per_gpu_hour) {
      throw InputError{"--objective", fmt::format("cost needs a price, and {} has no "
                                                  "price_per_gpu_hour",
                                                  flags.cluster)};
    }
    return each;
  }
  throw InputError{"--objective",
                   fmt::format("expected time, cost or energy, found '{}'", flags.objective)};
}

/// How a shell is told to simulate the best plan.
std::string simulate_line(const PlanFlags& flags, const PlanQuery& query,
                          const std::vector<RankedPlan>& best) {
  if (best.empty()) return {};
  const PlacedPlan& placed = best.front().candidate.placed;
  return fmt::format(
      "orrery simulate --model {} --cluster '{}'{}{} --plan {}", flags.model, flags.cluster,
      flags.software ? fmt::format(" --software {}", *flags.software) : "",
      placed.nodes == query.cluster.nodes ? ""
                                          : fmt::format(" --set /cluster/nodes={}", placed.nodes),
      models::to_text(placed.plan));
}

int plan(const PlanFlags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  PlanQuery query;
  query.model = read_model_flag(flags.model);
  query.cluster = read_cluster_flag(flags.cluster);
  query.software = read_software_flag(flags.software.value_or(usual_software));
  query.global_batch = flags.global_batch;
  query.seq_len = flags.seq_len;
  query.precision = read_precision_flag(flags.precision);
  query.headroom = flags.headroom_share();
  const Objective objective = objective_of(flags, query);
  if (const auto refused = refusal(query)) {
    throw InputError{flag_of_pointer(refused->pointer), refused->problem};
  }
  const Watch watch;
  const PlanAnswer answer =
      search_plans(query, objective, {flags.threads, watched_progress("plans")});
  const std::vector<RankedPlan> best = compare_best(query, answer, objective, flags.top);
  std::vector<std::string> assumptions = search_assumptions(query);
  if (!flags.software) {
    assumptions.push_back(fmt::format("/software: {} taken as default", usual_software));
  }
  const PlanReport report{.query = query,
                          .objective = objective,
                          .answer = answer,
                          .best = best,
                          .cluster = flags.cluster,
                          .assumptions = assumptions,
                          .simulate = simulate_line(flags, query, best),
                          .tight_ahead = tight_ahead(query, answer, objective, most_tight)};
  flags.print(report, begin);
  if (answer.stopped) return exit_interrupted;
  return best.empty() ? exit_answer_is_no : exit_done;
}

}  // namespace

void add_plan(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand("plan", "Find the best plans for a cluster");
  const auto flags = std::make_shared<PlanFlags>();
  constexpr std::int64_t most = std::int64_t{1} << 30;
  flags->add_to(command, "plans");
  command.add_option("--cluster", flags->cluster, "Cluster: a path, a name, or 'NODE x COUNT'")
      ->required();
  command.add_option("--global-batch", flags->global_batch, "Sequences of one step")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, most));
  command.add_option("--seq-len", flags->seq_len, "Tokens of one sequence")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, most));
  command.add_option("--objective", flags->objective, "time (default), cost or energy");
  command.callback([flags, &exit_code] { exit_code = plan(*flags); });
}

}  // namespace orrery::scenarios

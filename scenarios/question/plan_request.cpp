#include "scenarios/question/plan_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/plan/fields.hpp"
#include "scenarios/scenario/data_section.hpp"
#include "scenarios/scenario/limits.hpp"
#include "scenarios/search/query.hpp"
#include "scenarios/search/space/dimensions.hpp"
#include "scenarios/search/space/plan_values.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// How many plans are listed that fit tightly and would beat the best one.
constexpr std::size_t most_tight = 3;

const Objective& objective_of(const PlanRequest& request, const PlanQuery& query,
                              const std::string& flag, const std::string& name) {
  const Objective& objective = objective_named(name, flag);
  if (objective.needs_price && !query.cluster.price_per_gpu_hour) {
    throw InputError{flag, fmt::format("{} needs a price, and {} has no price_per_gpu_hour",
                                       objective.name, request.cluster)};
  }
  return objective;
}

/// The longest step with which so many tokens take no longer than the deadline.
std::optional<Time> longest_step(const PlanRequest& request, const PlanQuery& query,
                                 std::optional<double> tokens) {
  if (!request.deadline) return std::nullopt;
  const auto days = parse_days(*request.deadline);
  if (!days) {
    throw InputError{"--deadline", fmt::format("expected {}, found '{}'", days_form,
                                               printable(*request.deadline, 60))};
  }
  if (!tokens) throw InputError{"--deadline", "needs --tokens, which take that long"};
  const double of_step =
      static_cast<double>(query.global_batch) * static_cast<double>(query.seq_len);
  return from_seconds(*days * seconds_per_day * of_step / *tokens);
}

/// The fields of a plan that flags of their own state.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> flags_of_fields{
    {{"global_batch", "--global-batch"}, {"seq_len", "--seq-len"}, {"precision", "--precision"}}};

/// Reads fields of a plan, `KEY=VALUE,...`, and calls take(field, plan) for each in the order of a
/// plan's fields.
void read_fields(std::string_view flag, const Json& given, const auto& take) {
  const Document document = Document::from(given, std::string{flag});
  std::vector<std::string_view> known;
  for (const models::PlanField& each : models::plan_fields()) known.push_back(each.key);
  document.root().only(known);
  for (const auto& [key, own] : flags_of_fields) {
    if (const auto value = document.root().find(key))
      value->fail(fmt::format("is that of {}", own));
  }
  models::Plan plan;
  if (!document.root().has("context")) plan.context = 2;  // so that its forms are read
  for (const models::PlanField& each : models::plan_fields()) {
    const auto value = document.root().find(each.key);
    if (!value) continue;
    each.read_value(*value, plan);
    take(each, plan);
  }
}

void read_fixed_flag(const std::string& text, PlanQuery& query) {
  read_fields("--fixed", models::plan_from_text(text, "--fixed"),
              [&](const models::PlanField& field, const models::Plan& plan) {
                query.fixed = plan;
                query.stated.emplace_back(field.key);
              });
  const auto stated = [&](std::string_view key) {
    return std::ranges::find(query.stated, key) != query.stated.end();
  };
  if (!stated("context")) query.fixed.context = 1;
}

/// Reads what no plan may have; a field may stand several times, or once with several values:
/// `tensor=1,2` is `tensor=1,tensor=2`.
void read_exclude_flag(const std::string& text, PlanQuery& query) {
  std::string key;
  for (const std::string_view part : split(text, ',')) {
    if (trimmed(part).empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals != std::string_view::npos) key = part.substr(0, equals);
    const std::string item =
        equals == std::string_view::npos && !key.empty() ? key + "=" : std::string{};
    read_fields("--exclude", models::plan_from_text(item + std::string{part}, "--exclude"),
                [&](const models::PlanField& field, const models::Plan& plan) {
                  // Some have no value in a plan that does not state another field, too.
                  Json value = value_in(field, plan);
                  if (value.is_null()) value = field.value.write(plan);
                  if (field.key == recomputed_modules_key &&
                      plan.recompute.modules == models::Plan{}.recompute.modules) {
                    throw InputError{"--exclude",
                                     "recompute_modules=core_attn is what recompute=selective has "
                                     "by itself; exclude recompute=selective, or fix the modules"};
                  }
                  query.excluded.push_back({std::string{field.key}, std::move(value)});
                });
  }
}

PlanQuery query_of(const PlanRequest& request) {
  PlanQuery query;
  query.model = read_model_flag(request.model);
  query.cluster = read_cluster_flag(request.cluster);
  query.software = read_software_flag(request.software.value_or(usual_software));
  query.global_batch = request.global_batch;
  query.seq_len = query.model.list && request.seq_len == 0 ? 1 : request.seq_len;
  if (query.seq_len == 0) throw InputError{"--seq-len", "is missing: tokens of one sequence"};
  query.precision = read_precision_flag(request.precision);
  read_fixed_flag(request.fixed, query);
  if (!request.exclude.empty()) read_exclude_flag(request.exclude, query);
  if (request.headroom) query.headroom = *request.headroom;
  if (request.data) {
    query.data = data_from_flag("--data", *request.data, expanded_cluster(request.cluster),
                                query.seq_len, query.data_assumptions);
  }
  return query;
}

std::string simulate_line(const PlanRequest& request, const PlanQuery& query,
                          const std::vector<RankedPlan>& best) {
  if (best.empty()) return {};
  const PlacedPlan& placed = best.front().candidate.placed;
  return fmt::format(
      "orrery simulate --model {} --cluster '{}'{}{} --plan {}{}{}", request.model, request.cluster,
      request.software ? fmt::format(" --software {}", *request.software) : "",
      placed.nodes == query.cluster.nodes ? ""
                                          : fmt::format(" --set /cluster/nodes={}", placed.nodes),
      flag_of(query, placed.plan),
      query.data ? fmt::format(" --set '/data={}'", query.data->dump()) : "",
      best.front().candidate.shared ? " --network events" : "");
}

}  // namespace

PlanReport PlanSearch::report() const {
  return {.query = query,
          .objective = objective,
          .answer = answer,
          .best = best,
          .cluster = cluster,
          .assumptions = assumptions,
          .simulate = simulate,
          .against = against ? &*against : nullptr,
          .tokens = tokens,
          .longest_step = longest_step,
          .tight_ahead = tight_ahead,
          .advice = advice,
          .over_stacks = over_stacks};
}

PlanSearch search(const PlanRequest& request, const Progress& progress) {
  PlanSearch found{.query = query_of(request), .cluster = request.cluster};
  const PlanQuery& query = found.query;
  found.objective = objective_of(request, query, "--objective", request.objective);
  if (request.pareto) {
    found.against = objective_of(request, query, "--pareto", *request.pareto);
    if (found.against->name == found.objective.name) {
      throw InputError{"--pareto", fmt::format("is the objective itself, {}; name another one",
                                               found.objective.name)};
    }
  }
  if (request.tokens) found.tokens = read_tokens_flag(*request.tokens);
  found.longest_step = longest_step(request, query, found.tokens);
  if (const auto refused = refusal(query)) {
    throw InputError{flag_of_pointer(refused->pointer), refused->problem};
  }
  std::size_t searched = 0, all = 0;  // which the traffic, a further step, leaves as they are
  const Progress counted = [&](std::size_t done, std::size_t of) {
    searched = done;
    all = of;
    return !progress || progress(done, of);
  };
  const Progress held = [&](std::size_t, std::size_t) {
    return !progress || progress(searched, all);
  };
  found.answer = search_plans(query, found.objective, {request.threads, counted},
                              Wanted{.best = request.top,
                                     .gap = request.gap,
                                     .against = found.against ? &*found.against : nullptr,
                                     .longest_step = found.longest_step});
  if (request.network != models::NetworkMode::fixed && !found.answer.stopped) {
    found.not_shared =
        share_links(query, found.objective, request.top, {request.threads, held}, found.answer);
  }
  found.best = compare_best(query, found.answer, found.objective, request.top);
  found.tight_ahead = tight_ahead(query, found.answer, found.objective, most_tight);
  if (found.answer.fitting.empty() && found.answer.nearest_miss) {
    found.advice =
        memory_advice(question_of(query, found.answer.nearest_miss->placed), models::Fit::no);
  }
  found.assumptions = search_assumptions(query);
  if (!request.software) {
    found.assumptions.push_back(fmt::format("/software: not stated; {} assumed", usual_software));
    if (!found.answer.stopped) {
      found.over_stacks = over_stacks(query, found.objective, found.best, {request.threads, {}});
    }
  }
  for (const ExcludedValue& each : query.excluded) {
    const std::vector<std::string_view> searched = searched_keys(query);
    if (std::ranges::find(searched, each.key) != searched.end()) continue;
    if (value_in(models::plan_field(each.key), first_plan(query)) == each.value) continue;
    found.assumptions.push_back(fmt::format(
        "--exclude {}={} has no effect: this search does not vary {}", each.key,
        each.value.is_string() ? each.value.get<std::string>() : each.value.dump(), each.key));
  }
  if (!found.best.empty()) {
    models::Question best = question_of(query, found.best.front().candidate.placed);
    for (const models::RecipeChoice& each : take_recipe(query, best)) {
      found.assumptions.push_back("best plan: " + assumption_of(each, query.software.name));
    }
    const std::vector<std::string>& of_data =
        question_of(query, found.best.front().candidate.placed).assumptions;
    found.assumptions.insert(found.assumptions.end(), query.data_assumptions.begin(),
                             query.data_assumptions.end());
    found.assumptions.insert(found.assumptions.end(), of_data.begin(), of_data.end());
  }
  if (!found.not_shared.empty()) found.assumptions.push_back(found.not_shared);
  found.simulate = simulate_line(request, query, found.best);
  return found;
}

}  // namespace orrery::scenarios

#include "models/prediction/listed_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "models/model/operation_list.hpp"
#include "models/prediction/flops.hpp"
#include "sim/input/units.hpp"

namespace orrery::models {

namespace {

constexpr std::int64_t most_steps = 1'000'000;

/// For each set of periods that come due together, in how many of `all` steps it does and one of
/// these steps.
struct DueSteps {
  std::map<std::vector<std::int64_t>, std::pair<std::int64_t, std::int64_t>> sets;
  std::int64_t all = 1;
};

DueSteps due_steps(const OperationList& list) {
  const std::vector<std::int64_t> periods = list.periods();
  DueSteps due;
  for (const std::int64_t each : periods) {
    due.all = std::lcm(due.all, each);
    if (due.all <= most_steps) continue;
    throw InputError{"/model/step",
                     fmt::format("operations every {} steps come due together after more than a "
                                 "million steps; choose periods that divide each other",
                                 fmt::join(periods, ", "))};
  }
  for (std::int64_t step = 1; step <= due.all; ++step) {
    std::vector<std::int64_t> set;
    for (const std::int64_t each : periods) {
      if (step % each == 0) set.push_back(each);
    }
    auto& [count, one] = due.sets.try_emplace(std::move(set), 0, step).first->second;
    ++count;
  }
  return due;
}

/// Memory, and whether it fits, of a step that needs more.
void take_memory(Prediction&& larger, Prediction& into) {
  into.memory = std::move(larger.memory);
  into.fullest = larger.fullest;
  into.memory_evidence = std::move(larger.memory_evidence);
  into.out_of_memory = std::move(larger.out_of_memory);
  into.fit = larger.fit;
  into.fit_probability = larger.fit_probability;
}

Bytes peak_of(const Prediction& prediction) {
  return prediction.memory.at(prediction.fullest).total;
}

}  // namespace

Prediction mean_step(const Question& question, Prediction (*one)(const Question&)) {
  const OperationList& list = *question.model.list;
  Question each = question;
  for (const std::string& assumed : list.assumed()) {
    each.assumptions.push_back("/model: assumed: " + assumed);
  }
  for (std::int64_t kind = 0; kind < list.layers(); ++kind) {
    for (const ListedOperation& op : list.operations(list.kind_of(kind))) {
      const std::string note = fmt::format(
          "/model: backward of '{}' is not stated; twice its FLOPs and traffic assumed", op.name);
      const bool known = std::ranges::count(each.assumptions, note) > 0;
      if (op.reverse_assumed && !known) each.assumptions.push_back(note);
    }
    while (kind + 1 < list.layers() && list.kind_of(kind + 1) == list.kind_of(kind)) ++kind;
  }
  if (list.trains()) return one(each);
  const DueSteps due = due_steps(list);
  Prediction usual;
  std::optional<Prediction> largest;
  std::int64_t most = 0;
  double step = 0, energy = 0, cost = 0, low = 0, high = 0;
  std::array<double, time_class_count> parts{};
  for (const auto& [set, times] : due.sets) {
    each.model.list_step = times.second;
    Prediction found = one(each);
    const double share = static_cast<double>(times.first) / static_cast<double>(due.all);
    step += share * seconds(found.step);
    energy += share * found.energy.count();
    if (found.cost) cost += share * found.cost->count();
    low += share * seconds(found.uncertainty.p10);
    high += share * seconds(found.uncertainty.p90);
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] += share * seconds(found.breakdown[i]);
    if (due.sets.size() > 1 && (!largest || peak_of(found) > peak_of(*largest))) largest = found;
    if (times.first > most) {
      most = times.first;
      usual = std::move(found);
    }
  }
  if (largest) take_memory(std::move(*largest), usual);
  if (due.sets.size() > 1) {
    usual.assumptions.push_back(fmt::format(
        "/model/step: the mean of {} kinds of steps; {:.3g} % of them take {} and run nothing that "
        "is not due in every step",
        due.sets.size(), 100.0 * static_cast<double>(most) / static_cast<double>(due.all),
        format(usual.step)));
  }
  usual.step = from_seconds(step);
  usual.tokens_per_second = 1 / step;
  usual.energy = Energy{energy};
  if (usual.cost) usual.cost = Money{cost};
  usual.uncertainty = {from_seconds(low), usual.step, from_seconds(high)};
  Time rest = usual.step;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    usual.breakdown[i] = std::min(rest, from_seconds(parts[i]));
    rest -= usual.breakdown[i];
  }
  usual.breakdown[static_cast<std::size_t>(TimeClass::other)] += rest;
  usual.waterfall = waterfall_of(question, usual);
  return usual;
}

namespace {

/// The question with another number of GPUs: whole nodes, or a part of one.
Question with_gpus(const Question& question, std::int64_t gpus) {
  Question own = question;
  hardware::Cluster& cluster = own.cluster;
  const std::int64_t node = cluster.node.gpus;
  if (gpus > cluster.gpus()) {
    throw InputError{"/model/run/phases", fmt::format("a phase needs {} GPUs, the cluster has {}",
                                                      gpus, cluster.gpus())};
  }
  if (gpus % node != 0 && gpus > node) {
    throw InputError{"/model/run/phases",
                     fmt::format("{} GPUs are no whole nodes of {} GPUs", gpus, node)};
  }
  cluster.nodes = static_cast<int>(std::max<std::int64_t>(1, gpus / node));
  if (gpus < node) cluster.node.gpus = static_cast<int>(gpus);
  own.plan.data = gpus;
  own.plan.batch.global = gpus;
  return own;
}

double hours_of_change(const Question& question, const OperationList& list) {
  double sum = 0;
  for (const ListedOperation& each : list.change({.gpus = question.plan.gpus()})) {
    if (each.kind == ListedKind::host) {
      sum += seconds(each.host);
      continue;
    }
    const auto rate =
        each.writes_files ? question.cluster.storage.write : question.cluster.storage.read;
    if (!rate) {
      throw InputError{"/cluster/storage",
                       "a change of the number of GPUs needs the storage's rates, as in --set "
                       "'/cluster/storage={\"read\": \"20 GB/s\", \"write\": \"10 GB/s\"}'"};
    }
    sum += each.bytes / rate->count() / static_cast<double>(question.cluster.nodes);
  }
  return sum / 3600;
}

}  // namespace

namespace {

ListedRun run_of(const Question& question, std::vector<ListedPhase> phases) {
  const OperationList& list = *question.model.list;
  ListedRun run;
  run.steps = list.steps();
  if (run.steps <= 0) throw InputError{"/model/run", "missing; expected the number of steps"};
  double left = run.steps;
  for (std::size_t i = 0; i < phases.size() && left > 0; ++i) {
    const Question own = with_gpus(question, phases[i].gpus);
    const Prediction found = predict(own);
    LoopPhase phase{.gpus = phases[i].gpus, .step = found.step};
    if (i > 0) phase.change_hours = hours_of_change(own, list);
    const double possible = phases[i].hours ? *phases[i].hours * 3600 / seconds(found.step) : left;
    phase.steps = std::min(left, possible);
    phase.hours = phase.steps * seconds(found.step) / 3600;
    phase.busy = found.busy.sm;
    left -= phase.steps;
    run.hours += phase.hours + phase.change_hours;
    run.gpu_hours += (phase.hours + phase.change_hours) * static_cast<double>(phase.gpus);
    run.phases.push_back(phase);
  }
  return run;
}

}  // namespace

ListedRun listed_run(const Question& question) {
  std::vector<ListedPhase> phases = question.model.list->phases();
  if (phases.empty()) phases.push_back({.gpus = question.plan.gpus()});
  return run_of(question, std::move(phases));
}

ListedRun listed_run_on(const Question& question, std::int64_t gpus) {
  return run_of(question, {{.gpus = gpus}});
}

}  // namespace orrery::models

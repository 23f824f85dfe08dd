#include "scenarios/contention/contention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "models/network/scattered.hpp"
#include "sim/errors.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::uint64_t seed = 1;  // of the order of scattered nodes
constexpr const char* second_model = "llama3-8b";

using CaseChanges = std::vector<std::pair<std::string, Json>>;

/// The variants of the step: where this job's ranks and those of a second job are placed.
class Variants {
 public:
  Variants(const Scenario& scenario, const models::Question& question,
           const models::LaunchPhases& phases)
      : scenario_{scenario},
        plan_{question.plan},
        phases_{phases},
        gpus_{question.cluster.node.gpus} {
    own_ = (plan_.gpus() + gpus_ - 1) / gpus_;
    const std::int64_t other = std::max<std::int64_t>(2, own_ / 4);
    all_ = std::max<std::int64_t>(question.cluster.nodes, own_ + other);
    order_ = models::scattered_nodes(all_, seed);
    for (std::int64_t i = 0; i < other; ++i) job_nodes_.push_back(order_[own_ + i]);
    order_.resize(static_cast<std::size_t>(own_));
    for (std::int64_t i = 0; i < own_; ++i) first_nodes_.push_back(i);
  }

  std::int64_t nodes() const { return own_; }
  std::int64_t all_nodes() const { return all_; }
  std::int64_t job_gpus() const { return std::ssize(job_nodes_) * gpus_; }

  struct Variant {
    const char* name;
    CaseChanges changes;
    bool slow_nic = false;  // another one in each phase
  };
  std::vector<Variant> all(bool overlap) const {
    CaseChanges usual{{"/cluster/nodes", all_}, {"/network", in_phases()}};
    for (const auto& each : overlapped(overlap)) usual.push_back(each);
    const auto with = [&](CaseChanges more) {
      more.insert(more.begin(), usual.begin(), usual.end());
      return more;
    };
    return {{"contiguous", with({{"/placement", first_nodes_}})},
            {"one NIC at half rate", with({{"/placement", first_nodes_}}), true},
            {"scattered", with({{"/placement", order_}})},
            {"scattered, next to a second job",
             with({{"/placement", order_}, {"/jobs", second_job()}})}};
  }

 private:
  Json in_phases() const {
    return {{"mode", "events"},
            {"phases", phases_.count},
            {"seed", phases_.seed},
            {"launch_delay", format(phases_.delay)}};
  }

  /// Switches overlap of data-parallel collectives on or off, in the plan and the software profile.
  CaseChanges overlapped(bool overlap) const {
    CaseChanges changes{{"/plan/overlap", overlap}, {"/plan/overlap_gather", overlap}};
    const Json& software = scenario_.json().at("software");
    if (!overlap || !software.contains("overlap")) return changes;
    changes.emplace_back("/software/overlap/gradients", true);
    changes.emplace_back("/software/overlap/sharded_gradients", true);
    return changes;
  }

  /// Purely data parallel, so that its NICs are busy with gradients.
  Json second_job() const {
    Json scenario;
    scenario["name"] = second_model;
    scenario["model"] = second_model;
    scenario["plan"] = {
        {"zero", 1}, {"micro_batch", 1}, {"global_batch", job_gpus()}, {"seq_len", 4096}};
    Json job;
    job["scenario"] = std::move(scenario);
    job["nodes"] = job_nodes_;
    return Json::array({job});
  }

  const Scenario& scenario_;
  const models::Plan& plan_;
  models::LaunchPhases phases_;
  std::int64_t gpus_, own_ = 0, all_ = 0;
  std::vector<std::int64_t> first_nodes_, order_, job_nodes_;
};

Time mean_of(const std::vector<Time>& times) {
  return from_seconds(mean_and_spread(times).mean);
}

void add_prediction(const Scenario& scenario, ContentionCase& found) {
  const models::Prediction predicted = models::predict(scenario.question());
  const models::PhasesAnswer before = std::move(found.phases);
  found.network = predicted.network;
  found.phases = predicted.network.phases;
  const auto prepend = [](const std::vector<Time>& first, std::vector<Time>& all) {
    all.insert(all.begin(), first.begin(), first.end());
  };
  prepend(before.steps, found.phases.steps);
  prepend(before.contention, found.phases.contention);
  prepend(before.from_jobs, found.phases.from_jobs);
}

/// A NIC of the first nodes, drawn for each phase.
Json half_a_nic(const ContentionReport& report, std::int64_t nics_per_node, int phase) {
  std::mt19937_64 random{report.phases.seed + static_cast<std::uint64_t>(phase)};
  const auto nic = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(report.nics));
  Json slow;
  slow["kind"] = "nic";
  slow["at"] = fmt::format("node{}/nic{}", nic / nics_per_node, nic % nics_per_node);
  slow["rate"] = 0.5;
  return Json::array({slow});
}

void predict_case(const Scenario& scenario, const ContentionReport& report,
                  const Variants::Variant& variant, ContentionCase& found) {
  try {
    const Scenario changed = scenario.replace(variant.changes);
    if (!variant.slow_nic) {
      add_prediction(changed, found);
    } else {
      const std::int64_t per_node = report.nics / report.nodes;
      for (int phase = 0; phase < report.phases.count; ++phase) {
        add_prediction(changed.replace({{"/network/phases", 1},
                                        {"/network/first_phase", phase},
                                        {"/perturbations", half_a_nic(report, per_node, phase)}}),
                       found);
      }
    }
    found.step = mean_of(found.phases.steps);
    found.contention = mean_of(found.phases.contention);
    found.from_jobs = mean_of(found.phases.from_jobs);
  } catch (const InputError& error) {
    found.refused = error.what();
  }
}

}  // namespace

const ContentionCase* ContentionReport::usual(const ContentionCase& of) const {
  for (const ContentionCase& each : cases) {
    if (each.overlap == of.overlap) return each.refused.empty() ? &each : nullptr;
  }
  return nullptr;
}

MeanAndSpread ContentionReport::against_usual(const ContentionCase& of) const {
  const ContentionCase* other = usual(of);
  ensure(other != nullptr && of.refused.empty(), "predicted cases are compared");
  std::vector<double> longer;
  const std::vector<Time>& steps = of.phases.steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    longer.push_back(orrery::ratio(steps[i], other->phases.steps.at(i)) - 1);
  }
  return mean_and_spread(longer);
}

ContentionReport contend(const ContentionRequest& request, const Progress& progress) {
  const Scenario scenario = request.scenario.load();
  for (const char* key : {"placement", "perturbations", "jobs", "network"}) {
    if (!scenario.json().contains(key)) continue;
    throw InputError{fmt::format("{}:/{}", scenario.file(), key),
                     "orrery contention sets this itself; leave it out"};
  }
  const models::Question question = scenario.question();
  if (question.cluster.fabric.kind == hardware::FabricKind::none ||
      question.cluster.node.nics == 0) {
    throw InputError{"/cluster/fabric", "the cluster has no network between nodes"};
  }
  const Variants variants{scenario, question, request.phases};
  ContentionReport report;
  report.phases = request.phases;
  report.scenario = scenario.name();
  report.cluster = fmt::format("{}, {}", question.cluster.node.name, question.cluster.fabric.name);
  report.nodes = variants.nodes();
  report.all_nodes = variants.all_nodes();
  report.job_gpus = variants.job_gpus();
  report.nics = report.nodes * question.cluster.node.nics;
  std::vector<Variants::Variant> cases;
  for (const bool overlap : {false, true}) {
    for (const Variants::Variant& each : variants.all(overlap)) {
      ContentionCase& next = report.cases.emplace_back();
      next.name = each.name;
      next.overlap = overlap;
      cases.push_back(each);
    }
  }
  std::vector<char> done(cases.size(), 0);
  const Workers workers{.threads = request.threads, .progress = progress};
  report.stopped = !workers.work_through(cases.size(), [&](std::size_t i, unsigned) {
    predict_case(scenario, report, cases[i], report.cases[i]);
    done[i] = 1;
  });
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (done[i] == 0) report.cases[i].refused = "stopped before it was predicted";
  }
  return report;
}

}  // namespace orrery::scenarios

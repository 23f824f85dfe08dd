#include <fmt/format.h>

#include <filesystem>

#include "scenarios/scenario/network_request.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_jobs = 64;

/// As `Scenario::load`, with paths relative to the file that names the job; a document given inline
/// gets this scenario's cluster.
Scenario load_job(const Node& value, const Json& cluster) {
  if (value.is_object()) {
    Json written = value.json();
    written["cluster"] = cluster;
    return Scenario::parse(written, value.place());
  }
  const std::string text = value.as<std::string>();
  const std::string folder =
      is_path(value.file()) ? std::filesystem::path{value.file()}.parent_path().string() : "";
  if (is_path(text, folder)) return Scenario::load(from_folder(folder, text));
  std::string known;
  for (const std::string& name : scenario_names()) {
    if (name == text) return Scenario::load(text);
    known += " " + name;
  }
  throw InputError{fmt::format("unknown scenario '{}'; known:{}", printable(text, 60), known)};
}

/// A job must not have jobs, a placement or perturbations of its own.
void refuse_own_network(const Scenario& job) {
  for (const char* key : {"jobs", "placement", "perturbations"}) {
    if (!job.json().contains(key)) continue;
    throw InputError{fmt::format("a job in /jobs cannot have its own {}", key)};
  }
}

/// The job on this cluster with `nodes` nodes: its data-parallel degree is derived from them.
models::Question question_on(const Scenario& job, Json cluster, std::size_t nodes) {
  cluster["nodes"] = nodes;
  return job.replace({{"/cluster", std::move(cluster)}}).question();
}

/// Reports a mistake in a job's scenario at the place where the job is written.
[[noreturn]] void refuse(const Node& written, const InputError& mistake) {
  const std::string place = written.place();
  if (mistake.place().starts_with(place + ":")) {
    throw InputError{place + std::string{mistake.place().substr(place.size() + 1)},
                     std::string{mistake.problem()}};
  }
  throw InputError{place, mistake.what()};
}

models::JobRequest read_job(const Node& value, const Json& cluster, const hardware::Cluster& read) {
  value.only({"scenario", "nodes"});
  models::JobRequest job;
  job.pointer = value.pointer();
  for (const Node& each : value["nodes"].elements()) {
    job.nodes.push_back(each.integer(0, read.nodes - 1));
  }
  if (job.nodes.empty()) value["nodes"].fail_expected("at least one node number");
  const Node written = value["scenario"];
  try {
    const Scenario scenario = load_job(written, cluster);
    job.name = written.is_object() ? scenario.json().value("name", "a job") : scenario.name();
    refuse_own_network(scenario);
    models::Question question = question_on(scenario, cluster, job.nodes.size());
    question.cluster = read;
    job.question = std::make_shared<const models::Question>(std::move(question));
  } catch (const InputError& mistake) {
    refuse(written, mistake);
  }
  return job;
}

}  // namespace

std::vector<models::JobRequest> read_jobs(const Node& root, const Json& cluster,
                                          const hardware::Cluster& read) {
  std::vector<models::JobRequest> jobs;
  const auto list = root.find("jobs");
  if (!list) return jobs;
  const std::vector<Node> elements = list->elements();
  if (elements.size() > most_jobs) list->fail_expected("at most 64 jobs");
  for (const Node& each : elements) jobs.push_back(read_job(each, cluster, read));
  return jobs;
}

}  // namespace orrery::scenarios

#include "executor/session/mlflow_store.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <system_error>

#include "models/plan/fields.hpp"
#include "sim/input/document.hpp"
#include "sim/input/text.hpp"

namespace orrery::executor {

namespace {

namespace fs = std::filesystem;

constexpr const char* experiment = "0";           // MLflow's "Default", which every store has
constexpr int running = 1, done = 3, failed = 4;  // mlflow.entities.RunStatus

std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string new_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", device());
  return id;
}

std::string user() {
  const passwd* entry = getpwuid(geteuid());
  return entry == nullptr ? std::to_string(geteuid()) : entry->pw_name;
}

void write(const fs::path& file, const std::string& text, bool append = false) {
  std::ofstream out{file, append ? std::ios::app : std::ios::trunc};
  out << text << std::flush;
  if (!out) throw OutputError{file.string(), errno};
}

/// YAML, each of whose values is written as JSON, which YAML includes.
void write_yaml(const fs::path& file, const Json& values) {
  std::string text;
  for (const auto& [key, value] : values.items())
    text += fmt::format("{}: {}\n", key, value.dump());
  write(file, text);
}

void make(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw OutputError{folder.string(), failure};
}

}  // namespace

fs::path mlflow_folder(const std::string& uri) {
  const std::size_t scheme = uri.find("://");
  std::string path = uri;
  if (scheme != std::string::npos && uri.compare(0, scheme, "file") == 0) {
    path = uri.substr(scheme + 3);
    if (path.rfind("localhost/", 0) == 0) path.erase(0, std::string{"localhost"}.size());
    if (path.empty() || path.front() != '/') path.clear();
  } else if (uri.rfind("file:", 0) == 0) {
    path = uri.substr(std::string{"file:"}.size());
  } else if (scheme != std::string::npos) {
    path.clear();
  }
  if (path.empty()) {
    throw InputError{"--mlflow", fmt::format("expected a folder or file:///FOLDER, found '{}'; a "
                                             "tracking server is not written to",
                                             printable(uri, 60))};
  }
  return path;
}

MlflowStore::MlflowStore(const std::string& uri, const models::Question& question,
                         const SessionOptions& options)
    : id_{new_id()}, began_{now_ms()} {
  const fs::path root = fs::absolute(mlflow_folder(uri)), folder = root / experiment;
  run_ = folder / id_;
  for (const char* each : {"metrics", "params", "tags", "artifacts"}) make(run_ / each);
  if (!fs::exists(folder / "meta.yaml")) {
    write_yaml(folder / "meta.yaml", {{"artifact_location", folder.string()},
                                      {"creation_time", began_},
                                      {"experiment_id", experiment},
                                      {"last_update_time", began_},
                                      {"lifecycle_stage", "active"},
                                      {"name", "Default"}});
  }
  write_meta(running);
  const auto parameter = [&](const std::string& name, const std::string& value) {
    write(run_ / "params" / name, value);
  };
  parameter("model", question.model.name);
  parameter("gpus", std::to_string(question.plan.gpus()));
  parameter("software", question.software.name);
  parameter("seed", std::to_string(options.seed));
  parameter("steps", std::to_string(options.steps));
  for (const models::PlanField& field : models::plan_fields()) {
    if (field.is_set(question.plan)) {
      parameter("plan." + std::string{field.key}, field.text(question.plan));
    }
  }
  tag("mlflow.runName", question.model.name);
  tag("mlflow.user", user());
  tag("mlflow.source.name", "orrery execute");
  tag("mlflow.source.type", "LOCAL");
}

MlflowStore::~MlflowStore() {
  if (finished_) return;
  try {
    write_meta(failed);
  } catch (const std::exception&) {  // the run has failed; why is reported elsewhere
  }
}

void MlflowStore::write_meta(int status) {
  const Json end = status == running ? Json(nullptr) : Json(now_ms());
  write_yaml(run_ / "meta.yaml", {{"artifact_uri", (run_ / "artifacts").string()},
                                  {"end_time", end},
                                  {"entry_point_name", ""},
                                  {"experiment_id", experiment},
                                  {"lifecycle_stage", "active"},
                                  {"run_id", id_},
                                  {"run_name", "orrery execute"},
                                  {"run_uuid", id_},
                                  {"source_name", ""},
                                  {"source_type", 4},
                                  {"source_version", ""},
                                  {"start_time", began_},
                                  {"status", status},
                                  {"tags", Json::array()},
                                  {"user_id", user()}});
}

void MlflowStore::tag(const std::string& name, const std::string& value) {
  write(run_ / "tags" / name, value);
}

void MlflowStore::add(const MeasuredStep& step) {
  const auto metric = [&](const char* name, double value) {
    const std::string text = std::isfinite(value) ? fmt::format("{}", value) : "nan";
    write(run_ / "metrics" / name, fmt::format("{} {} {}\n", now_ms(), text, step.index + 1), true);
  };
  metric("loss", step.loss);
  metric("gradient_norm", step.gradient_norm);
  metric("step_time_s", step.seconds);
  metric("tokens_per_s", step.tokens / step.seconds);
}

void MlflowStore::finish() {
  write_meta(done);
  finished_ = true;
}

}  // namespace orrery::executor

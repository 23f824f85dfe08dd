#pragma once
// A run as MLflow's file store holds it, so that `mlflow ui --backend-store-uri FOLDER` shows it
// next to others: parameters of the question, and a line per step in each metric's file. Leaves out
// artifacts and models, and tracking servers, which this does not talk to.
//
// Source  MLflow, mlflow/store/tracking/file_store.py: folders of experiment and run, meta.yaml,
//         `timestamp value step` lines in metrics/NAME, a file per parameter and tag

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "executor/session/session.hpp"

namespace orrery::executor {

class MlflowStore {
 public:
  /// uri  a folder, or file:///folder
  /// Errors  InputError for another scheme; OutputError where the folder cannot be written
  MlflowStore(const std::string& uri, const models::Question& question,
              const SessionOptions& options);
  /// A run that did not `finish` is FAILED.
  ~MlflowStore();
  MlflowStore(const MlflowStore&) = delete;
  MlflowStore& operator=(const MlflowStore&) = delete;

  /// Errors  OutputError
  void add(const MeasuredStep& step);
  void tag(const std::string& name, const std::string& value);
  void finish();
  const std::filesystem::path& folder() const { return run_; }

 private:
  void write_meta(int status);

  std::filesystem::path run_;
  std::string id_;
  std::int64_t began_ = 0;  // ms since 1970
  bool finished_ = false;
};

/// The folder that a URI of MLflow's file store names.
/// Errors  InputError naming --mlflow
std::filesystem::path mlflow_folder(const std::string& uri);

}  // namespace orrery::executor

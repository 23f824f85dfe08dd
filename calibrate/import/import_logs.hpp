#pragma once
// Makes a profile from logs of other tools. Request and answer serve both the command and Python.

#include <optional>
#include <string>
#include <vector>

#include "calibrate/findings.hpp"
#include "calibrate/import/import.hpp"

namespace orrery::calibrate {

struct ImportRequest {
  std::vector<std::string> logs;
  Json cluster = Json::object();     // that the logs are of, expanded; empty: unknown
  std::string cluster_name{};        // what errors call it
  std::optional<std::string> out{};  // profile to write; its samples go next to it
};

struct ImportAnswer {
  std::vector<Imported> logs;
  std::vector<Sample> samples;      // of all logs
  std::vector<FittedCurve> curves;  // tables of collectives
  std::vector<std::string> notes;   // of all logs: NICs that differ, samples that price nothing
  Json profile;                     // the cluster with the tables, or the tables alone
};

/// Errors  a log or a cluster that cannot be read, a log without a measurement, GPUs that the
/// cluster
///         does not have, more ranks than it has: InputError; --out: OutputError
ImportAnswer import_logs(const ImportRequest& request);

/// What `calibrate --import --json` prints.
Json to_json(const ImportRequest& request, const ImportAnswer& answer);
/// The answer as text.
std::string table_of(const ImportRequest& request, const ImportAnswer& answer);

}  // namespace orrery::calibrate

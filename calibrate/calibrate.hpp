#pragma once
// Calibrates this machine: measures it with the executor's own kernels and makes a cluster profile.
// Request and answer serve both the command and Python.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/findings.hpp"
#include "calibrate/harness/harness.hpp"
#include "calibrate/shapes/work_list.hpp"

namespace orrery::calibrate {

struct CalibrateRequest {
  std::string backend = "cpu";           // or "cuda"
  Time budget = 60_s;                    // time to spend on measuring
  std::vector<int> ranks{1, 2};          // cpu: numbers of concurrent ranks, from 1 to 64
  std::string fabric = "tcp";            // cpu: how they reach each other; or "threads"
  std::optional<std::string> storage{};  // folder whose storage is measured; cpu: that of `out`
  /// Expanded: storage and decoding alone are measured, and the profile is this cluster with them.
  std::optional<Json> cluster{};
  std::int64_t widest = 16384;         // cuda: hidden size of the widest model measured
  std::vector<PlanToMeasure> plans{};  // cuda: that will run on this machine, measured first
  std::optional<std::string> out{};    // profile to write; its samples go next to it
  std::uint64_t seed = 1;              // of the order of points
};

struct CalibrateAnswer {
  Findings findings;
  std::optional<CalibratedProfile> profile;  // nothing: no GEMM, or no storage, was measured
  bool stopped = false;                      // by `progress`
};

/// Measures and, with `out`, writes PROFILE.json and PROFILE.samples.json; while it measures, each
/// point is a line of PROFILE.samples.jsonl, which remains if the process is killed.
/// progress  called before every point; false: stop with the results so far
/// Errors    an invalid request: InputError; --out: OutputError; a kernel or collective of a
///           processor that computes wrongly: RunFailure (of a GPU, it is listed in `failures`)
CalibrateAnswer calibrate(const CalibrateRequest& request, const Watcher& progress);

/// What `calibrate --json` prints.
Json to_json(const CalibrateRequest& request, const CalibrateAnswer& answer);
/// The answer as text.
std::string table_of(const CalibrateAnswer& answer);
/// The curves' names, points and errors.
Json to_json(const std::vector<FittedCurve>& curves);

}  // namespace orrery::calibrate

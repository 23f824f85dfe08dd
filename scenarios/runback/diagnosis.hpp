#pragma once
// Which NIC, node, GPU, rank or link of a cluster is slow, from several logs of it: perftest,
// nccl-tests by node or pair, step times of ranks, traces of PyTorch's profiler. Only what should
// be alike is compared; a part is slow if it stands out of the others' spread and by a share that
// matters.
//
//   usual = median of the others,  spread = max(1.4826 MAD of the others, 1 % of usual)
//   slow if |value - usual| >= 3.5 spread and >= 5 % of usual, in three or more alike
//   confidence = 1 - n P(t > |value - usual| / (spread sqrt(1 + 1 / (n - 1)))),  t with n - 2
//                degrees of freedom: the n - 1 others give usual and spread
// Source  median and MAD as estimators and 3.5 as the bound: Iglewicz & Hoaglin 1993, "How to
// detect
//         and handle outliers"; n: Bonferroni
//
// Left out: parts that are all slow alike (`orrery compare` with a prediction finds those), and a
// link inside a group whose collectives all wait for it: groups are compared, not their members.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scenarios/runback/profiled_rank.hpp"
#include "scenarios/runback/run_log.hpp"

namespace orrery::scenarios {

/// A benchmark's log as the importers read it.
struct BenchmarkLog {
  std::string file, tool;  // "perftest", "nccl-tests"
  std::string device{};    // perftest: the NIC
  std::set<std::string> hosts{};
  struct BenchmarkPoint {
    std::string quantity;  // "rdma_write", "all_reduce"
    std::int64_t bytes = 0, ranks = 0;
    std::optional<Time> time{};
    std::optional<Bandwidth> rate{};
  };
  std::vector<BenchmarkPoint> points{};
};

/// From what `calibrate::import_log` returns: a template, as this folder includes no importers.
template <class Imported>
BenchmarkLog benchmark_log(const Imported& log) {
  BenchmarkLog made{.file = log.file, .tool = std::string{log.format}};
  for (const auto& sample : log.samples) {
    const bool both_ways = sample.detail == "bandwidth_both_ways";
    BenchmarkLog::BenchmarkPoint point{
        .quantity = sample.quantity + (both_ways ? " both ways" : ""),
        .bytes = sample.size ? sample.size->count() : 0,
        .ranks = sample.ranks.value_or(0)};
    if (const auto* time = std::get_if<Time>(&sample.value)) point.time = *time;
    if (const auto* rate = std::get_if<Bandwidth>(&sample.value)) point.rate = *rate;
    if (point.time || point.rate) made.points.push_back(std::move(point));
    if (made.tool.starts_with("perftest")) made.device = sample.device;
  }
  const auto hosts = log.facts.find("hosts");
  if (hosts != log.facts.end()) {
    for (const auto& host : *hosts) made.hosts.insert(host.template get<std::string>());
  }
  return made;
}

/// All logs of one cluster, by kind.
struct DiagnosedLogs {
  std::vector<BenchmarkLog> benchmarks;
  std::vector<RunLog> steps;
  std::vector<ProfiledRank> ranks;
};

/// Reads traces and logs of steps.
/// Returns false for another file, which the caller's importers may know.
bool add_run_log(const std::string& file, const ProfileOptions& options, DiagnosedLogs& to);

struct SlowPart {
  std::string kind;   // "nic", "node", "link", "gpu", "rank", "host", "data", "group"
  std::string name;   // "mlx5_5", "rank 3"
  std::string what;   // that was compared: "rdma_write of 64 KiB"
  double factor = 1;  // times slower than usual; of time lost in a step: longer
  double confidence = 0;
  std::string value, usual;  // "98 Gb/s", "196 Gb/s"
  std::string evidence;      // what else shows it
  std::string files;
  std::string statement;  // of the part in a scenario's /perturbations; empty: none
};

/// Parts that were compared with each other.
struct ComparedGroup {
  std::string what;
  std::size_t parts = 0;
  std::string usual, slowest, slowest_name;
  double spread = 0;  // of usual
};

struct Diagnosis {
  std::vector<SlowPart> slow;  // surest first
  std::vector<ComparedGroup> groups;
  std::vector<std::string> notes;
  std::size_t files = 0;
};

/// Errors  nothing that could be compared: InputError
Diagnosis diagnose(const DiagnosedLogs& logs);

/// One value among others that should be like it.
struct Outlier {
  std::size_t index = 0;
  double usual = 0, spread = 0;  // of the others
  double distance = 0;           // in spreads
  double confidence = 0;
};
/// Values that are slow: the large ones, or with `rates` the small ones. `whole` is what a share
/// is of; 0: the usual value.
std::vector<Outlier> outliers_of(const std::vector<double>& values, bool rates, double whole = 0);

/// `slow[{kind, name, what, factor, confidence, value, usual, evidence, files, statement}],
/// groups[], notes[], anything_slow`.
Json to_json(const Diagnosis& found);
std::string text_of(const Diagnosis& found, int width, bool colour);

}  // namespace orrery::scenarios

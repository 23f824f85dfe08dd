#include "calibrate/import/nccl_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/errors.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::calibrate {

namespace {

struct NcclProgram {
  std::string_view prefix, operation;
};
constexpr NcclProgram programs[] = {
    {"all_reduce", "all_reduce"},
    {"all_gather", "all_gather"},
    {"allgather", "all_gather"},
    {"allreduce", "all_reduce"},
    {"reduce_scatter", "reduce_scatter"},
    {"reducescatter", "reduce_scatter"},
    {"alltoall", "all_to_all"},
    {"all_to_all", "all_to_all"},
    {"broadcast", "broadcast"},
    {"sendrecv", "send_receive"},
    {"reduce", "reduce"},
};

/// Bus bandwidth over algorithm bandwidth. Source  nccl-tests, doc/PERFORMANCE.md
double factor_of(std::string_view operation, double ranks) {
  if (operation == "all_reduce") return 2 * (ranks - 1) / ranks;
  const bool shared =
      operation == "all_gather" || operation == "reduce_scatter" || operation == "all_to_all";
  return shared ? (ranks - 1) / ranks : 1;
}

constexpr double printed = 0.005;  // half of the last of two decimals

}  // namespace

std::optional<std::string> nccl_operation(std::string_view program) {
  const std::size_t end = program.find("_perf");
  const std::string_view head = end == std::string_view::npos ? program : program.substr(0, end);
  const std::size_t slash = head.find_last_of("/ ");
  const std::string_view own = slash == std::string_view::npos ? head : head.substr(slash + 1);
  for (const NcclProgram& known : programs) {
    if (own == known.prefix) return std::string{known.operation};
  }
  return std::nullopt;
}

void RanksFromBandwidths::add(double algorithm, double bus) {
  if (algorithm < 1) return;  // two decimals of a smaller figure are too coarse
  lowest_ = std::max(lowest_, (bus - printed) / (algorithm + printed));
  highest_ = std::min(highest_, (bus + printed) / (algorithm - printed));
}

bool RanksFromBandwidths::allows(std::string_view operation, std::int64_t ranks) const {
  const double factor = factor_of(operation, static_cast<double>(ranks));
  return lowest_ <= factor && factor <= highest_;
}

std::optional<std::int64_t> RanksFromBandwidths::ranks(std::string_view operation) const {
  std::optional<std::int64_t> only;
  for (std::int64_t n = 2; n <= 4096; ++n) {
    if (!allows(operation, n)) continue;
    if (only) return std::nullopt;
    only = n;
  }
  return only;
}

std::optional<std::int64_t> NcclRun::nodes() const {
  if (!ranks || hosts.empty()) return std::nullopt;
  const auto listed = static_cast<std::int64_t>(rank_lines);
  // Elided lists show the first and the last rank of every host; a single line is not enough.
  const bool all_hosts = listed == *ranks || (highest_rank + 1 == *ranks && listed > 1);
  return all_hosts ? std::optional{static_cast<std::int64_t>(hosts.size())} : std::nullopt;
}

std::string NcclRun::device() const {
  return devices.size() == 1 ? *devices.begin() : std::string{};
}

std::string nccl_version(std::int64_t code) {
  if (code < 10000) return fmt::format("NCCL {}.{}.{}", code / 1000, code / 100 % 10, code % 100);
  return fmt::format("NCCL {}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

void finish_run(const NcclRun& run, const std::string& place, Imported& imported) {
  if (run.ranks == 1) {
    throw InputError{place, "a run of one rank moves nothing between ranks; expected two or more"};
  }
  if (!run.ranks)
    imported.notes.push_back(
        "the number of ranks is not stated and cannot be inferred from the bandwidths");
  for (Sample& sample : imported.samples) {
    sample.quantity = run.operation;
    sample.ranks = run.ranks;
    sample.nodes = run.nodes();
    sample.device = run.device();
    sample.software = run.version;
  }
  imported.facts["operation"] = run.operation;
  imported.facts["ranks"] = or_null(run.ranks);
  imported.facts["nodes"] = or_null(run.nodes());
  imported.facts["rank_lines"] = run.rank_lines;
}

}  // namespace orrery::calibrate

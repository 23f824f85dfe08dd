#include "calibrate/import/nccl_run.hpp"

#include <fmt/format.h>

#include "sim/errors.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::calibrate {

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
  imported.facts["hosts"] = run.hosts;
}

}  // namespace orrery::calibrate

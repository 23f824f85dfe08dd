#include "scenarios/fitting/collectives/collective_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using Rows = std::vector<const MeasuredCollective*>;

/// GPU families: within one, runs deviate from the cost model alike (repeats of one GPU differ as
/// much as different members).
std::string gpu_family(const MeasuredCollective& row) {
  if (row.gpu.rfind("a100-sxm", 0) == 0) return "a100-sxm";
  if (row.gpu.rfind("h100-sxm", 0) == 0 || row.gpu.rfind("h200-sxm", 0) == 0) return "hopper";
  if (row.gpu == "b200-sxm" || row.gpu == "b300-sxm" || row.gpu == "gb200" || row.gpu == "gb300") {
    return "blackwell";
  }
  return row.gpu;
}

/// Distance between a run and a row: smaller is nearer; nothing if they are not related.
std::optional<double> distance(const MeasuredCollective& run, const MeasuredCollective& row) {
  if (run.collective != row.collective) return std::nullopt;
  const bool same_machine = run.gpu == row.gpu && run.link == row.link;
  const bool same_ranks = run.gpus == row.gpus && run.domains() == row.domains();
  if (same_machine && same_ranks) {
    const int differences = (run.source != row.source && !row.source.empty() ? 1 : 0) +
                            (run.version != row.version ? 1 : 0) + (run.nic != row.nic ? 1 : 0) +
                            (run.algorithm != row.algorithm ? 2 : 0);
    return 0.1 * differences;
  }
  if (run.algorithm != row.algorithm) return std::nullopt;
  if (run.one_domain() && row.one_domain()) {
    return same_ranks && gpu_family(run) == gpu_family(row) ? std::optional{1.0} : std::nullopt;
  }
  const bool one_system = same_machine && system_of(run) == system_of(row);
  if (!one_system || run.one_domain() != row.one_domain()) return std::nullopt;
  return 2 + std::abs(std::log2(static_cast<double>(run.domains()) / row.domains()));
}

/// What decides how much a network's software costs: whether messages go through sockets of the
/// host, and the library, which is AMD's on its GPUs.
struct NetworkKind {
  bool sockets = false, rccl = false;

  /// How alike two are: the transport counts more than the library.
  int alike(const NetworkKind& other) const {
    return (sockets == other.sockets ? 2 : 0) + (rccl == other.rccl ? 1 : 0);
  }
};

NetworkKind kind_of(const MeasuredCollective& row) {
  return {.sockets = row.link.find("TCP") != std::string::npos,
          .rccl = row.gpu.starts_with("mi") || row.gpu.starts_with("MI")};
}

double log_size(const MeasuredCollective& row) {
  return std::log2(static_cast<double>(std::max<std::int64_t>(row.size.count(), 1)));
}

}  // namespace

CollectiveCurves::CollectiveCurves(std::vector<MeasuredCollective> rows) : rows_{std::move(rows)} {
  for (const MeasuredCollective& row : rows_) {
    known_.emplace(identity_of(row), curve_of(row));
    if (!row.usable() || !machine(row)) continue;
    runs_[run_of(row)].push_back(&row);
    systems_[system_of(row)].push_back(&row);
  }
  for (auto& [name, run] : runs_) {
    std::ranges::stable_sort(run, [](const auto* a, const auto* b) { return a->size < b->size; });
  }
}

const hardware::Cluster* CollectiveCurves::machine(const MeasuredCollective& row) {
  const std::string key = fmt::format("{}|{}|{}|{}", row.gpu, row.link, row.domains(), row.gpus);
  auto found = machines_.find(key);
  if (found == machines_.end()) found = machines_.emplace(key, machine_of(row)).first;
  return found->second ? &*found->second : nullptr;
}

bool CollectiveCurves::left_out(const MeasuredCollective& row, const std::string& what) {
  if (what.empty()) return false;
  if (what.rfind(gpu_mark, 0) == 0) return gpu_mark + row.gpu == what;
  return curve_of(row) == what;
}

std::vector<CollectiveSample> CollectiveCurves::samples_of(const std::string& system,
                                                           const std::string& without) {
  std::vector<CollectiveSample> samples;
  const auto found = systems_.find(system);
  if (found == systems_.end()) return samples;
  for (const MeasuredCollective* row : found->second) {
    if (!left_out(*row, without)) samples.push_back({row, machine(*row)});
  }
  return samples;
}

const CollectiveSystem& CollectiveCurves::system(const MeasuredCollective& row,
                                                 const std::string& without) {
  const std::string name = system_of(row);
  const std::string key = name + "||" + without;
  const auto found = fits_.find(key);
  if (found != fits_.end()) return found->second;
  const std::string domain_key = row.gpu + "||" + without;
  auto domain = fits_.find(domain_key);
  if (domain == fits_.end()) {
    domain = fits_.emplace(domain_key, fit_domain(samples_of(row.gpu, without))).first;
  }
  if (row.one_domain()) return domain->second;
  CollectiveSystem fabric = fit_fabric(samples_of(name, without), domain->second);
  if (!fabric.efficiency && !without.empty()) fabric = network_of_others(row, without, fabric);
  return fits_.emplace(key, fabric).first->second;
}

/// The geometric mean of the constants of those other networks that are most alike: the shipped
/// ones may be fitted to the very run that is left out.
CollectiveSystem CollectiveCurves::network_of_others(const MeasuredCollective& row,
                                                     const std::string& without,
                                                     CollectiveSystem domain) {
  const std::string own = system_of(row);
  const std::string kind = own.substr(own.rfind('|'));
  double network = 0, half_size = 0, growth = 0, efficiency = 0;
  int count = 0, nearest = 0;
  std::vector<std::pair<int, CollectiveSystem>> others;
  for (const auto& [name, rows] : systems_) {
    if (name == own || name.rfind(kind) == std::string::npos) continue;
    CollectiveSystem other = fit_fabric(samples_of(name, without), domain);
    if (!other.network || !other.efficiency) continue;
    others.emplace_back(kind_of(*rows.front()).alike(kind_of(row)), std::move(other));
    nearest = std::max(nearest, others.back().first);
  }
  for (const auto& [alike, other] : others) {
    if (alike < nearest) continue;
    network += std::log(*other.network);
    half_size += other.half_size ? std::log(*other.half_size) : 0;
    growth += other.growth ? std::log(*other.growth) : 0;
    efficiency += std::log(*other.efficiency);
    ++count;
  }
  if (count == 0) return domain;
  domain.network = std::exp(network / count);
  if (half_size != 0) domain.half_size = std::exp(half_size / count);
  if (growth != 0) domain.growth = std::exp(growth / count);
  domain.efficiency = std::exp(efficiency / count);
  domain.uses_fallback = true;
  return domain;
}

double CollectiveCurves::residual_of(const Rows& run, const MeasuredCollective& row,
                                     const std::string& without) {
  const auto miss = [&](const MeasuredCollective& at) {
    return std::log(*at.seconds / modelled({&at, machine(at)}, system(at, without)));
  };
  const auto after =
      std::ranges::find_if(run, [&](const auto* at) { return at->size >= row.size; });
  if (after == run.end()) return miss(*run.back());
  if (after == run.begin() || (*after)->size == row.size) return miss(**after);
  const MeasuredCollective& low = **(after - 1);
  const MeasuredCollective& high = **after;
  const double between = (log_size(row) - log_size(low)) / (log_size(high) - log_size(low));
  return miss(low) + between * (miss(high) - miss(low));
}

double CollectiveCurves::residual(const MeasuredCollective& row, const std::string& without) {
  double nearest = std::numeric_limits<double>::infinity();
  double sum = 0;
  int count = 0;
  for (const auto& [name, run] : runs_) {
    if (left_out(*run.front(), without)) continue;
    const auto far = distance(*run.front(), row);
    if (!far || *far > nearest) continue;
    if (*far < nearest) {
      nearest = *far;
      sum = 0;
      count = 0;
    }
    sum += residual_of(run, row, without);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

CollectiveAnswer CollectiveCurves::answer(const MeasuredCollective& row,
                                          const std::string& without) {
  const hardware::Cluster* cluster = machine(row);
  if (!cluster) {
    return {std::nullopt, Constants::catalogue, fmt::format("no machine for '{}'", row.gpu)};
  }
  const CollectiveSystem& constants = system(row, without);
  const double time = modelled({&row, cluster}, constants) * std::exp(residual(row, without));
  if (constants.uses_fallback) return {time, Constants::others, "by other networks' constants"};
  const bool fitted =
      row.one_domain() ? constants.base.has_value() : constants.efficiency.has_value();
  if (fitted) return {time, Constants::own, {}};
  return {time, Constants::catalogue, "by the catalogue's constants"};
}

CollectiveAnswer CollectiveCurves::unseen(const MeasuredCollective& row) {
  const auto known = known_.find(identity_of(row));
  return answer(row, known == known_.end() ? "" : known->second);
}

std::map<std::string, CollectiveCurves::System> CollectiveCurves::systems() {
  std::map<std::string, System> all;
  for (const auto& [name, rows] : systems_) {
    all[name] = {samples_of(name, ""), system(*rows.front(), "")};
  }
  return all;
}

}  // namespace orrery::scenarios

#include "calibrate/import/nccl_collective.hpp"

#include <algorithm>

namespace orrery::calibrate {

namespace {

/// Bus bandwidth over algorithm bandwidth of n ranks. Source  nccl-tests, doc/PERFORMANCE.md
enum class BusRatio : std::uint8_t { one, share, two_shares };  // 1, (n-1)/n, 2(n-1)/n

struct NcclCollective {
  std::string_view name;
  BusRatio ratio = BusRatio::one;
  bool reduces = false, rooted = false;
  bool checks_in_place = true;
  bool had_redop = false;       // its table had the column before 2.13, maybe blank
  bool one_before_2_9 = false;  // the ratio was 1: both bandwidths left out the rank's own part
};
constexpr NcclCollective collectives[] = {
    {.name = "all_gather", .ratio = BusRatio::share, .one_before_2_9 = true},
    {.name = "all_reduce", .ratio = BusRatio::two_shares, .reduces = true, .had_redop = true},
    {.name = "all_to_all", .ratio = BusRatio::share, .checks_in_place = false, .had_redop = true},
    {.name = "broadcast", .rooted = true},
    {.name = "gather", .ratio = BusRatio::share, .rooted = true},
    {.name = "hypercube"},
    {.name = "reduce", .reduces = true, .rooted = true, .had_redop = true},
    {.name = "reduce_scatter",
     .ratio = BusRatio::share,
     .reduces = true,
     .had_redop = true,
     .one_before_2_9 = true},
    {.name = "scatter", .ratio = BusRatio::share, .rooted = true},
    {.name = "send_receive", .reduces = true, .checks_in_place = false},
};

struct NcclProgram {
  std::string_view name, operation;
};
constexpr NcclProgram programs[] = {
    {"all_reduce", "all_reduce"},         {"all_gather", "all_gather"},
    {"allgather", "all_gather"},          {"allreduce", "all_reduce"},
    {"reduce_scatter", "reduce_scatter"}, {"reducescatter", "reduce_scatter"},
    {"alltoall", "all_to_all"},           {"all_to_all", "all_to_all"},
    {"broadcast", "broadcast"},           {"gather", "gather"},
    {"hypercube", "hypercube"},           {"scatter", "scatter"},
    {"sendrecv", "send_receive"},         {"reduce", "reduce"},
};

const NcclCollective* collective_named(std::string_view name) {
  if (name == "gather_or_scatter") name = "gather";  // they have the same ratio
  const auto* found = std::ranges::find(collectives, name, &NcclCollective::name);
  return found == std::end(collectives) ? nullptr : found;
}

double factor_of(std::string_view operation, double ranks) {
  const NcclCollective* known = collective_named(operation);
  const BusRatio ratio = known ? known->ratio : BusRatio::one;
  if (ratio == BusRatio::one) return 1;
  return (ratio == BusRatio::two_shares ? 2 : 1) * (ranks - 1) / ranks;
}

constexpr double printed = 0.005;  // half of the last of two decimals
constexpr std::int64_t most_ranks = 4096;

/// Whether a table of this collective has the columns and cells that this one has.
bool has_cells_of(const NcclCollective& each, const NcclTable& table) {
  const bool both = table.has_redop && table.has_root;
  const bool columns = each.had_redop == table.has_redop && each.rooted == table.has_root;
  // A send-receive names a reduction where all tables have the column.
  const bool reduces = each.reduces && (both || each.had_redop);
  return (both || columns) && reduces == table.reduces && each.rooted == table.rooted &&
         table.checks_in_place.value_or(each.checks_in_place) == each.checks_in_place;
}

}  // namespace

std::optional<std::string> nccl_operation(std::string_view program) {
  const std::size_t end = program.find("_perf");
  const std::string_view head = end == std::string_view::npos ? program : program.substr(0, end);
  const std::size_t slash = head.find_last_of("/ ");
  const std::string_view own = slash == std::string_view::npos ? head : head.substr(slash + 1);
  for (const NcclProgram& known : programs) {
    if (own == known.name) return std::string{known.operation};
  }
  return std::nullopt;
}

void RanksFromBandwidths::add(double algorithm, double bus) {
  if (algorithm < 20 * printed) return;  // two decimals of a smaller figure are too coarse
  lowest_ = std::max(lowest_, (bus - printed) / (algorithm + printed));
  highest_ = std::min(highest_, (bus + printed) / (algorithm - printed));
}

bool RanksFromBandwidths::allows(std::string_view operation, std::int64_t ranks) const {
  const double factor = factor_of(operation, static_cast<double>(ranks));
  return lowest_ <= factor && factor <= highest_;
}

bool RanksFromBandwidths::allows(std::string_view operation) const {
  constexpr std::int64_t told_from_one = 128;  // where two decimals of 1.50 end
  const NcclCollective* known = collective_named(operation);
  const bool near_one = known && known->ratio == BusRatio::share && equal();
  for (std::int64_t n = 2; n <= (near_one ? told_from_one : most_ranks); ++n) {
    if (allows(operation, n)) return true;
  }
  return false;
}

std::optional<std::int64_t> RanksFromBandwidths::ranks(std::string_view operation) const {
  std::optional<std::int64_t> only;
  for (std::int64_t n = 2; n <= most_ranks; ++n) {
    if (!allows(operation, n)) continue;
    if (only) return std::nullopt;
    only = n;
  }
  return only;
}

bool NcclTable::equal_of_old(std::string_view operation) const {
  const NcclCollective* known = collective_named(operation);
  const bool old = !has_redop || !has_root;
  return old && known && known->one_before_2_9 && bandwidths.equal();
}

std::vector<std::string> collectives_of(const NcclTable& table) {
  std::vector<std::string> found, of_listed;
  for (const NcclCollective& each : collectives) {
    const bool equal = table.equal_of_old(each.name);
    if (!has_cells_of(each, table) || !(equal || table.bandwidths.allows(each.name))) continue;
    found.emplace_back(each.name);
    if (equal || (table.ranks && table.bandwidths.allows(each.name, *table.ranks))) {
      of_listed.emplace_back(each.name);
    }
  }
  return table.ranks && !of_listed.empty() ? of_listed : found;
}

}  // namespace orrery::calibrate

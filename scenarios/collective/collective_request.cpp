#include "scenarios/collective/collective_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "models/network/collectives/nccl_settings.hpp"
#include "scenarios/collective/collective_sizes.hpp"
#include "scenarios/collective/explain_measured.hpp"
#include "scenarios/scenario/network_request.hpp"
#include "scenarios/search/query.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using models::Collective;
using models::CollectiveTime;
using models::TrafficPattern;

template <class Enum, std::size_t n>
Enum word_flag(const char* flag, const Words<Enum, n>& words, const std::string& text) {
  if (const auto value = value_of(words, text)) return *value;
  throw InputError{
      flag, fmt::format("expected one of {}, found '{}'", listed(words), printable(text, 60))};
}

/// Ranks fill nodes in order; a send/receive joins two ranks, on different nodes if ranks span
/// nodes.
models::GroupShape group_of(Collective operation, const hardware::Cluster& cluster,
                            std::int64_t ranks) {
  if (ranks < 2 || ranks > cluster.gpus()) {
    throw InputError{"--ranks", fmt::format("expected 2 to {}, found {}", cluster.gpus(), ranks)};
  }
  const int n = static_cast<int>(ranks), gpus = cluster.node.gpus;
  const bool spans = n > gpus;
  if (operation == Collective::send_receive) {
    return {.ranks = 2, .nodes = spans ? 2 : 1, .ranks_per_node = spans ? 1 : 2};
  }
  const int nodes = (n + gpus - 1) / gpus;
  return {.ranks = n, .nodes = nodes, .ranks_per_node = n - (nodes - 1) * gpus};
}

models::CollectivePricing pricing_of(const CollectiveRequest& request, NetworkForm network) {
  models::CollectivePricing pricing;
  if (!request.algorithm.empty()) {
    if (!models::builtin_algorithms().has(request.algorithm)) {
      throw InputError{"--algo", fmt::format("expected one of {}, found '{}'",
                                             listed(models::builtin_algorithms().names()),
                                             printable(request.algorithm, 60))};
    }
    pricing.choice.algorithm = request.algorithm;
  }
  if (!request.protocol.empty()) {
    pricing.choice.protocol = word_flag("--proto", models::protocol_words, request.protocol);
  }
  pricing.choice.channels = request.channels;
  if (network != NetworkForm::fixed) pricing.sharing = models::LinkSharing::alone;
  return pricing;
}

/// Does NCCL's tuner choose?
/// Errors  another choice than fastest or nccl, fastest next to an environment: InputError
bool tuner_chooses(const CollectiveRequest& request) {
  if (!request.choice) return !request.environment.empty();
  if (*request.choice != "fastest" && *request.choice != "nccl") {
    throw InputError{"--choice", fmt::format("expected fastest or nccl, found '{}'",
                                             printable(*request.choice, 60))};
  }
  const bool fastest = *request.choice == "fastest";
  if (fastest && !request.environment.empty()) {
    throw InputError{"--choice",
                     "expected nccl, whose environment is stated with --env, found "
                     "'fastest'"};
  }
  return !fastest;
}

/// The settings of NCCL's tuner if it chooses, else nothing.
std::optional<models::NcclSettings> tuned(const CollectiveRequest& request) {
  if (!tuner_chooses(request)) return std::nullopt;
  return nccl_settings_of(request.environment, "--env");
}

/// Whether the collective's traffic pattern can be placed on links as flows (--network events).
bool has_flow_pattern(const CollectiveTime& price) {
  return price.pattern != TrafficPattern::tree && price.pattern != TrafficPattern::star;
}

/// Prices and, with --network events or steps, runs one call per size.
class CollectivePricer {
 public:
  CollectivePricer(const CollectiveReport& asked, const hardware::Cluster& cluster,
                   const models::CollectivePricing& pricing, const std::vector<Bytes>& counts,
                   std::optional<models::NcclSettings> tuner)
      : asked_{asked},
        cluster_{cluster},
        pricing_{pricing},
        counts_{counts},
        tuner_{std::move(tuner)} {
    if (tuner_) pricing_.nccl = &*tuner_;
  }
  CollectivePricer(const CollectivePricer&) = delete;
  CollectivePricer& operator=(const CollectivePricer&) = delete;

  CollectiveRow row(Bytes size) {
    CollectiveRow row{.size = size};
    row.price = priced(size);
    if (asked_.network == NetworkForm::fixed || row.price.time == Time{}) return row;
    const models::NetworkCall call{.collective = asked_.operation,
                                   .size = size,
                                   .group = asked_.group,
                                   .cluster = cluster_,
                                   .algorithm = row.price.algorithm,
                                   .counts = counts_};
    row.run = asked_.network == NetworkForm::steps ? models::run_steps(call)
                                                   : models::run_as_flows(call, row.price);
    row.price.time = row.run->time;
    return row;
  }

 private:
  /// Whether a flag or NCCL's tuner chooses the algorithm of this size, not its modelled time.
  bool is_chosen(Bytes size) const {
    if (!pricing_.nccl) return !pricing_.choice.algorithm.empty();
    const CollectiveTime one = price(size);
    return one.limited_by != "measured" && !one.algorithm.empty();
  }
  CollectiveTime price(Bytes size) const {
    return models::price(asked_.operation, size, asked_.group, cluster_, pricing_);
  }

  /// Unless an algorithm is chosen: the fastest of those that this form of the network simulates.
  CollectiveTime priced(Bytes size) const {
    if (asked_.network == NetworkForm::fixed) return price(size);
    const CollectiveTime first = is_chosen(size) ? price(size) : fastest_known(size);
    if (asked_.network == NetworkForm::events && !has_flow_pattern(first)) {
      throw InputError{"--network",
                       fmt::format("--network events cannot simulate {}; accepted: static{}",
                                   first.algorithm, in_steps(first) ? ", steps" : "")};
    }
    return first;
  }

  CollectiveTime fastest_known(Bytes size) const {
    auto times = models::candidates(asked_.operation, size, asked_.group, cluster_, pricing_);
    std::erase_if(times, [&](const CollectiveTime& one) {
      return size > Bytes{} &&
             !(asked_.network == NetworkForm::steps ? in_steps(one) : has_flow_pattern(one));
    });
    if (times.empty()) return price(size);
    return *std::ranges::min_element(times, {}, &models::CollectiveTime::time);
  }

  static bool in_steps(const CollectiveTime& one) {
    const auto known = models::algorithms_in_steps();
    return std::ranges::find(known, one.algorithm) != known.end();
  }

  const CollectiveReport& asked_;
  const hardware::Cluster& cluster_;
  models::CollectivePricing pricing_;
  const std::vector<Bytes>& counts_;
  std::optional<models::NcclSettings> tuner_;
};

void note(const CollectiveRequest& request, CollectiveReport& answer) {
  if (!request.ranks) {
    answer.assumptions.push_back(fmt::format("--ranks: all {} GPUs", answer.group.ranks));
  }
  if (tuner_chooses(request)) {
    answer.assumptions.push_back(
        "algorithm and protocol: those that NCCL 2.30's tuner chooses, except for measured times; "
        "other times are from the cost models");
  }
  const bool flows = answer.network == NetworkForm::events && !answer.rows.empty() &&
                     answer.rows.front().price.flows > 0;
  if (flows) {
    answer.assumptions.push_back(
        fmt::format("flows per NIC or pair: {}, one per NCCL channel, each with its own queue pair",
                    answer.rows.front().price.flows));
  }
  if (answer.network == NetworkForm::steps) {
    answer.assumptions.push_back(
        "steps: pipeline ramp-up and copies inside a GPU are not simulated");
  }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

CollectiveReport answer(const CollectiveRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  CollectiveReport found{.cluster = request.cluster};
  found.operation = word_flag("--op", models::collective_words, request.operation);
  found.network = word_flag("--network", network_form_words, request.network);
  const hardware::Cluster cluster = read_cluster_flag(request.cluster);
  found.group = group_of(found.operation, cluster, request.ranks.value_or(cluster.gpus()));
  const models::CollectivePricing pricing = pricing_of(request, found.network);
  const PairCounts counts = read_counts(request.counts, found.operation, found.group.ranks);
  const std::vector<Bytes> sizes =
      counts.bytes.empty() ? sizes_of(request, found.operation) : std::vector{counts.busiest};
  found.load_seconds = seconds_since(begin);

  const auto simulation = std::chrono::steady_clock::now();
  CollectivePricer pricer{found, cluster, pricing, counts.bytes, tuned(request)};
  for (const Bytes size : sizes) found.rows.push_back(pricer.row(size));
  found.simulate_seconds = seconds_since(simulation);
  if (!request.against.empty()) explain_measured(request.against, cluster, found);
  note(request, found);
  return found;
}

}  // namespace orrery::scenarios

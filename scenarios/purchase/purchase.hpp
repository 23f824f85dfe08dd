#pragma once
// The survey of clusters to rent or to own: for every node type at several sizes, the best plan of
// a reduced list, and the days and dollars that a number of tokens takes with it, as ranges with
// failures and restarts (whole_run/). A cluster's price is that of `orrery simulate`, of another
// term, or quoted; without one there are days alone. Leaves out waiting for capacity.

#include <optional>
#include <string>
#include <vector>

#include "hardware/prices/rental.hpp"
#include "scenarios/purchase/purchase_price.hpp"
#include "scenarios/search/plan_search.hpp"
#include "scenarios/whole_run/whole_run.hpp"

namespace orrery::scenarios {

/// A node type to look at.
struct SoughtNode {
  std::string name;        // catalogue name, or the path of a file
  Json cluster;            // one of its nodes, or more, as a cluster file states them
  bool every_size = true;  // also numbers of nodes that no offer rents together
  Payment payment{};
  std::vector<Quote> quotes{};

  /// The cluster of as many nodes as a file would state it.
  Json stated(int nodes) const;
  /// It read, with its price. Errors: InputError
  hardware::Cluster of_nodes(int nodes) const;
};

/// Nodes in several places, equally many in each, and the network between them.
struct Zones {
  std::int64_t zones = 2;
  BetweenPools between{};
};
/// `{"zones": 2, "bandwidth": "100 Gb/s", ...}`: the members of /run/between, and how many zones.
/// Errors  `--between:/POINTER: PROBLEM`
Zones read_zones_flag(const std::string& text);

struct PurchaseQuery {
  PlanQuery plan;  // searched on each cluster; states neither that nor the breadth
  double tokens = 0;
  std::optional<double> deadline_days;
  std::optional<Money> budget;
  /// With which days and dollars keep the limits, failures and restarts included. Nothing: steps
  /// after each other, never interrupted.
  std::optional<double> confidence;
  std::vector<std::int64_t> gpus;  // sizes; empty: sizes_of each node type
  std::optional<Zones> zones;      // nothing: in one place
  std::vector<SoughtNode> nodes;
};

/// A cluster with a plan that fits.
struct PurchaseChoice {
  std::string node;
  std::optional<hardware::ClusterPrice> price;
  std::vector<std::string> also;  // other node types with the same days and dollars
  int nodes = 1;
  int gpus = 1;               // paid for
  Candidate plan;             // the fastest; fits tightly only if none fits well
  double days = 0;            // of the whole run: half of all cases
  std::optional<Money> cost;  // nothing: no price is known; half of all cases
  std::optional<RunRange> day_range{}, cost_range{};  // of the whole run
  double limit_days = 0;                              // kept with the confidence asked for
  std::optional<Money> limit_cost{};
  Money transfer{};                  // of the cost, for what crosses from zone to zone
  double transfer_gb = 0;            // ... its gigabytes
  bool meets = false;                // deadline and budget
  bool pareto = false;               // no other choice at such a price is faster and cheaper
  std::vector<std::string> taken{};  // recipe settings, as assumptions
  std::optional<models::DataAnswer> lane{};  // of its input, where data is stated
  std::vector<std::string> data_assumptions{};

  /// GPUs that are paid for but idle: a batch that is a power of two divides over 64 of the 72 GPUs
  /// of a rack.
  std::int64_t idle() const { return gpus - plan.placed.plan.gpus(); }
  double gpu_hours() const { return days * 24 * gpus; }
  /// What is known of its price: 0 that of such a cluster, 1 that of smaller pieces, 2 nothing.
  int price_rank() const { return !price ? 2 : price->indicative() ? 1 : 0; }
  bool tight() const { return plan.estimate.fit == models::Fit::tight; }
};

/// A cluster without a choice, and why: the model does not fit, a limit is missed even at peak, or
/// no offer covers its size.
struct Impossible {
  std::string node;
  int nodes = 1;
  std::string reason;
  bool rented = true;  // an offer covers as many nodes
};

struct PurchaseAnswer {
  /// Choices that meet deadline and budget come first; among those and among the others, those at a
  /// price of such clusters before those at one of smaller pieces and those without a price, and
  /// tight fits last. Then the cheapest first, or with a budget and no deadline the fastest; among
  /// choices that miss a limit, those that miss it by the smallest factor. A choice without a price
  /// meets no budget.
  std::vector<PurchaseChoice> choices;
  /// In the order of nodes and sizes; those without an offer last.
  std::vector<Impossible> impossible;
  bool stopped = false;    // before every cluster was searched
  std::int64_t plans = 0;  // estimated or set aside

  std::int64_t meeting() const;
};

/// Whole nodes of a type that hold so many GPUs.
inline std::int64_t nodes_for(std::int64_t gpus, const hardware::NodeType& node) {
  return (gpus + node.gpus - 1) / node.gpus;
}

/// The sizes asked for that are no whole number of nodes of some of the node types, each with the
/// GPUs of the whole nodes that are looked at instead, of each such type: "63: 64 GPUs of
/// dgx-h100". Empty: every size is met.
std::vector<std::string> sizes_rounded_up(const PurchaseQuery& query);

/// The sizes tried of a node type: powers of two of nodes, up to `most_gpus_rented` GPUs.
std::vector<int> sizes_of(const hardware::NodeType& node);
inline constexpr int most_gpus_rented = 8192;

/// Searches each node type and size; the result does not depend on the number of
/// threads. A cluster that would miss deadline or budget even at its GPUs' dense peak is searched
/// only if no other meets them, to find the closest offers.
PurchaseAnswer search_purchases(const PurchaseQuery& query, const Workers& workers);

}  // namespace orrery::scenarios

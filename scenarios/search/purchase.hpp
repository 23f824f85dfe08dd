#pragma once
// Which cluster? Every node type that rents, at several sizes, with the best plan of a reduced
// list: how many days and dollars a number of tokens takes there. Leaves out owning, failures,
// restarts, checkpoints, spot and reserved prices, and waiting for capacity.

#include <optional>
#include <string>
#include <vector>

#include "hardware/rental.hpp"
#include "scenarios/search/plan_search.hpp"

namespace orrery::scenarios {

using hardware::Rental;

struct PurchaseQuery {
  models::Model model;
  models::Software software;
  double tokens = 0;
  std::int64_t global_batch = 0;
  std::int64_t seq_len = 0;
  models::Precision precision = models::Precision::bf16;
  std::optional<Time> deadline;
  std::optional<Money> budget;
  std::vector<Rental> rentals;  // the node types to look at, one type's next to each other
  double headroom = models::usual_headroom();
};

/// A cluster on which the model trains.
struct PurchaseChoice {
  Rental rental;
  std::vector<std::string> also;  // other node types with the same days and dollars
  int nodes = 1;
  int gpus = 1;    // paid for
  Candidate plan;  // its fastest; one that fits tightly only where no other fits
  double days = 0;
  Money cost{};
  bool meets = false;                // deadline and budget
  bool pareto = false;               // of all choices none is both faster and cheaper
  std::vector<std::string> taken{};  // of recipes, as assumptions

  /// GPUs that are paid for and have nothing to do: a batch that is a power of two is shared out
  /// over 64 of the 72 GPUs of a rack.
  std::int64_t idle() const { return gpus - plan.placed.plan.gpus(); }
  bool tight() const { return plan.estimate.fit == models::Fit::tight; }
};

/// A cluster on which it does not, or would not in time or for the money, and why.
struct Impossible {
  std::string node;
  int nodes = 1;
  std::string reason;
  bool rented = true;  // an offer rents as many together
};

struct PurchaseAnswer {
  /// Those that meet deadline and budget first, and of those as of the others the ones that fit
  /// tightly last. Then the cheapest first, or where there is a budget and no deadline the fastest;
  /// among those that miss a limit the ones that miss by the smallest factor.
  std::vector<PurchaseChoice> choices;
  /// In the order of rentals and sizes, those without an offer last.
  std::vector<Impossible> impossible;
  bool stopped = false;    // before every cluster was looked at
  std::int64_t plans = 0;  // estimated or set aside

  std::int64_t meeting() const;
};

/// Sizes of a node type that are tried: powers of two of nodes, up to `most_gpus_rented` GPUs.
std::vector<int> sizes_of(const hardware::Cluster& one_node);
inline constexpr int most_gpus_rented = 8192;

/// Looks at each node type and size that is rented; the same answer for any number of threads. A
/// cluster that would miss deadline or budget even at the dense peak of its GPUs is searched only
/// where no other meets them, for the closest offers.
PurchaseAnswer search_purchases(const PurchaseQuery& query, const Workers& workers);

}  // namespace orrery::scenarios

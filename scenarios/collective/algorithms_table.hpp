#pragma once
// Which algorithms implement which collective: the table that `orrery show collectives` prints,
// made from the registry of algorithms.

#include <string>
#include <vector>

#include "models/network/collectives/collective.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// The algorithms of one collective on a cluster whose switches all reduce: those chosen among by
/// default, and those that run only if named.
struct Performers {
  models::Collective collective{};
  std::vector<std::string> one_domain{}, across_nodes{}, named{};
};

struct AlgorithmsTable {
  std::vector<Performers> rows;  // every collective, as `collective_words` orders them

  std::string text(bool colour) const;
  Json json() const;
};

AlgorithmsTable algorithms_table(
    const Registry<models::CollectiveAlgorithm>& known = models::builtin_algorithms());

}  // namespace orrery::scenarios

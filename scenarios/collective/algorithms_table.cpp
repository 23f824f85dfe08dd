#include "scenarios/collective/algorithms_table.hpp"

#include <fmt/format.h>

#include "hardware/catalogue.hpp"
#include "scenarios/report/style.hpp"

namespace orrery::scenarios {

namespace {

using models::Collective;

models::GroupShape domain_of(Collective kind) {
  const int ranks = kind == Collective::send_receive ? 2 : 8;
  return {.ranks = ranks, .ranks_per_node = ranks};
}

models::GroupShape nodes_of(Collective kind) {
  if (kind == Collective::send_receive) return {.ranks = 2, .nodes = 2};
  return {.ranks = 16, .nodes = 2, .ranks_per_node = 8};
}

/// A group with one rank on each node, which some algorithms require.
models::GroupShape alone_on_nodes() {
  return {.ranks = 4, .nodes = 4, .groups_per_node = 8};
}

Performers performers(Collective kind, const hardware::Cluster& cluster,
                      const Registry<models::CollectiveAlgorithm>& known) {
  Performers found{.collective = kind};
  for (const auto& [name, algorithm] : known) {
    const auto runs = [&, &name = name](const models::GroupShape& group) {
      const models::CollectivePricing pricing{.choice = {.algorithm = name}, .algorithms = &known};
      return !models::candidates(kind, Bytes{1 << 20}, group, cluster, pricing).empty();
    };
    const bool inside = runs(domain_of(kind));
    const bool across =
        runs(nodes_of(kind)) || (kind != Collective::send_receive && runs(alone_on_nodes()));
    if (algorithm.use == models::AlgorithmUse::named) {
      if (inside || across) found.named.push_back(name);
      continue;
    }
    if (inside) found.one_domain.push_back(name);
    if (across) found.across_nodes.push_back(name);
  }
  return found;
}

}  // namespace

AlgorithmsTable algorithms_table(const Registry<models::CollectiveAlgorithm>& known) {
  hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 4");
  cluster.fabric.switch_reduces = true;
  AlgorithmsTable table;
  for (const auto& [kind, word] : models::collective_words) {
    table.rows.push_back(performers(kind, cluster, known));
  }
  return table;
}

std::string AlgorithmsTable::text(bool colour) const {
  TextTable table{{"<collective", "bus bandwidth, 8 ranks", "<one domain", "<across nodes",
                   "<only with --algo"}};
  for (const Performers& each : rows) {
    table.add({std::string{models::name(each.collective)},
               fmt::format("{:.3g} x size / time", models::bus_factor(each.collective, 8)),
               listed(each.one_domain), listed(each.across_nodes), listed(each.named)});
  }
  return table.text(colour);
}

Json AlgorithmsTable::json() const {
  Json list = Json::array();
  for (const Performers& each : rows) {
    list.push_back({{"name", models::name(each.collective)},
                    {"one_domain", each.one_domain},
                    {"across_nodes", each.across_nodes},
                    {"where_named", each.named}});
  }
  return list;
}

}  // namespace orrery::scenarios

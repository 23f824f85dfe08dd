#include "scenarios/collective/algorithms_table.hpp"

#include <catch2/catch.hpp>

#include "models/network/collectives/terms.hpp"

namespace orrery::scenarios {
namespace {

std::vector<models::CollectiveTime> instant(const models::collectives::CostCall& call) {
  return {models::collectives::finish(call, {.latency = 1e-12}, std::nullopt)};
}

}  // namespace

TEST_CASE("The collectives are shown with every algorithm of the table, one from outside too") {
  auto known = models::builtin_algorithms();
  known.add("instant", {.times = instant,
                        .operations = {models::Collective::all_reduce},
                        .use = models::AlgorithmUse::named,
                        .paper = "none"});
  const AlgorithmsTable table = algorithms_table(known);
  REQUIRE(table.rows.size() == models::collective_words.size());
  const Performers& all_reduce = table.rows.front();
  CHECK(all_reduce.one_domain == std::vector<std::string>{"tree", "ring", "nvls"});
  CHECK(all_reduce.across_nodes ==
        std::vector<std::string>{"nvls_tree", "tree", "ring", "collnet"});
  CHECK(all_reduce.named.back() == "instant");
  CHECK(table.text(false).find("instant") != std::string::npos);
  CHECK(table.json()[0]["where_named"].back() == "instant");
}

}  // namespace orrery::scenarios

#include <catch2/catch.hpp>
#include <cmath>

#include "hardware/catalogue.hpp"
#include "models/network/collectives/collective.hpp"

namespace orrery::models {
namespace {

CollectiveTime dispatch(const TokenCopies& copies, Bytes size, int nodes = 2) {
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 8");
  const GroupShape group{.ranks = 8 * nodes, .nodes = nodes, .ranks_per_node = 8};
  return price(Collective::all_to_all, size, group, cluster,
               {.choice = {.algorithm = "deduplicating"}, .copies = copies});
}

TEST_CASE("A token goes once to each node that has any of its experts") {
  // Two nodes, 8 copies: the other node has none of a token's experts with 1/256, so that of
  // 800 MB, 100 MB of tokens, 99.6 MB leave each GPU at 0.86 of its 50 GB/s NIC: 2.317 ms.
  const CollectiveTime all = dispatch({8}, 800_MB);
  CHECK(all.limited_by == "network");
  CHECK(seconds(all.links.nic) == Approx(0.1e9 * (1 - 1.0 / 256) / (0.86 * 50e9)).epsilon(1e-6));
}

TEST_CASE("One copy of a token is the row itself") {
  // Half of all rows stay on their node.
  CHECK(seconds(dispatch({1}, 800_MB).links.nic) == Approx(0.4e9 / (0.86 * 50e9)).epsilon(1e-6));
}

TEST_CASE("A token whose experts are in half of the groups reaches fewer nodes") {
  // DeepSeek-V3 on 8 nodes, one of its 8 groups on each: a node is among the 4 kept with 1/2, and
  // then has any of the 8 experts with 1 - (3/4)^8.
  const double limited = 7 * 0.5 * (1 - std::pow(0.75, 8));
  const double nic = 0.86 * 50e9, token = 0.1e9;
  CHECK(seconds(dispatch({8, 8, 4}, 800_MB, 8).links.nic) ==
        Approx(token * limited / nic).epsilon(1e-6));
  CHECK(seconds(dispatch({8}, 800_MB, 8).links.nic) ==
        Approx(token * 7 * (1 - std::pow(0.875, 8)) / nic).epsilon(1e-6));
  // 4 nodes of two groups: both, one or none of them kept with 3/14, 8/14, 3/14.
  const double two = 1 - std::pow(0.5, 8), one = 1 - std::pow(0.75, 8);
  CHECK(seconds(dispatch({8, 8, 4}, 800_MB, 4).links.nic) ==
        Approx(token * 3 * (3 * two + 8 * one) / 14 / nic).epsilon(1e-6));
  // 3 nodes of 8 groups, two of them with three: none of three is kept with 5/70, of two 15/70.
  // A kept group that is alone has none of the 8 experts with (3/4)^8, two with (1/2)^8, three with
  // (1/4)^8.
  const double three = 1 - std::pow(0.25, 8);
  const double of_three = (30 * one + 30 * two + 5 * three) / 70;
  const double of_two = (40 * one + 15 * two) / 70;
  CHECK(seconds(dispatch({8, 8, 4}, 800_MB, 3).links.nic) ==
        Approx(token * 2 * (2 * of_three + of_two) / 3 / nic).epsilon(1e-6));
  // 8 nodes, two for each of 4 groups: the 2 kept groups are on 4 of them.
  CHECK(seconds(dispatch({8, 4, 2}, 800_MB, 8).links.nic) ==
        Approx(token * limited / nic).epsilon(1e-6));
}

}  // namespace
}  // namespace orrery::models

#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"
#include "models/network/collectives/collective.hpp"

namespace orrery::models {
namespace {

CollectiveTime dispatch(int copies, Bytes size) {
  const hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x 2");
  const GroupShape group{.ranks = 16, .nodes = 2, .ranks_per_node = 8};
  return price(Collective::all_to_all, size, group, cluster,
               {.choice = {.algorithm = "deduplicating"}, .copies = copies});
}

TEST_CASE("A token goes once to each node that has any of its experts") {
  // Two nodes, 8 copies: the other node has none of a token's experts with 1/256, so that of
  // 800 MB, 100 MB of tokens, 99.6 MB leave each GPU at 0.86 of its 50 GB/s NIC: 2.317 ms.
  const CollectiveTime all = dispatch(8, 800_MB);
  CHECK(all.limited_by == "network");
  CHECK(seconds(all.links.nic) == Approx(0.1e9 * (1 - 1.0 / 256) / (0.86 * 50e9)).epsilon(1e-6));
}

TEST_CASE("One copy of a token is the row itself") {
  // Half of all rows stay on their node.
  CHECK(seconds(dispatch(1, 800_MB).links.nic) == Approx(0.4e9 / (0.86 * 50e9)).epsilon(1e-6));
}

}  // namespace
}  // namespace orrery::models

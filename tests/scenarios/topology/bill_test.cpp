// The switches and cables of a cluster, counted.

#include <catch2/catch.hpp>

#include <map>
#include <random>

#include "hardware/catalogue.hpp"
#include "scenarios/topology/bill.hpp"

namespace orrery::scenarios {
namespace {

FabricBill bill_for(const std::string& cluster) {
  return bill_of(hardware::named_cluster(cluster));
}

/// Switches by kind.
std::map<std::string, int> switches(const FabricBill& bill) {
  std::map<std::string, int> counts;
  for (const BillSwitch& each : bill.switches) ++counts[each.kind];
  return counts;
}

/// Cables by the kind of their lower end.
std::map<std::string, int> cables(const FabricBill& bill) {
  std::map<std::string, int> counts;
  for (const BillCable& each : bill.cables) {
    counts[each.nic ? "nic" : bill.switches[each.from].kind] += each.count;
  }
  return counts;
}

using Counts = std::map<std::string, int>;

TEST_CASE("Sixteen DGX H100 need 128 NIC cables, as many up, and two spines") {
  // 64 ports: 32 down, which two rails of 16 nodes fill. 128 cables up fill two spines.
  const FabricBill small = bill_for("dgx-h100 x 16");
  CHECK(cables(small) == Counts{{"nic", 128}, {"leaf", 128}});
  CHECK(switches(small) == Counts{{"leaf", 4}, {"spine", 2}});
  // Two full units of 32 nodes: a leaf for each of 8 rails, 512 cables up.
  // NVIDIA's reference design for 2 units of 32 has 16 leaves and 8 spines as well.
  const FabricBill two = bill_for("dgx-h100 x 64");
  CHECK(cables(two) == Counts{{"nic", 512}, {"leaf", 512}});
  CHECK(switches(two) == Counts{{"leaf", 16}, {"spine", 8}});
  for (const BillCable& each : two.cables) CHECK((each.nic || each.count == 4));  // trunks
}

TEST_CASE("Four racks of 72 need 288 NIC cables, and rails of four nodes share leaves") {
  // Eight rails of four nodes fill the 32 ports down of a leaf; 288 cables up need 4.5 spines.
  const FabricBill racks = bill_for("gb200-nvl72 x 4");
  CHECK(cables(racks) == Counts{{"nic", 288}, {"leaf", 288}});
  CHECK(switches(racks) == Counts{{"leaf", 9}, {"spine", 5}});
}

TEST_CASE("Cores join pods by trunks, as many as their ports require") {
  // 40 ports. Seven units of 20 nodes, the last of 8: of its 8 rails two share a leaf. Pods of 24
  // leaves: 480, 480 and 64 cables up; a spine takes 20. 1,024 cables up again, to cores of 40.
  const FabricBill large = bill_for("dgx-a100-80gb x 128");
  CHECK(cables(large) == Counts{{"nic", 1024}, {"leaf", 1024}, {"spine", 1024}});
  CHECK(switches(large) == Counts{{"leaf", 48 + 4}, {"spine", 24 + 24 + 4}, {"core", 26}});
  // One pod has no cores, and its spines have all their ports down.
  CHECK(switches(bill_for("dgx-a100-80gb x 40")) == Counts{{"leaf", 16}, {"spine", 8}});
}

TEST_CASE("One leaf with room for all NICs needs no spine") {
  CHECK(switches(bill_for("dgx-h100 x 4")) == Counts{{"leaf", 1}});
  CHECK(switches(bill_for("dgx-h100 x 1")) == Counts{{"leaf", 1}});
}

TEST_CASE("A dragonfly of one group has the routers that its nodes need") {
  // 16 NICs of four nodes at each of ten routers, each with a cable to each of the other nine.
  const FabricBill bill = bill_for("mi250x-4x x 40");
  CHECK(cables(bill) == Counts{{"nic", 160}, {"router", 45}});
  CHECK(switches(bill) == Counts{{"router", 10}});
}

TEST_CASE("Every NIC has one cable, and no switch more cables than ports") {
  std::mt19937_64 random{1};
  for (const std::string& node : hardware::Catalogue::nodes()) {
    for (int tries = 0; tries < 6; ++tries) {
      const int nodes = tries == 0 ? 2 : 1 + static_cast<int>(random() % (tries < 4 ? 40 : 300));
      hardware::Cluster cluster = hardware::named_cluster(node + " x " + std::to_string(nodes));
      if (cluster.node.nics == 0 || cluster.fabric.kind == hardware::FabricKind::none) continue;
      if (tries % 2 == 1 && hardware::is_tree(cluster.fabric.kind)) {
        cluster.fabric.oversubscription = 1 + static_cast<double>(random() % 8);
      }
      INFO(node << " x " << nodes << ", oversubscribed " << cluster.fabric.oversubscription);
      const FabricBill bill = bill_of(cluster);
      std::vector<int> seen(static_cast<std::size_t>(nodes * cluster.node.nics), 0);
      std::vector<double> used(bill.switches.size(), 0);
      int up = 0, down = 0;
      for (const BillCable& each : bill.cables) {
        CHECK(each.count >= 1);
        // A port carries two NICs of half its rate.
        const double ports = each.count * each.rate.count() /
                             std::max(each.rate.count(), cluster.fabric.leaf.bandwidth.count());
        used[each.to] += bill.radix > 0 ? ports : each.count;
        if (each.nic) {
          ++seen.at(*each.nic);
          ++down;
        } else {
          used[each.from] += bill.radix > 0 ? ports : each.count;
          up += bill.switches[each.from].kind == "leaf" ? each.count : 0;
        }
      }
      for (const int cables : seen) CHECK(cables == 1);
      for (std::size_t i = 0; i < used.size(); ++i) {
        CHECK(used[i] > 0);
        if (bill.radix > 0) CHECK(used[i] <= bill.radix + 1e-9);
      }
      // With cables of a NIC's rate up, bandwidth up is the NICs' over the oversubscription.
      if (bill.radix > 0 && up > 0 && hardware::is_tree(cluster.fabric.kind)) {
        const double wide =
            std::max(cluster.nic_bandwidth().count(), cluster.fabric.leaf.bandwidth.count());
        const double split = std::max(1.0, std::floor(wide / cluster.nic_bandwidth().count()));
        CHECK(up * split * cluster.fabric.oversubscription >= down - 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace orrery::scenarios

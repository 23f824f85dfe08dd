#pragma once
// The switches and cables that a cluster's own nodes need, as a buyer counts them: a leaf has a
// cable up for every NIC's worth of bandwidth that its own NICs leave to the fabric, spines and
// cores are as many as their ports require, and several cables between two switches are a trunk.
//
// The simulated graph (models/network/fabric) routes over the same cables, but has one spine for
// each cable up from a full leaf: there a trunk to one spine is as many spines with a cable each,
// and the ports of a leaf that no node uses have their cables up as well.
//
// A leaf takes whole nodes, or on rails the NICs of one rail; rails share a leaf where it has room
// for all NICs of several. Leaves out spare switches, management and storage networks.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "hardware/cluster/cluster.hpp"

namespace orrery::scenarios {

struct BillSwitch {
  std::string kind;  // "leaf", "spine", "core", "router"
  std::string name;  // "rail2/leaf0", "pod1/spine3"
  int level = 0;     // from the nodes up
  double ports = 0;  // used, of a switch's own
};

/// Equal cables between two switches, or the cable of one NIC.
struct BillCable {
  std::optional<std::size_t> nic;  // node x NICs of a node + NIC; nullopt: from a switch
  std::size_t from = 0;            // a switch, unless of a NIC
  std::size_t to = 0;              // a switch
  int count = 1;
  Bandwidth rate{};  // of each, per direction
};

struct FabricBill {
  std::vector<BillSwitch> switches;  // level by level
  std::vector<BillCable> cables;     // NICs first
  int radix = 0;                     // ports of a switch; 0: not known
  std::string note;                  // what such switches cannot do; may be empty
};

/// Errors  a cluster without a fabric or NICs: ContractError
FabricBill bill_of(const hardware::Cluster& cluster);

}  // namespace orrery::scenarios

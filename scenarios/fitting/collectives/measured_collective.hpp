#pragma once
// One measured collective, as a line of a CSV file of nccl-tests results states it, and the machine
// on which it was measured.

#include <optional>
#include <string>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "models/network/collectives/collective.hpp"
#include "sim/input/csv.hpp"

namespace orrery::scenarios {

/// Texts are as written.
struct MeasuredCollective {
  std::string id, source, variant, gpu, link, nic, algorithm, protocol, version, set_aside;
  std::optional<models::Collective> collective;  // nothing: not a known collective
  int gpus = 1, nodes = 1;
  Bytes size{};
  bool in_place = false;
  std::optional<double> seconds;

  bool usable() const { return seconds && set_aside.empty() && collective; }
  /// Number of scale-up domains; a domain is a server, or a rack of 72 GPUs.
  int domains() const;
  bool one_domain() const { return domains() == 1; }
};

/// Whether a header is that of measured collectives: `collective`, `bytes`, `time_us`, `gpus`.
bool holds_collectives(const orrery::Table& table);

/// Every line. Errors  a column that is missing, a cell that is no number or out of range
std::vector<MeasuredCollective> read_collectives(const orrery::Table& table);

/// Key of the same call on the same machine, whoever measured it.
std::string identity_of(const MeasuredCollective& row);
/// Key of the rows that are left out together: all runs over sizes of one collective on one number
/// of GPUs of one kind of machine, including in-place, other library versions, repeats and other
/// sites.
std::string curve_of(const MeasuredCollective& row);
/// Key of one run over sizes.
std::string run_of(const MeasuredCollective& row);
/// Key of the machines that share constants: inside a domain the GPU; across domains GPU and
/// network; for all-to-alls each site with its settings, because these alone change rates by a
/// factor of two.
std::string system_of(const MeasuredCollective& row);

/// The catalogue's cluster for the row's machine; nothing for a GPU that it lacks.
std::optional<hardware::Cluster> machine_of(const MeasuredCollective& row);
/// The group of all the row's ranks; for a send/receive, two neighbours.
models::GroupShape shape_of(const MeasuredCollective& row);

}  // namespace orrery::scenarios

#pragma once
// One measured collective, as a line of a CSV file of nccl-tests results states it, and the
// machine that it ran on.

#include <optional>
#include <string>
#include <vector>

#include "hardware/cluster.hpp"
#include "models/network/collectives/collective.hpp"
#include "sim/input/csv.hpp"

namespace orrery::scenarios {

/// Words are as written.
struct MeasuredCollective {
  std::string id, source, variant, gpu, link, nic, algorithm, protocol, version, set_aside;
  std::optional<models::Collective> collective;  // nothing: a word that we do not know
  int gpus = 1, nodes = 1;
  Bytes size{};
  bool in_place = false;
  std::optional<double> seconds;

  bool usable() const { return seconds && set_aside.empty() && collective; }
  /// GPUs that reach each other without the network: a server, or a rack of 72.
  int domains() const;
  bool one_domain() const { return domains() == 1; }
};

/// Whether a header is that of measured collectives: `collective`, `bytes`, `time_us`, `gpus`.
bool holds_collectives(const orrery::Table& table);

/// Every line. Errors  a column that is missing, a cell that is no number or out of range
std::vector<MeasuredCollective> read_collectives(const orrery::Table& table);

/// The same call on the same machine, whoever measured it.
std::string identity_of(const MeasuredCollective& row);
/// What is left out together: the runs over sizes of one collective on so many GPUs of one kind of
/// machine; in-place, library versions, repeats and other sites are on its side.
std::string curve_of(const MeasuredCollective& row);
/// One run over sizes.
std::string run_of(const MeasuredCollective& row);
/// Machines that share constants: the GPU inside a domain; GPU and network across, of all-to-alls
/// each site with its settings, which alone change their rates twice.
std::string system_of(const MeasuredCollective& row);

/// The machine, by the catalogue. Nothing for a GPU that it lacks.
std::optional<hardware::Cluster> machine_of(const MeasuredCollective& row);
/// The group of all its ranks; of a send/receive, two neighbours.
models::GroupShape shape_of(const MeasuredCollective& row);

}  // namespace orrery::scenarios

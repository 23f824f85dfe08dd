#pragma once
// `orrery import`: files of training tools and launchers as parts of a scenario, with every option
// accounted for.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/model/model.hpp"
#include "scenarios/exchange/launch_file.hpp"

namespace orrery::scenarios {

/// One option of an imported file.
struct ImportedOption {
  enum class Use : std::uint8_t { used, without_effect, not_understood };

  std::string option, value, place;
  Use use = Use::used;
  std::string says;  // used: what it states, "tensor 4"; else why it is not
};

struct LaunchRequest {
  std::vector<std::string> files;
  std::optional<std::string> model{}, cluster{};  // instead of what the files say
  const models::Model* known_model = nullptr;     // the same, already read
  std::optional<std::int64_t> gpus{};             // the same, where no cluster is named
};

/// What the files say. A part that they do not state is null.
struct ImportedLaunch {
  std::vector<std::string> files;
  std::string tool;  // whose plan it is; empty: only launchers'
  Json model, cluster, software, collectives;
  Json run;  // evaluations and checkpoints, as `orrery train` reads them
  Json plan = Json::object();
  std::optional<std::int64_t> nodes, gpus;
  /// What NCCL's environment says of the network: NICs of a node that it uses, TCP through the host
  /// instead of InfiniBand or RoCE.
  std::optional<std::int64_t> nics{};
  bool sockets = false;
  /// The node of NCCL_TOPO_FILE, as /node of a cluster has it; null: none.
  Json topology;
  std::vector<ImportedOption> options;
  std::vector<std::string> notes;

  /// As `orrery simulate` reads it; parts that are null are left out.
  Json scenario() const;
};

/// Errors  InputError: a file that cannot be read or is of no known tool, a model or cluster that
/// is not known
ImportedLaunch import_launch(const LaunchRequest& request);
/// The same for the contents of one file.
ImportedLaunch import_launch(const std::vector<LaunchFile>& files, const LaunchRequest& request);

Json to_json(const ImportedLaunch& imported);
/// A table of the options by use.
std::string text_of(const ImportedLaunch& imported);

}  // namespace orrery::scenarios

#pragma once
// `orrery export`: launch files for a plan, in the options of a training tool's own list.

#include <optional>
#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

/// A launch file, ready to be written.
struct LaunchText {
  std::string target;  // "megatron@0.20"
  std::string name;    // of the file: "megatron.sh"
  std::string text;
};

/// Something of the plan that the tool cannot do, or that its files cannot say.
struct UnsaidOption {
  std::string target, option, why;  // option: "schedule=zb-h1"; empty: about the model
};

struct Exported {
  std::vector<LaunchText> files;
  std::vector<UnsaidOption> refused;   // not empty: no files
  std::vector<UnsaidOption> not_said;  // also comments in the target's file
};

struct ExportRequest {
  std::string job = "orrery";  // name of a launcher's job
  std::string cluster{};       // as the user names it, for a comment
  Json collectives{};          // NCCL's environment
  Json plan{};                 // as it was stated: what it states is written or said
};

/// targets  tools and launchers: "megatron", "torchtitan@0.2.2"; a launcher starts the tool's files
/// Errors   `--to: unknown ...; known: ...`: InputError
Exported export_launch(const models::Question& question, const std::vector<std::string>& targets,
                       const ExportRequest& request);

/// "megatron@0.20 megatron-bridge@0.7 ...": every target, with its versions.
std::string export_targets();

Json to_json(const Exported& exported);

}  // namespace orrery::scenarios

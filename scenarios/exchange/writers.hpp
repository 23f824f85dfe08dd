#pragma once
// Launch files as text. Every value goes through the quoting of its format; text that a user typed
// reaches a file in no other way.

#include <string>
#include <string_view>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// One option to be written, by its dotted path.
struct WrittenOption {
  std::string option;
  Json value;  // a scalar, or a list of scalars
};

/// What a launcher starts.
struct LaunchJob {
  std::string name;  // of the job
  std::int64_t nodes = 1, gpus_per_node = 1;
  std::vector<std::string> command;  // of every node's torchrun
  std::string script{};              // a script that runs torchrun itself
  std::string accelerate_file{};     // a file that only `accelerate launch` reads
  std::string accelerator{};         // the GPU's name in SkyPilot's catalogue
  std::vector<std::pair<std::string, std::string>>
      environment{};  // names are checked by the caller
  std::vector<std::string> comments{};
};

/// "# " before each line; control characters become blanks.
std::string comment_lines(const std::vector<std::string>& comments);
/// `options` as an object nested by their dots.
Json nested_options(const std::vector<WrittenOption>& options);

std::string yaml_text(const Json& document, const std::vector<std::string>& comments);
std::string toml_text(const Json& document, const std::vector<std::string>& comments);

/// A bash script that starts Megatron-LM's pretrain_gpt.py by torchrun on this node.
/// model, plan  its options
std::string megatron_script(const std::vector<WrittenOption>& model,
                            const std::vector<WrittenOption>& plan, const LaunchJob& job);
std::string torchrun_script(const LaunchJob& job);
std::string slurm_script(const LaunchJob& job);
/// A Kubeflow PyTorchJob.
std::string pytorch_job(const LaunchJob& job);
/// A task of SkyPilot, whose nodes find each other by its variables.
std::string skypilot_task(const LaunchJob& job);

/// `text` with everything but letters, digits, - and . replaced; in lower case where `lower`.
std::string plain_name(std::string_view text, bool lower);

}  // namespace orrery::scenarios

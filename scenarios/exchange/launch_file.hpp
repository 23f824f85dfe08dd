#pragma once
// Files of training tools and launchers, read as options with their values: shell scripts and
// command lines, YAML, TOML and JSON. What an option means is in meanings.hpp.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// One option as a file writes it.
struct LaunchOption {
  std::string option;     // as the tool's list names it: "tensor_model_parallel_size"
  Json value;             // a scalar or a list; null: written without a value
  std::string place;      // "run.sh:line 3", "ds.json:/zero_optimization/stage"
  std::string tool;       // of launch_tools()
  std::string unknown{};  // the part of the value that a variable or command would give
};

struct LaunchFile {
  std::string file, tool;  // tool: whose plan it states; empty: a launcher's alone
  std::vector<LaunchOption> options;
  std::map<std::string, std::string> environment{};  // variables that begin with NCCL_
  std::vector<std::string> notes{};
};

/// Whether a file is one of another tool and not Orrery's own: a script, YAML, TOML, or JSON with
/// keys of DeepSpeed. Reads the text only.
bool is_launch_file(std::string_view text, const std::string& path);

/// Errors  InputError: not text, no tool known by its keys (those that are known are listed), the
/// format's own errors with their line
LaunchFile read_launch_file(std::string_view text, const std::string& path);

/// YAML as JSON: the first document, without tags. Errors  InputError `file:line 3: ...`, more than
/// 100,000 values, more than 64 levels
Json json_of_yaml(std::string_view text, const std::string& file);
/// TOML as JSON; dates are text. Errors  InputError `file:line 3: ...`
Json json_of_toml(std::string_view text, const std::string& file);

}  // namespace orrery::scenarios

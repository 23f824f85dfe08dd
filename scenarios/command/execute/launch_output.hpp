#pragma once
// Launch files of a plan, written by `orrery export` and by `orrery plan --export`.

#include <string>
#include <vector>

#include "scenarios/exchange/export.hpp"

namespace orrery::scenarios {

/// "megatron,slurm" and repeated flags as one list.
std::vector<std::string> launch_targets(const std::vector<std::string>& flags);
/// Prints on standard error what the tools cannot do, and what their files cannot say.
void print_unsaid(const Exported& exported);
/// Writes the files into a folder, and prints a line for each on standard error. Returns their
/// paths. Errors: OutputError
std::vector<std::string> write_launch_files(const Exported& exported, const std::string& folder);

}  // namespace orrery::scenarios

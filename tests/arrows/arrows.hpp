#pragma once
// The rules of the source tree that no compiler checks: which folder may include which, where CUDA
// and printing are allowed. Reads lines, not C++: comments are cut at "//".

#include <filesystem>
#include <string>
#include <vector>

namespace orrery {

/// Each broken rule as `path:line: what is wrong`, in the order of the paths.
std::vector<std::string> broken_rules(const std::filesystem::path& root);

/// A subfolder that, by the rows of the table, reaches itself; empty where none does.
std::string subfolder_cycle();

}  // namespace orrery

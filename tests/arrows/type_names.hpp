#pragma once
// One word for one thing: a type's name stands in one subfolder of the tree only, so that it can be
// searched for and said aloud. Reads lines, not C++: what begins a line with class, struct, union
// or enum and opens a body or a base list there.

#include <filesystem>
#include <string>
#include <vector>

namespace orrery {

/// Each name that types of several subfolders share, as `Name: path, path`, in the order of the
/// names. A subfolder is the path's first two folders; kernels for several devices may share theirs
/// in one.
std::vector<std::string> shared_type_names(const std::filesystem::path& root);

}  // namespace orrery

#pragma once
// Loads libraries of this project when a run needs them, so that a machine without MPI or CUDA can
// run everything else. Loaded code runs with our rights: only files next to the program that belong
// to its owner or to root are loaded, never what the loader's own search finds.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::executor {

/// Where a module is looked for: in the program's folder, or that of the Python module that this
/// code lies in, then in ../lib/orrery of that.
std::vector<std::string> module_paths(std::string_view file);

/// Who sees a module's symbols: itself, or also what is loaded after it.
enum class Symbols : std::uint8_t { own, global };

/// The result of loading a library.
struct Module {
  void* handle = nullptr;  // null: it cannot be used
  bool there = false;      // a file of its name exists
  std::string why;         // why it does not load, in the loader's words or ours
};

/// Never unloaded: such libraries leave threads and handlers in the process.
Module load_module(std::string_view file, Symbols symbols);

/// The address of an exported function; null where the module has none of that name.
void* exported(const Module& module, const char* symbol);

}  // namespace orrery::executor

#include "executor/launch/mpi_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "executor/errors.hpp"

namespace orrery::executor {

namespace {

constexpr const char* module_name = "liborrery_mpi.so";

/// Never unloaded: MPI leaves threads and handlers behind.
void* load_mpi_module(std::string& why) {
  for (const std::string& path : mpi_module_paths()) {
    // Open MPI's own plugins look for its symbols among the global ones.
    if (void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return module;
    const char* error = dlerror();
    const bool there = std::filesystem::exists(path);
    if (why.empty() || there) why = error != nullptr ? error : "unknown reason";
    if (there) break;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> mpi_module_paths() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  return {(program / module_name).string(), (program.parent_path() / module_name).string(),
          (program.parent_path() / "lib" / module_name).string(), module_name};
}

bool mpi_module_loads() {
  std::string why;
  return load_mpi_module(why) != nullptr;
}

std::unique_ptr<Fabric> mpi_fabric() {
  std::string why;
  void* module = load_mpi_module(why);
  void* made = module != nullptr ? dlsym(module, "orrery_mpi_fabric") : nullptr;
  if (made == nullptr) {
    throw RunFailure{Exit::local_failure, fmt::format("MPI cannot be loaded ({})", why)};
  }
  return std::unique_ptr<Fabric>{reinterpret_cast<Fabric* (*)()>(made)()};
}

}  // namespace orrery::executor

#include "executor/launch/module.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace orrery::executor {

std::vector<std::string> module_paths(std::string_view file) {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  return {(program / file).string(), (program.parent_path() / file).string(),
          (program.parent_path() / "lib" / file).string(), std::string{file}};
}

Module load_module(std::string_view file, Symbols symbols) {
  const int scope = symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL;
  std::string why;
  for (const std::string& path : module_paths(file)) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | scope)) return {handle, true, {}};
    const char* error = dlerror();
    std::error_code ignored;
    const bool there = std::filesystem::exists(path, ignored);
    if (why.empty() || there) why = error != nullptr ? error : "unknown reason";
    if (there) return {nullptr, true, why};
  }
  return {nullptr, false, why};
}

void* exported(const Module& module, const char* symbol) {
  return module.handle != nullptr ? dlsym(module.handle, symbol) : nullptr;
}

}  // namespace orrery::executor

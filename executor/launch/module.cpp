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
  Module module;
  for (const std::string& path : module_paths(file)) {
    module.handle = dlopen(path.c_str(), RTLD_NOW | scope);
    const char* error = module.handle == nullptr ? dlerror() : nullptr;
    std::error_code ignored;
    module.there = module.handle != nullptr || std::filesystem::exists(path, ignored);
    if (module.handle != nullptr) return module;
    if (module.why.empty() || module.there) module.why = error ? error : "unknown reason";
    if (module.there) break;
  }
  return module;
}

void* exported(const Module& module, const char* symbol) {
  return module.handle != nullptr ? dlsym(module.handle, symbol) : nullptr;
}

}  // namespace orrery::executor

#include "executor/module/module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace orrery::executor {

namespace {

constexpr const char* own_program = "/proc/self/exe";

/// Why a file is not trusted; empty: it is.
std::string distrust(const std::string& path) {
  struct stat file {
  }, program{};
  if (::stat(path.c_str(), &file) != 0) return std::strerror(errno);
  if (::stat(own_program, &program) != 0) return std::strerror(errno);
  if (file.st_uid != 0 && file.st_uid != program.st_uid) {
    return fmt::format("{} belongs to user {}: expected root or the owner of the program", path,
                       file.st_uid);
  }
  if ((file.st_mode & S_IWOTH) != 0) return path + " may be written by everyone";
  return {};
}

}  // namespace

std::vector<std::string> module_paths(std::string_view file) {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink(own_program, ignored).parent_path();
  return {(program / file).string(), (program.parent_path() / "lib" / "orrery" / file).string()};
}

Module load_module(std::string_view file, Symbols symbols) {
  const int scope = symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL;
  for (const std::string& path : module_paths(file)) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    if (std::string why = distrust(path); !why.empty()) return {nullptr, true, std::move(why)};
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | scope)) return {handle, true, {}};
    const char* error = dlerror();
    return {nullptr, true, error != nullptr ? error : "unknown reason"};
  }
  return {nullptr, false, fmt::format("{} is not installed with this orrery", file)};
}

void* exported(const Module& module, const char* symbol) {
  return module.handle != nullptr ? dlsym(module.handle, symbol) : nullptr;
}

}  // namespace orrery::executor

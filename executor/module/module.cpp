#include "executor/module/module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace orrery::executor {

namespace {

/// The file that contains this code: the program, or the Python module. It is found in the kernel's
/// memory map, whatever name the process was started under.
std::filesystem::path own_file() {
  const auto here = reinterpret_cast<std::uintptr_t>(&own_file);
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
    const std::size_t path = line.find('/');
    if (here >= begin && here < end && path != std::string::npos) return line.substr(path);
  }
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

/// Why a file is not trusted; empty: it is.
std::string distrust(const std::string& path) {
  struct stat file {
  }, program{};
  if (::stat(path.c_str(), &file) != 0) return std::strerror(errno);
  if (::stat(own_file().c_str(), &program) != 0) return std::strerror(errno);
  if (file.st_uid != 0 && file.st_uid != program.st_uid) {
    return fmt::format("{} belongs to user {}: expected root or the owner of the program", path,
                       file.st_uid);
  }
  if ((file.st_mode & S_IWOTH) != 0) return path + " is writable by everyone";
  return {};
}

}  // namespace

std::vector<std::string> module_paths(std::string_view file) {
  const auto program = own_file().parent_path();
  return {(program / file).string(), (program.parent_path() / "lib" / "orrery" / file).string()};
}

Module load_module(std::string_view file, Symbols symbols) {
  const int scope = symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL;
  for (const std::string& path : module_paths(file)) {
    std::error_code ignored;
    const auto found = std::filesystem::status(path, ignored).type();
    if (found == std::filesystem::file_type::not_found) continue;
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

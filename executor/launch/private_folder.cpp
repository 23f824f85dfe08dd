#include "executor/launch/private_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "executor/errors.hpp"
#include "executor/launch/secret.hpp"

namespace orrery::executor {

namespace {

/// Longer ones leave no room in the 107 letters of a Unix socket's path.
constexpr std::size_t longest_runtime_folder = 50;

/// Why a folder is not the user's alone; empty: it is.
std::string found_instead(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return std::strerror(errno);
  if (!S_ISDIR(found.st_mode)) return "a file that is not a folder";
  if (found.st_uid != ::geteuid()) return fmt::format("a folder of user {}", found.st_uid);
  if ((found.st_mode & 077) != 0) {
    return fmt::format("a folder that other users can enter (mode {:o})", found.st_mode & 0777);
  }
  return {};
}

}  // namespace

void require_private(const std::string& path) {
  const std::string instead = found_instead(path);
  if (instead.empty()) return;
  throw RunFailure{Exit::local_failure,
                   fmt::format("{}: expected a folder that only user {} can enter, found {}; "
                               "remove it, or set XDG_RUNTIME_DIR",
                               path, ::geteuid(), instead)};
}

std::string private_folder(const Environment& environment) {
  std::string path = fmt::format("/tmp/orrery-{}", ::geteuid());
  const auto runtime = environment.find("XDG_RUNTIME_DIR");
  if (runtime != environment.end() && runtime->second.size() <= longest_runtime_folder &&
      found_instead(runtime->second).empty()) {
    path = runtime->second + "/orrery";
  }
  ::mkdir(path.c_str(), 0700);  // it may exist already: the next line checks it
  require_private(path);
  return path;
}

Address unused_socket(const Environment& environment) {
  return {.path = fmt::format("{}/{}", private_folder(environment), random_name())};
}

Address unused_socket() {
  return unused_socket(environment());
}

}  // namespace orrery::executor

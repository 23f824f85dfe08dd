#include "file_calls.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace orrery::executor {

namespace {

thread_local FileCalls* listening = nullptr;
thread_local FailingOnce* failing_once = nullptr;

std::string path_of(int descriptor) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  return size < 0 ? std::string{} : std::string{path, static_cast<std::size_t>(size)};
}

/// 0, or why a call on a descriptor is to fail.
int refusal_of(const char* name, int descriptor) {
  return listening == nullptr ? 0 : listening->take({name, path_of(descriptor)});
}

int refusal_once(const char* name) {
  return failing_once == nullptr ? 0 : failing_once->take(name);
}

/// What a call returns that fails for this reason.
int failing(int reason) {
  errno = reason;
  return -1;
}

}  // namespace

FileCalls::FileCalls(std::string folder, std::optional<std::size_t> failing, int reason)
    : folder_{std::move(folder)}, failing_{failing}, reason_{reason} {
  listening = this;
}

FileCalls::~FileCalls() {
  listening = nullptr;
}

FailingOnce::FailingOnce(std::string name, int reason) : name_{std::move(name)}, reason_{reason} {
  failing_once = this;
}

FailingOnce::~FailingOnce() {
  failing_once = nullptr;
}

int FailingOnce::take(std::string_view name) {
  return name == name_ ? std::exchange(reason_, 0) : 0;
}

int FileCalls::take(FileCall call) {
  if (call.path.rfind(folder_, 0) != 0) return 0;
  const bool fails = failing_ == calls_.size();
  failed_ = failed_ || fails;
  calls_.push_back(std::move(call));
  return fails ? reason_ : 0;
}

}  // namespace orrery::executor

extern "C" {

ssize_t write(int descriptor, const void* data, size_t size) {
  using namespace orrery::executor;
  if (const int reason = refusal_of("write", descriptor)) return failing(reason);
  return syscall(SYS_write, descriptor, data, size);
}

int fsync(int descriptor) {
  using namespace orrery::executor;
  if (const int reason = refusal_of("fsync", descriptor)) return failing(reason);
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

int close(int descriptor) {
  using namespace orrery::executor;
  const int reason = refusal_of("close", descriptor);
  const int status = static_cast<int>(syscall(SYS_close, descriptor));
  return reason != 0 ? failing(reason) : status;  // the descriptor is gone all the same
}

int open(const char* path, int flags, ...) {
  using namespace orrery::executor;
  if (const int reason = refusal_once("open")) return failing(reason);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

dirent* readdir(DIR* folder) {
  using namespace orrery::executor;
  static auto* const of_the_system =
      reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  if (const int reason = refusal_once("readdir")) {
    errno = reason;
    return nullptr;
  }
  return of_the_system(folder);
}

int rename(const char* from, const char* to) noexcept {
  using namespace orrery::executor;
  if (listening != nullptr) {
    if (const int reason = listening->take({"rename", from, to})) return failing(reason);
  }
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
}

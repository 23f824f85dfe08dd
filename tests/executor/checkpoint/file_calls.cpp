#include "file_calls.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <utility>

namespace orrery::executor {

namespace {

thread_local FileCalls* listening = nullptr;

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

int rename(const char* from, const char* to) noexcept {
  using namespace orrery::executor;
  if (listening != nullptr) {
    if (const int reason = listening->take({"rename", from, to})) return failing(reason);
  }
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
}

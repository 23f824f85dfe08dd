#include "executor/checkpoint/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::executor {

namespace {

/// Who holds the lock, as the holder wrote it into the file; for people.
std::string holder(int descriptor) {
  char text[256];
  const ssize_t size = ::pread(descriptor, text, sizeof text, 0);
  const std::string_view found{text, size > 0 ? static_cast<std::size_t>(size) : 0};
  return printable(trimmed(found), sizeof text);
}

std::string own_name() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("process {} of {}\n", ::getpid(), host);
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) {
  make_folder(folder);
  const std::string path = (std::filesystem::path{folder} / "lock").string();
  descriptor_ =
      through_signals([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); });
  if (descriptor_ < 0) throw OutputError{path, errno};
  if (through_signals([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) != 0) {
    if (errno != EWOULDBLOCK) return;
    const std::string who = holder(descriptor_);
    ::close(descriptor_);
    throw InputError{folder, fmt::format("another run writes its checkpoints there ({}): wait "
                                         "until it ends, or use another folder",
                                         who)};
  }
  const std::string name = own_name();  // for people: `try_folder` finds a full disk
  [[maybe_unused]] const bool said =
      ::ftruncate(descriptor_, 0) == 0 && write_all(descriptor_, name);
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void try_folder(const std::string& folder, int rank) {
  make_folder(folder);
  const std::string path =
      (std::filesystem::path{folder} / fmt::format("tried-{:05}", rank)).string();
  write_durably(path, "orrery tries to write here before the first step\n");
  ::unlink(path.c_str());
}

}  // namespace orrery::executor

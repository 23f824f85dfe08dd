#include "sim/output/durable_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <utility>

#include "sim/errors.hpp"

namespace orrery {

namespace {

[[noreturn]] void cannot_write(const std::string& path) {
  throw OutputError{path, errno};
}

/// True for a regular file whose path is not an alias of a device or pipe (/dev/stdout).
bool can_be_replaced(const std::string& path, const struct stat& found) {
  const std::string_view start = path;
  return S_ISREG(found.st_mode) && start.substr(0, 5) != "/dev/" && start.substr(0, 6) != "/proc/";
}

/// Gives a new file the owner, group and permissions of the one that it is to replace. Where the
/// user may not give the group, the rights that it had are not given to another one.
void take_rights(int descriptor, const struct stat& old) {
  struct stat now {};
  const bool owned = ::fchown(descriptor, old.st_uid, old.st_gid) == 0 ||
                     ::fchown(descriptor, static_cast<uid_t>(-1), old.st_gid) == 0;
  const bool same_group = owned || (::fstat(descriptor, &now) == 0 && now.st_gid == old.st_gid);
  const mode_t others = old.st_mode & 07U;
  const mode_t rights = old.st_mode & 0777U;
  // Some file systems have no permissions; the new file then has those of any new file there.
  [[maybe_unused]] const int status =
      ::fchmod(descriptor, same_group ? rights : (rights & 0707U) | (rights & (others << 3U)));
}

}  // namespace

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written =
        through_signals([&] { return ::write(descriptor, text.data(), text.size()); });
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void flush_folder(const std::string& folder) {
  const std::string path = folder.empty() ? "." : folder;
  const int descriptor =
      through_signals([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) cannot_write(path);
  const int status = through_signals([&] { return ::fsync(descriptor); });
  ::close(descriptor);
  if (status != 0 && errno != EINVAL) cannot_write(path);  // not supported on some file systems
}

void make_folder(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) throw OutputError{path, failed};
}

NewFile new_file_for(const std::string& target, unsigned mode) {
  constexpr std::size_t longest = 200;  // of at most 255 bytes, as on all common file systems
  constexpr int tries = 8;              // 64 random bits: the second one is a formality
  const std::filesystem::path path{target};
  const std::string name = path.filename().string().substr(0, longest);
  std::random_device random;
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t word = (std::uint64_t{random()} << 32U) | random();
    NewFile made{.path =
                     (path.parent_path() / fmt::format(".{}.{:016x}.tmp", name, word)).string()};
    constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    made.descriptor = through_signals([&] { return ::open(made.path.c_str(), flags, mode); });
    if (made.descriptor >= 0) return made;
    if (errno != EEXIST) break;
  }
  cannot_write(target);
}

DurableFile::DurableFile(std::string path) : path_{std::move(path)}, target_{path_} {
  struct stat found {};
  const bool there = through_signals([&] { return ::stat(path_.c_str(), &found); }) == 0;
  if (there && !can_be_replaced(path_, found)) {
    descriptor_ =
        through_signals([&] { return ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC); });
    if (descriptor_ < 0) cannot_write(path_);
    return;
  }
  std::error_code failed;
  if (there) target_ = std::filesystem::canonical(path_, failed).string();
  if (failed) throw OutputError{path_, failed};
  NewFile made = new_file_for(target_, there ? found.st_mode & 0777U : 0666U);
  temporary_ = std::move(made.path);
  descriptor_ = made.descriptor;
  if (there) take_rights(descriptor_, found);
}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void DurableFile::write(const void* data, std::size_t size) {
  if (!write_all(descriptor_, {static_cast<const char*>(data), size})) cannot_write(path_);
}

void DurableFile::commit(const StepDone& step) {
  const auto done = [&](const char* what) {
    if (step) step(fmt::format("{} {}", std::filesystem::path{path_}.filename().string(), what));
  };
  done("written");
  if (!temporary_.empty() && through_signals([&] { return ::fsync(descriptor_); }) != 0) {
    cannot_write(path_);
  }
  done("flushed");
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) cannot_write(path_);
  if (temporary_.empty()) return;
  if (through_signals([&] { return std::rename(temporary_.c_str(), target_.c_str()); }) != 0) {
    cannot_write(path_);
  }
  temporary_.clear();
  done("renamed");
  flush_folder(std::filesystem::path{target_}.parent_path().string());
  done("durable");
}

void write_durably(const std::string& path, std::string_view text, const StepDone& step) {
  DurableFile file{path};
  file.write(text);
  file.commit(step);
}

void require_writable(const std::string& path) {
  const DurableFile tried{path};
}

}  // namespace orrery

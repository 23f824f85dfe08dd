#include "sim/output/durable_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
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

}  // namespace

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void flush_folder(const std::string& folder) {
  const std::string path = folder.empty() ? "." : folder;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) cannot_write(path);
  const int status = ::fsync(descriptor);
  ::close(descriptor);
  if (status != 0 && errno != EINVAL) cannot_write(path);  // not supported on some file systems
}

void make_folder(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) throw OutputError{path, failed};
}

DurableFile::DurableFile(std::string path) : path_{std::move(path)}, target_{path_} {
  struct stat found {};
  const bool there = ::stat(path_.c_str(), &found) == 0;
  if (there && !can_be_replaced(path_, found)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (descriptor_ < 0) cannot_write(path_);
    return;
  }
  std::error_code as_it_is;
  if (there) target_ = std::filesystem::canonical(path_, as_it_is).string();
  if (as_it_is) target_ = path_;
  temporary_ = target_ + ".tmp";
  constexpr mode_t new_file = 0666, permissions = 07777;
  open_temporary(there ? found.st_mode & permissions : new_file);
}

/// Removes the temporary file of an earlier run; a symbolic link at that path is not followed.
void DurableFile::open_temporary(unsigned mode) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  descriptor_ = ::open(temporary_.c_str(), flags, mode);
  if (descriptor_ < 0 && errno == EEXIST && ::unlink(temporary_.c_str()) == 0) {
    descriptor_ = ::open(temporary_.c_str(), flags, mode);
  }
  if (descriptor_ < 0) cannot_write(path_);
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
  if (!temporary_.empty() && ::fsync(descriptor_) != 0) cannot_write(path_);
  done("flushed");
  if (::close(std::exchange(descriptor_, -1)) != 0) cannot_write(path_);
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) cannot_write(path_);
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

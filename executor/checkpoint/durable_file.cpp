#include "executor/checkpoint/durable_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "executor/errors.hpp"

namespace orrery::executor {

namespace {

[[noreturn]] void cannot_write(const std::string& path) {
  throw RunFailure{Exit::local_failure,
                   fmt::format("{}: cannot be written: {}", path, std::strerror(errno))};
}

}  // namespace

void flush_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) cannot_write(folder);
  const int status = ::fsync(descriptor);
  ::close(descriptor);
  if (status != 0 && errno != EINVAL) cannot_write(folder);  // some file systems cannot
}

DurableFile::DurableFile(std::string path) : path_{std::move(path)}, temporary_{path_ + ".tmp"} {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) cannot_write(temporary_);
}

DurableFile::~DurableFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void DurableFile::write(const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(temporary_);
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

void DurableFile::commit(const StepDone& step) {
  const auto done = [&](const char* what) {
    if (step) step(fmt::format("{} {}", std::filesystem::path{path_}.filename().string(), what));
  };
  done("written");
  if (::fsync(descriptor_) != 0) cannot_write(temporary_);
  done("flushed");
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) cannot_write(path_);
  done("renamed");
  flush_folder(std::filesystem::path{path_}.parent_path().string());
  done("durable");
}

void write_durably(const std::string& path, std::string_view text, const StepDone& step) {
  DurableFile file{path};
  file.write(text.data(), text.size());
  file.commit(step);
}

}  // namespace orrery::executor

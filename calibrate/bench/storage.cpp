#include "calibrate/bench/storage.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "executor/errors.hpp"

namespace orrery::calibrate {

namespace {

using executor::Exit;
using executor::RunFailure;

[[noreturn]] void fail_storage(const std::filesystem::path& file) {
  throw RunFailure{Exit::local_failure, fmt::format("{}: {}", file.string(), std::strerror(errno))};
}

/// An open file; the destructor closes it.
class OpenFile {
 public:
  OpenFile(const std::filesystem::path& file, int flags)
      : file_{file}, number_{::open(file.c_str(), flags, 0600)} {
    if (number_ < 0) fail_storage(file_);
  }
  ~OpenFile() { ::close(number_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void write(const std::vector<char>& block) {
    if (::write(number_, block.data(), block.size()) != static_cast<ssize_t>(block.size())) {
      fail_storage(file_);
    }
  }
  void read(std::vector<char>& block) {
    if (::read(number_, block.data(), block.size()) != static_cast<ssize_t>(block.size())) {
      fail_storage(file_);
    }
  }
  void read_at(std::vector<char>& piece, std::uint64_t place) {
    if (::pread(number_, piece.data(), piece.size(), static_cast<off_t>(place)) !=
        static_cast<ssize_t>(piece.size())) {
      fail_storage(file_);
    }
  }
  void to_disk() {
    if (::fsync(number_) != 0) fail_storage(file_);
  }
  /// What is read next is not what comes after it.
  void read_randomly() { ::posix_fadvise(number_, 0, 0, POSIX_FADV_RANDOM); }
  /// Drops the file from the page cache, if the system can.
  void forget() { ::posix_fadvise(number_, 0, 0, POSIX_FADV_DONTNEED); }

 private:
  const std::filesystem::path& file_;
  int number_;
};

constexpr std::size_t block_bytes = std::size_t{1} << 20;

}  // namespace

StorageSubject::StorageSubject(std::filesystem::path folder, Bytes size, Clock& clock)
    : file_{std::move(folder) / fmt::format(".orrery-storage-{}", ::getpid())},
      size_{size},
      clock_{clock} {}

void StorageSubject::prepare() {
  block_.assign(block_bytes, 'x');
}

bool StorageSubject::run(std::vector<Time>& times) {
  const std::int64_t blocks = size_.count() / static_cast<std::int64_t>(block_bytes);
  Time begin = clock_.now();
  {
    OpenFile file{file_, O_CREAT | O_WRONLY | O_TRUNC};
    for (std::int64_t i = 0; i < blocks; ++i) file.write(block_);
    file.to_disk();
    times[0] = clock_.now() - begin;
    file.forget();
  }
  begin = clock_.now();
  OpenFile file{file_, O_RDONLY};
  for (std::int64_t i = 0; i < blocks; ++i) file.read(block_);
  times[1] = clock_.now() - begin;
  file.forget();
  file.read_randomly();
  std::vector<char> piece(random_bytes);
  const auto pieces = static_cast<std::uint64_t>(size_.count()) / random_bytes;
  begin = clock_.now();
  for (int i = 0; i < random_reads; ++i) {
    place_ = place_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
    file.read_at(piece, (place_ >> 33U) % pieces * random_bytes);
  }
  times[2] = clock_.now() - begin;
  return true;
}

void StorageSubject::finish() {
  std::error_code ignored;  // a failed removal is not an error
  std::filesystem::remove(file_, ignored);
}

}  // namespace orrery::calibrate

#include "calibrate/bench/messages.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "executor/errors.hpp"

namespace orrery::calibrate {

namespace {

using executor::Exit;
using executor::RunFailure;
using models::Collective;

[[noreturn]] void fail_storage(const std::filesystem::path& file) {
  throw RunFailure{Exit::local_failure, fmt::format("{}: {}", file.string(), std::strerror(errno))};
}

/// A file that is closed whatever happens.
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
  void to_disk() {
    if (::fsync(number_) != 0) fail_storage(file_);
  }
  /// The system forgets what it keeps of the file in memory, where it can.
  void forget() { ::posix_fadvise(number_, 0, 0, POSIX_FADV_DONTNEED); }

 private:
  const std::filesystem::path& file_;
  int number_;
};

constexpr std::size_t block_bytes = std::size_t{1} << 20;

}  // namespace

CollectiveSubject::CollectiveSubject(Collective kind, Bytes size, const Ranks& ranks,
                                     std::vector<executor::Fabric*> fabrics,
                                     executor::GroupId group)
    : kind_{kind}, size_{size}, ranks_{ranks}, fabrics_{std::move(fabrics)}, group_{group} {
  ensure(size.count() % (4 * ranks.team.ranks()) == 0, "a collective's size is cut evenly");
}

std::string CollectiveSubject::name() const {
  return fmt::format("{} {} ranks {} B", models::name(kind_), ranks(), size_.count());
}

void CollectiveSubject::prepare() {
  const auto count = static_cast<std::size_t>(size_.count() / 4);
  from_.assign(fabrics_.size(), {});
  to_.assign(fabrics_.size(), std::vector<float>(count, -1.0F));
  for (std::size_t rank = 0; rank < from_.size(); ++rank) {
    from_[rank].assign(count, static_cast<float>(rank + 1));
  }
  ranks_.team.all([&](int rank) { call(rank); });
  check();
}

/// Starts and waits, as one rank.
void CollectiveSubject::call(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  executor::Fabric& fabric = *fabrics_[at];
  auto* from = reinterpret_cast<std::byte*>(from_[at].data());
  auto* to = reinterpret_cast<std::byte*>(to_[at].data());
  if (kind_ == Collective::send_receive) {
    executor::TransferCall transfer{
        .group = group_, .peer = 1 - rank, .buffer = rank == 0 ? from : to, .bytes = size_.count()};
    if (rank > 1) return;
    fabric.wait(rank == 0 ? fabric.send(transfer) : fabric.receive(transfer));
    return;
  }
  const std::int64_t whole = size_.count() / 4;
  const bool shards = kind_ != Collective::all_reduce && kind_ != Collective::broadcast;
  fabric.wait(fabric.start({.kind = kind_,
                            .group = group_,
                            .send = from,
                            .receive = to,
                            .count = shards ? whole / ranks() : whole,
                            .element = executor::Element::fp32,
                            .root = 0}));
}

void CollectiveSubject::check() const {
  const auto n = static_cast<float>(ranks());
  const std::vector<float>& last =
      to_[static_cast<std::size_t>(kind_ == Collective::send_receive ? 1 : ranks() - 1)];
  const auto shard = last.size() / static_cast<std::size_t>(ranks());
  float expected = n * (n + 1) / 2;  // 1 + 2 + ... + n
  std::size_t at = 0;
  if (kind_ == Collective::broadcast || kind_ == Collective::send_receive) expected = 1;
  if (kind_ == Collective::all_gather || kind_ == Collective::all_to_all) {
    expected = 2;  // the second rank's shard
    at = shard;
  }
  if (last[at] != expected) {
    throw RunFailure{Exit::local_failure, fmt::format("{} gives {} where {} is right: not timed",
                                                      name(), last[at], expected)};
  }
}

bool CollectiveSubject::run(std::vector<Time>& times) {
  std::vector<Time> of(fabrics_.size());
  ranks_.team.all([&](int rank) {
    ranks_.gate.pass();
    const Time begin = ranks_.clock.now();
    call(rank);
    of[static_cast<std::size_t>(rank)] = ranks_.clock.now() - begin;
  });
  times[0] = std::max(Time{1000}, *std::max_element(of.begin(), of.end()));
  return true;  // waiting for each other is part of it
}

void CollectiveSubject::finish() {
  from_.clear();
  to_.clear();
}

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
  return true;
}

void StorageSubject::finish() {
  std::error_code ignored;  // nothing to keep of it
  std::filesystem::remove(file_, ignored);
}

CopySubject::CopySubject(Bytes size, const Ranks& ranks) : size_{size}, ranks_{ranks} {}

void CopySubject::prepare() {
  for (executor::Device* device : ranks_.devices) {
    from_.push_back(device->allocate(size_));
    to_.push_back(device->allocate(size_));
    device->zero(from_.back(), size_);
    device->zero(to_.back(), size_);
  }
}

bool CopySubject::run(std::vector<Time>& times) {
  std::vector<Time> of(ranks_.devices.size());
  ranks_.team.all([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    executor::Device& device = *ranks_.devices[at];
    ranks_.gate.pass();
    const Time begin = ranks_.clock.now();
    device.copy(from_[at], to_[at], size_, models::Lane::compute);
    if (!device.synchronous()) device.finish();
    of[at] = ranks_.clock.now() - begin;
  });
  times[0] = *std::max_element(of.begin(), of.end());
  return true;
}

void CopySubject::finish() {
  for (std::size_t rank = 0; rank < from_.size(); ++rank) {
    ranks_.devices[rank]->release(from_[rank]);
    ranks_.devices[rank]->release(to_[rank]);
  }
  from_.clear();
  to_.clear();
}

}  // namespace orrery::calibrate

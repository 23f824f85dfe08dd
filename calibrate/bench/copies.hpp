#pragma once
// Times copies: within device memory; between device and page-locked host memory, by the device's
// copy engines on a queue; between device and pageable host memory.

#include <memory>
#include <string>
#include <vector>

#include "calibrate/bench/rank_set.hpp"

namespace orrery::calibrate {

/// A copy within device memory. One part.
class DeviceCopy : public TimedSubject {
 public:
  DeviceCopy(Bytes size, RankSet& ranks)
      : TimedSubject{ranks, models::Lane::compute, Over::slowest}, size_{size} {}
  std::string name() const override;
  std::size_t parts() const override { return 1; }
  Bytes size() const { return size_; }

 private:
  void set_up() override;
  void enqueue(int rank, SegmentTimer& timer) override;
  void tear_down() noexcept override;

  Bytes size_;
  std::vector<DeviceMemory> memory_;  // from, to, from, to ...
};

/// A page-locked buffer on the host and one of the same size on the device.
class PinnedPair {
 public:
  /// Errors  no room: RunFailure
  PinnedPair(executor::Device& device, Bytes size);

  void to_device(models::Lane queue) const { device_.copy(host_.get(), own_.get(), size_, queue); }
  void from_device(models::Lane queue) const {
    device_.copy(own_.get(), host_.get(), size_, queue);
  }
  /// Copies there and back once, and compares. Errors  another number comes back: RunFailure
  void check() const;

 private:
  executor::Device& device_;
  Bytes size_;
  DeviceMemory host_, own_;
};

/// Page-locked copies on the copy queue. Parts: to the device, and back.
class PinnedCopy : public TimedSubject {
 public:
  PinnedCopy(Bytes size, RankSet& ranks)
      : TimedSubject{ranks, models::Lane::copy, Over::slowest}, size_{size} {}
  std::string name() const override;
  std::size_t parts() const override { return 2; }
  Bytes size() const { return size_; }

 private:
  void set_up() override;
  void enqueue(int rank, SegmentTimer& timer) override;
  void tear_down() noexcept override { pair_.reset(); }

  Bytes size_;
  std::unique_ptr<PinnedPair> pair_;
};

/// Copies from and to pageable memory, timed by the host's clock because the host waits for them.
/// Parts: to the device, and back.
class PageableCopy : public Subject {
 public:
  PageableCopy(Bytes size, Bench& bench) : size_{size}, bench_{bench} {}
  std::string name() const override;
  std::size_t parts() const override { return 2; }
  Bytes size() const { return size_; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  Bytes size_;
  Bench& bench_;
  std::vector<std::byte> host_;
  DeviceMemory memory_;
};

}  // namespace orrery::calibrate

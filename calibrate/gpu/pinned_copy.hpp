#pragma once
// Copies between the device's memory and page-locked memory of the host: the device's own engines
// move them, on a queue, while host and kernels do something else.

#include "calibrate/gpu/queue_bench.hpp"
#include "calibrate/gpu/work_together.hpp"

namespace orrery::calibrate {

/// Page-locked memory of the host and as much of the device's.
class PinnedPair {
 public:
  /// Errors  no room: RunFailure
  PinnedPair(executor::Device& device, Bytes size);
  ~PinnedPair();
  PinnedPair(const PinnedPair&) = delete;
  PinnedPair& operator=(const PinnedPair&) = delete;

  void to_device(models::Lane queue) const { device_.copy(host_, own_, size_, queue); }
  void from_device(models::Lane queue) const { device_.copy(own_, host_, size_, queue); }
  /// As work that can be enqueued again and again. The pair outlives it.
  Piece piece_to_device(models::Lane queue) const;
  Piece piece_from_device(models::Lane queue) const;
  /// There and back once, and compared. Errors  another number comes back: RunFailure
  void check() const;

 private:
  executor::Device& device_;
  Bytes size_;
  std::byte* host_ = nullptr;
  std::byte* own_ = nullptr;
};

/// On the copy queue, timed by marks there. Parts are to the device and back.
class PinnedCopy : public Subject {
 public:
  PinnedCopy(Bytes size, QueueBench& bench) : size_{size}, bench_{bench} {}
  std::string name() const override;
  std::size_t parts() const override { return 2; }
  Bytes size() const { return size_; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override { pair_.reset(); }

 private:
  Bytes size_;
  QueueBench& bench_;
  std::unique_ptr<PinnedPair> pair_;
  Time host_time_{};
  int repeats_ = 1;
};

/// A copy to the device beside one from it, and either beside the product.
std::vector<NamedBeside> beside_pinned_copies(const TimedBlock& product, QueueBench& bench);

}  // namespace orrery::calibrate

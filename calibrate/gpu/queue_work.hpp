#pragma once
// What is timed on one device's compute queue: a block's operations in each other's company, one
// operation again and again, copies, and what a launch costs.

#include <memory>

#include "calibrate/gpu/operands.hpp"
#include "calibrate/gpu/queue_bench.hpp"

namespace orrery::calibrate {

/// A block and the model that its kernels ask about, which outlive what times them.
struct TimedBlock {
  std::string name;
  const models::Block* block = nullptr;
  const models::Model* model = nullptr;
  /// What times are kept under, operation by operation; null: the block's own. The executor
  /// multiplies by the vocabulary head's weight the other way around than a Program says.
  const models::Block* priced = nullptr;
  bool first = false;  // of a plan that is run next: measured before the others

  const models::Operation& priced_as(const models::Operation& of) const {
    return priced == nullptr
               ? of
               : priced->operations[static_cast<std::size_t>(&of - block->operations.data())];
  }
};

/// The operations that a device can run on its compute queue: neither collectives nor copies, nor
/// what it refuses.
std::vector<const models::Operation*> runnable(const models::Block& block,
                                               const executor::Device& device);

/// Every operation of a block once, a mark behind each. Layers take turns, as in a step.
class BlockOnQueue : public QueueSubject {
 public:
  BlockOnQueue(TimedBlock of, QueueBench& bench);
  std::string name() const override { return of_.name; }
  std::size_t parts() const override { return operations_.size(); }
  const std::vector<const models::Operation*>& operations() const { return operations_; }
  const TimedBlock& timed() const { return of_; }

 private:
  void set_up() override;
  void enqueue(std::vector<executor::Mark>& marks) override;
  void tear_down() noexcept override { operands_.reset(); }

  TimedBlock of_;
  std::vector<const models::Operation*> operations_;
  std::unique_ptr<Operands> operands_;
  int turn_ = 0;
};

/// One operation (the block's only one), as often as fills an interval, around operands that no
/// cache holds. Products are compared first. One part: the mean time of one.
class OperationOnQueue : public QueueSubject {
 public:
  OperationOnQueue(TimedBlock of, QueueBench& bench) : QueueSubject{bench}, of_{std::move(of)} {}
  std::string name() const override { return of_.name; }
  std::size_t parts() const override { return 1; }
  const models::Operation& operation() const { return of_.block->operations.front(); }
  const TimedBlock& timed() const { return of_; }

 private:
  void set_up() override;
  void enqueue(std::vector<executor::Mark>& marks) override;
  void tear_down() noexcept override { operands_.reset(); }
  int repeats(std::size_t) const override { return repeats_; }

  TimedBlock of_;
  std::unique_ptr<Operands> operands_;
  int repeats_ = 1, turn_ = 0;
};

/// Memory to memory on the device. One part.
class CopyOnQueue : public QueueSubject {
 public:
  CopyOnQueue(Bytes size, QueueBench& bench) : QueueSubject{bench}, size_{size} {}
  std::string name() const override;
  std::size_t parts() const override { return 1; }
  Bytes size() const { return size_; }

 private:
  void set_up() override;
  void enqueue(std::vector<executor::Mark>& marks) override;
  void tear_down() noexcept override;
  int repeats(std::size_t) const override { return repeats_; }

  Bytes size_;
  std::vector<std::byte*> memory_;  // from, to, from, to ...
  int repeats_ = 1;
};

/// Between the host's memory, as a program's own allocation has it, and the device's; the host
/// waits, so its clock tells. Parts are to the device and back.
class HostCopy : public Subject {
 public:
  HostCopy(Bytes size, QueueBench& bench) : size_{size}, bench_{bench} {}
  std::string name() const override;
  std::size_t parts() const override { return 2; }
  Bytes size() const { return size_; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  Bytes size_;
  QueueBench& bench_;
  std::vector<std::byte> host_;
  std::byte* memory_ = nullptr;
};

/// A block of small operations, many times over without a mark. Parts are the host's time of one
/// launch, and the queue's of one operation when the host is ahead.
class LaunchSubject : public Subject {
 public:
  LaunchSubject(TimedBlock of, QueueBench& bench);
  std::string name() const override { return "launch of " + of_.name; }
  std::size_t parts() const override { return 2; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override { operands_.reset(); }

 private:
  TimedBlock of_;
  QueueBench& bench_;
  std::vector<const models::Operation*> operations_;
  std::unique_ptr<Operands> operands_;
};

}  // namespace orrery::calibrate

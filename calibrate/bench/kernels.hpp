#pragma once
// Times work on a device's compute queue: a block's operations one after another, one operation
// repeatedly, and the cost of launching them.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/bench/operands.hpp"
#include "calibrate/bench/rank_set.hpp"
#include "executor/device/graphs.hpp"

namespace orrery::calibrate {

/// A block and how to time it. The block must outlive its subject.
struct TimedBlock {
  std::string name;  // "bf16 gpt 512 x 128 layer.forward"
  const models::Block* block = nullptr;
  std::int64_t tokens = 1;  // token ids that it reads are below this
  /// The block whose operations the times are recorded for, one by one; null: `block`. They differ
  /// where the executor multiplies by the vocabulary head's weight the other way around than the
  /// Program says.
  const models::Block* priced = nullptr;
  bool alone = false;        // a block of one operation, repeated until it fills an interval
  bool compared = false;     // its GEMMs are checked before they are timed
  bool first = false;        // of a plan that is run next: measured before the others
  bool with_others = false;  // also timed with several ranks concurrently

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

/// Times every operation of a block in sequence, on every rank, as in a training step: an operation
/// finds its operands as the one before left them, and runs alternate between a few copies of the
/// operands, as layers do. A single operation (`alone`) is repeated over operands that are in no
/// cache. A part is an operation; its time is the mean over the ranks.
class KernelSubject : public TimedSubject {
 public:
  KernelSubject(TimedBlock of, RankSet& ranks);
  std::string name() const override { return of_.name; }
  std::size_t parts() const override { return operations_.size(); }
  const std::vector<const models::Operation*>& operations() const { return operations_; }
  const TimedBlock& timed() const { return of_; }

 private:
  void set_up() override;
  void set_up(int rank);
  void compare();
  void enqueue(int rank, SegmentTimer& timer) override;
  void tear_down() noexcept override;
  bool repeated() const override { return of_.alone; }

  struct OnRank {
    std::unique_ptr<Operands> operands;
    std::vector<std::vector<BoundOperation>> bound;  // by copy, by operation
    std::size_t turn = 0;
  };
  TimedBlock of_;
  std::vector<const models::Operation*> operations_;
  std::vector<OnRank> on_;
};

/// Launches a block of small operations many times: one by one, or captured as one CUDA graph and
/// launched as a whole. Parts: the host's time of one launch, and the queue's time of one kernel
/// while the host is ahead.
class LaunchSubject : public Subject {
 public:
  enum class As : std::uint8_t { kernels, graph };

  /// Requires operations that the bench's device runs and, for a graph, a device with graphs.
  LaunchSubject(TimedBlock of, Bench& bench, As as);
  std::string name() const override;
  std::size_t parts() const override { return 2; }
  /// Kernels in one launch of the whole block; for a graph, known after `prepare`.
  std::int64_t kernels() const { return kernels_; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  void launch_all();

  TimedBlock of_;
  Bench& bench_;
  As as_;
  std::vector<const models::Operation*> operations_;
  std::unique_ptr<Operands> operands_;
  std::optional<executor::Graph> graph_;
  std::int64_t kernels_ = 0;
};

}  // namespace orrery::calibrate

#pragma once
// The input of a rank as a lane of its own: a thread reads the batches of later steps and makes
// tokens and labels of them while a step runs, so many steps ahead; a step takes its batch and
// waits for what is not ready. What models/data/data_lane.hpp predicts: one loader, a buffer of
// `ahead.batches` places, and a finished batch stays with the loader while the buffer is full.
// Leaves out several loaders of a rank, and copies to the device ahead of a step.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "executor/run/settings.hpp"

namespace orrery::executor {

/// The part of every global batch that one rank reads.
struct BatchShape {
  std::int64_t samples = 1;                // of a step
  std::int64_t first = 0;                  // index of its first in the global batch
  std::int64_t seq_len = 1;                // tokens of a sample, without the last label
  std::int64_t source_len = 0;             // tokens before them that an encoder reads
  std::span<const std::int64_t> places{};  // of a sample that the rank holds
  bool masked = false;                     // predicts masked tokens, not each next one
  std::uint64_t seed = 0;                  // of masks
  std::int64_t vocabulary = 0;

  /// Token ids of all samples, then their labels, then what their encoder reads.
  std::size_t values() const {
    return static_cast<std::size_t>(samples) *
           (2 * places.size() + static_cast<std::size_t>(source_len));
  }
};

/// The batch of one step.
struct Batch {
  std::int64_t step = -1;
  std::vector<std::int64_t> values;
  InputTimes times{};                        // read and decode
  std::exception_ptr failure{};              // instead of values
  std::vector<std::int64_t> sample, labels;  // room for one sample
};

/// Reads a step's samples and cuts them into what the rank trains on. `each` is called after every
/// sample. Errors  as TokenSource::fill
void make_batch(const TokenSource& source, const BatchShape& shape, std::int64_t step, Batch& batch,
                const std::function<void()>& each);

/// The reader of one rank. Source and places outlive it.
class Reader {
 public:
  Reader(const TokenSource& source, BatchShape shape, ReadAhead ahead);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// The batch of a step, valid until the next call; what is read ahead is of the steps after it.
  /// `alive` is called now and then while samples are read for it. `times.wait` is how long the
  /// caller waited. Errors  what reading this batch threw
  const Batch& take(std::int64_t step, const std::function<void()>& alive);

 private:
  void read_on();
  Batch& slot(std::int64_t step) { return slots_[static_cast<std::size_t>(step) % slots_.size()]; }
  void wait_for(std::unique_lock<std::mutex>& lock, std::int64_t step,
                const std::function<void()>& alive);

  const TokenSource& source_;
  BatchShape shape_;
  ReadAhead ahead_;
  std::vector<Batch> slots_;  // one is being used, one made, the others wait
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_ = 0;     // step that the thread reads
  std::int64_t taken_ = -1;   // step that is being used
  std::int64_t samples_ = 0;  // read so far
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace orrery::executor

#include "executor/run/reader.hpp"

#include <algorithm>
#include <chrono>

#include "executor/run/weights/masks.hpp"

namespace orrery::executor {

namespace {

using ReaderClock = std::chrono::steady_clock;

Time since(ReaderClock::time_point begin) {
  return from_seconds(std::chrono::duration<double>(ReaderClock::now() - begin).count());
}

}  // namespace

void make_batch(const TokenSource& source, const BatchShape& shape, std::int64_t step, Batch& batch,
                const std::function<void()>& each) {
  const ReaderClock::time_point begin = ReaderClock::now();
  batch.step = step;
  batch.failure = nullptr;
  batch.values.resize(shape.values());
  const auto source_len = static_cast<std::size_t>(shape.source_len);
  batch.sample.resize(source_len + static_cast<std::size_t>(shape.seq_len) + 1);
  batch.labels.resize(batch.sample.size());
  const auto first_of_source =
      batch.values.end() -
      static_cast<std::ptrdiff_t>(static_cast<std::size_t>(shape.samples) * source_len);
  const auto held = std::ssize(shape.places);
  Time read{};
  for (std::int64_t i = 0; i < shape.samples; ++i) {
    read += source.fill(step, shape.first + i, batch.sample);
    std::rotate_copy(batch.sample.begin(), batch.sample.begin() + 1, batch.sample.end(),
                     batch.labels.begin());
    if (shape.masked) {
      mask({.seed = shape.seed,
            .step = step,
            .sample = shape.first + i,
            .vocabulary = shape.vocabulary},
           std::span{batch.sample}.first(batch.sample.size() - 1), batch.labels);
    }
    for (std::int64_t token = 0; token < held; ++token) {
      const auto here =
          source_len + static_cast<std::size_t>(shape.places[static_cast<std::size_t>(token)]);
      batch.values[static_cast<std::size_t>(i * held + token)] = batch.sample[here];
      batch.values[static_cast<std::size_t>((shape.samples + i) * held + token)] =
          batch.labels[here];
    }
    std::copy_n(batch.sample.begin(), source_len, first_of_source + i * shape.source_len);
    if (each) each();
  }
  batch.times = {.read = read, .decode = since(begin) - read};
}

Reader::Reader(const TokenSource& source, BatchShape shape, ReadAhead ahead)
    : source_{source},
      shape_{shape},
      ahead_{ahead},
      slots_(ahead.background ? static_cast<std::size_t>(ahead.batches) + 2 : 1) {}

Reader::~Reader() {
  {
    const std::lock_guard lock{mutex_};
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// Reads step after step while there is a slot: `batches` wait, one more is finished or being made.
void Reader::read_on() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [&] { return ended_ || next_ - taken_ <= ahead_.batches + 1; });
    if (ended_) return;
    const std::int64_t step = next_;
    Batch& batch = slot(step);
    lock.unlock();
    const auto each = [&] {
      const std::lock_guard counting{mutex_};
      ++samples_;
    };
    try {
      make_batch(source_, shape_, step, batch, each);
    } catch (...) {
      batch.step = step;
      batch.failure = std::current_exception();
    }
    lock.lock();
    if (next_ == step) ++next_;  // else a step elsewhere was asked for meanwhile
    changed_.notify_all();
  }
}

void Reader::wait_for(std::unique_lock<std::mutex>& lock, std::int64_t step,
                      const std::function<void()>& alive) {
  constexpr std::chrono::milliseconds heartbeat{100};
  std::int64_t seen = samples_;
  while (!changed_.wait_for(lock, heartbeat, [&] { return next_ > step; })) {
    if (samples_ != seen && alive) alive();
    seen = samples_;
  }
}

const Batch& Reader::take(std::int64_t step, const std::function<void()>& alive) {
  const ReaderClock::time_point begin = ReaderClock::now();
  if (!ahead_.background) {
    make_batch(source_, shape_, step, slots_.front(), alive);
    slots_.front().times.wait = since(begin);
    return slots_.front();
  }
  std::unique_lock lock{mutex_};
  if (step != taken_ + 1 || !thread_.joinable()) {  // the first, or that of a resumed run
    next_ = step;
    taken_ = step - 1;
    if (!thread_.joinable()) thread_ = std::thread{[this] { read_on(); }};
    changed_.notify_all();
  }
  wait_for(lock, step, alive);
  taken_ = step;
  changed_.notify_all();
  Batch& batch = slot(step);
  batch.times.wait = since(begin);
  if (batch.failure) std::rethrow_exception(batch.failure);
  return batch;
}

}  // namespace orrery::executor

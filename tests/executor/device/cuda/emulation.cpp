// Fibers: each has a stack of its own, entered once by ucontext and from then on by _longjmp, which
// asks nothing of the kernel. Sanitizers follow swapcontext only.

#undef _FORTIFY_SOURCE  // its longjmp takes a jump to another stack for a mistake

#include "tests/executor/device/cuda/emulation.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ORRERY_SLOW_FIBERS
#endif

namespace orrery::executor::cuda::emulation {

namespace {

constexpr std::size_t stack_bytes = 256 * 1024;

/// Opens for all who wait once the last has come.
struct Gate {
  unsigned opened = 0, waiting = 0;
};

/// Lanes give in one half of `given` while what was given before is still read in the other.
struct Warp {
  Gate gate;
  unsigned size = 0;
  alignas(16) std::byte given[2][lanes * lane_bytes];
};

struct Fiber {
  ucontext_t context;
  jmp_buf place;
  bool entered = false, done = false;
  const Gate* waits_at = nullptr;
  unsigned opened_before = 0;
  std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]};

  bool ready() const { return !done && (waits_at == nullptr || waits_at->opened != opened_before); }
};

/// The threads of one block at a time; made once for each thread of the host and used again.
class Block {
 public:
  void run(dim3 threads, std::size_t shared_bytes, bool backwards, void (*body)(void*), void* of);
  void wait(Gate& gate, unsigned expected);
  void wait_for_all() { wait(gate_, count_); }
  [[noreturn]] void live();

  Warp& warp() { return warps_[current_ / lanes]; }
  unsigned lane() const { return current_ % lanes; }
  std::byte* shared() { return shared_; }

 private:
  void prepare(dim3 threads, std::size_t shared_bytes);
  bool step_warp(unsigned warp, bool backwards);
  void step(unsigned thread);
  void enter(Fiber& fiber);
  void leave(Fiber& fiber);
  [[noreturn]] void fail();

  dim3 threads_;
  unsigned count_ = 0, current_ = 0, alive_ = 0;
  Gate gate_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  std::vector<std::byte> memory_;
  std::byte* shared_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* of_ = nullptr;
  std::exception_ptr error_;
  ucontext_t scheduler_;
  jmp_buf return_;
};

thread_local Block block;

void begin() {
  block.live();
}

/// Dynamic shared memory is aligned to 128 bytes and ends where it was said to, for sanitizers.
void Block::prepare(dim3 threads, std::size_t shared_bytes) {
  constexpr std::size_t alignment = 128;
  threads_ = blockDim = threads;
  count_ = alive_ = threads.x * threads.y * threads.z;
  gate_ = {};
  error_ = nullptr;
  while (fibers_.size() < count_) fibers_.push_back(std::make_unique<Fiber>());
  warps_.resize((count_ + lanes - 1) / lanes);
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].gate = {};
    warps_[w].size = std::min(lanes, count_ - static_cast<unsigned>(w) * lanes);
  }
  for (unsigned t = 0; t < count_; ++t) {
    fibers_[t]->done = false;
    fibers_[t]->waits_at = nullptr;
  }
  memory_.assign(shared_bytes + alignment, std::byte{0xff});
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  shared_ = memory_.data() + (alignment - address % alignment) % alignment;
}

void Block::run(dim3 threads, std::size_t shared_bytes, bool backwards, void (*body)(void*),
                void* of) {
  prepare(threads, shared_bytes);
  body_ = body;
  of_ = of;
  while (alive_ > 0) {
    bool moved = false;
    for (unsigned i = 0; i < warps_.size(); ++i) {
      const auto last = static_cast<unsigned>(warps_.size()) - 1;
      while (step_warp(backwards ? last - i : i, backwards)) moved = true;
    }
    if (moved) continue;
    error_ = std::make_exception_ptr(std::logic_error{"a barrier that some thread never reaches"});
    fail();
  }
}

/// A turn for each lane that does not wait. False: all do, or have ended.
bool Block::step_warp(unsigned warp, bool backwards) {
  bool moved = false;
  const unsigned size = warps_[warp].size;
  for (unsigned i = 0; i < size; ++i) {
    const unsigned thread = warp * lanes + (backwards ? size - 1 - i : i);
    if (!fibers_[thread]->ready()) continue;
    step(thread);
    moved = true;
    if (error_) fail();
  }
  return moved;
}

/// Fibers that stopped halfway cannot be used again.
void Block::fail() {
  fibers_.clear();
  std::rethrow_exception(error_);
}

void Block::step(unsigned thread) {
  current_ = thread;
  threadIdx = dim3{thread % threads_.x, thread / threads_.x % threads_.y,
                   thread / (threads_.x * threads_.y)};
  enter(*fibers_[thread]);
}

void Block::enter(Fiber& fiber) {
  if (!fiber.entered) {
    fiber.entered = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, begin, 0);
#ifndef ORRERY_SLOW_FIBERS
    if (_setjmp(return_) == 0) setcontext(&fiber.context);
    return;
#endif
  }
#ifdef ORRERY_SLOW_FIBERS
  swapcontext(&scheduler_, &fiber.context);
#else
  if (_setjmp(return_) == 0) _longjmp(fiber.place, 1);
#endif
}

void Block::leave(Fiber& fiber) {
#ifdef ORRERY_SLOW_FIBERS
  swapcontext(&fiber.context, &scheduler_);
#else
  if (_setjmp(fiber.place) == 0) _longjmp(return_, 1);
#endif
}

/// A fiber's life: one thread of a block after another.
void Block::live() {
  for (;;) {
    try {
      body_(of_);
    } catch (...) {
      error_ = std::current_exception();
    }
    Fiber& self = *fibers_[current_];
    self.done = true;
    --alive_;
    leave(self);
  }
}

void Block::wait(Gate& gate, unsigned expected) {
  Fiber& self = *fibers_[current_];
  if (++gate.waiting == expected) {
    gate.waiting = 0;
    ++gate.opened;
    return;
  }
  self.waits_at = &gate;
  self.opened_before = gate.opened;
  leave(self);
  self.waits_at = nullptr;
}

}  // namespace

void run(dim3 blocks, dim3 threads, std::size_t shared_bytes, void (*body)(void*), void* of) {
  gridDim = blocks;
  bool backwards = false;
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = dim3{x, y, z};
        block.run(threads, shared_bytes, backwards, body, of);
        backwards = !backwards;
      }
    }
  }
}

void wait_for_block() {
  block.wait_for_all();
}

void wait_for_warp() {
  Warp& warp = block.warp();
  block.wait(warp.gate, warp.size);
}

unsigned lane() {
  return block.lane();
}
unsigned warp_size() {
  return block.warp().size;
}
std::byte* shared_memory() {
  return block.shared();
}

const std::byte* exchange(const void* mine, std::size_t size) {
  Warp& warp = block.warp();
  std::byte* given = warp.given[warp.gate.opened % 2];
  std::memcpy(given + block.lane() * lane_bytes, mine, size);
  block.wait(warp.gate, warp.size);
  return given;
}

}  // namespace orrery::executor::cuda::emulation

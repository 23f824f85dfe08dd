#pragma once
// The memory of one rank: what it holds for the whole run, and the arena, whose buffers are counted
// as instructions bind and free them.

#include <memory>
#include <vector>

#include "executor/layout/memory_plan.hpp"
#include "executor/run/settings.hpp"

namespace orrery::executor {

class HeldMemory {
 public:
  HeldMemory(const models::RankClass& ranks, const MemoryPlan& plan, Device& device, Freed freed);

  std::byte* arena() const { return held_.front().get(); }
  /// Memory for the whole run, cleared by the compute queue.
  std::byte* hold(models::BufferKind kind, std::int64_t bytes);

  /// The same of the host, where what is offloaded lies; not among what the device holds.
  std::byte* hold_on_host(std::int64_t bytes);

  void begin_step() { next_change_ = 0; }
  /// Counts the buffers that an instruction binds or, at its end, frees.
  void follow(std::uint32_t instruction, bool at_end);
  const MeasuredMemory& measured() const { return measured_; }

 private:
  struct Release {
    Device& device;
    bool of_host = false;
    void operator()(std::byte* memory) const {
      of_host ? device.release_host(memory) : device.release(memory);
    }
  };

  std::byte* allocate(std::int64_t bytes);
  void poison(std::int64_t offset, std::int64_t bytes);

  const models::RankClass& ranks_;
  const MemoryPlan& plan_;
  Device& device_;
  Freed freed_;
  std::vector<std::unique_ptr<std::byte, Release>> held_;  // the arena first
  std::size_t next_change_ = 0;
  models::MemoryByKind by_kind_{};
  MeasuredMemory measured_;
};

}  // namespace orrery::executor

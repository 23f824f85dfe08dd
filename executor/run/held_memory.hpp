#pragma once
// Owns the memory of one rank: what is held for the whole run, and the arena. Counts how much is in
// use as instructions bind and free buffers; where these lie in the arena is decided in
// executor/layout/memory_plan.hpp.

#include <memory>
#include <vector>

#include "executor/layout/memory_plan.hpp"
#include "executor/run/settings.hpp"

namespace orrery::executor {

/// Allocations of one rank and the measured peak.
class HeldMemory {
 public:
  HeldMemory(const models::RankClass& ranks, const MemoryPlan& plan, Device& device, Freed freed);

  std::byte* arena() const { return held_.front().get(); }
  /// Device memory for the whole run, zeroed on the compute queue.
  std::byte* hold(models::BufferKind kind, std::int64_t bytes);

  /// Zeroed host memory for the whole run, for what is offloaded; not counted as the device's.
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

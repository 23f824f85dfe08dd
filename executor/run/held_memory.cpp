#include "executor/run/held_memory.hpp"

#include <algorithm>

namespace orrery::executor {

HeldMemory::HeldMemory(const models::RankClass& ranks, const MemoryPlan& plan, Device& device,
                       Freed freed)
    : ranks_{ranks}, plan_{plan}, device_{device}, freed_{freed} {
  allocate(plan.arena());
  if (freed_ == Freed::poisoned) poison(0, plan.arena());
}

std::byte* HeldMemory::allocate(std::int64_t bytes) {
  held_.emplace_back(device_.allocate(Bytes{bytes}), Release{device_});
  measured_.allocated += Bytes{bytes};
  return held_.back().get();
}

std::byte* HeldMemory::hold(models::BufferKind kind, std::int64_t bytes) {
  std::byte* const memory = allocate(bytes);
  device_.zero(memory, Bytes{bytes});
  by_kind_[static_cast<std::size_t>(kind)] += Bytes{bytes};
  return memory;
}

std::byte* HeldMemory::hold_on_host(std::int64_t bytes) {
  held_.emplace_back(device_.allocate_host(Bytes{bytes}), Release{device_, true});
  std::fill_n(held_.back().get(), bytes, std::byte{});
  measured_.host += Bytes{bytes};
  return held_.back().get();
}

void HeldMemory::follow(std::uint32_t instruction, bool at_end) {
  const auto& changes = plan_.changes();
  bool grew = false;
  for (; next_change_ < changes.size() && changes[next_change_].instruction == instruction &&
         changes[next_change_].at_end == at_end;
       ++next_change_) {
    const MemoryPlan::Change& change = changes[next_change_];
    by_kind_[static_cast<std::size_t>(change.kind)] += Bytes{change.bytes};
    grew = grew || change.bytes > 0;
    const bool freed = change.bytes < 0 && change.kind != models::BufferKind::workspace;
    const bool sent = ranks_.instructions[instruction].op == models::Opcode::send;
    if (freed && !sent && freed_ == Freed::poisoned) poison(change.offset, -change.bytes);
  }
  if (!grew || models::total(by_kind_) <= measured_.peak) return;
  measured_.peak = models::total(by_kind_);
  measured_.by_kind = by_kind_;
  measured_.instruction = instruction;
}

/// Fills memory with set bits, which are NaN in every format.
void HeldMemory::poison(std::int64_t offset, std::int64_t bytes) {
  device_.finish();
  const std::vector<std::byte> nan(static_cast<std::size_t>(bytes), std::byte{0xff});
  device_.write(nan.data(), arena() + offset, Bytes{bytes});
}

}  // namespace orrery::executor

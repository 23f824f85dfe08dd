#pragma once
// Memory as a property of the Program: what is alive when each instruction runs, by kind. The
// host's order of instructions is the order of allocation, as in an arena or a caching allocator.

#include <array>
#include <cstdint>
#include <vector>

#include "models/program/program.hpp"

namespace orrery::models {

/// Bytes by BufferKind.
using MemoryByKind = std::array<Bytes, buffer_kind_count>;
Bytes total(const MemoryByKind& memory);

struct MemoryPeak {
  MemoryByKind by_kind{};       // at the peak
  std::size_t instruction = 0;  // where it is reached
};

/// The highest sum of live buffers of one rank: what it holds for the whole step, what is bound,
/// and the temporaries of the running phase.
MemoryPeak memory_peak(const Program& program, std::uint32_t rank_class);
/// Of every class, by its index.
std::vector<MemoryPeak> memory_peaks(const Program& program);

}  // namespace orrery::models

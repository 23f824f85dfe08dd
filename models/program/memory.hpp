#pragma once
// Memory of one rank as a property of the Program: which buffers are alive when each instruction
// runs, by kind. Buffers are allocated in the host's instruction order, as by an arena or a caching
// allocator; sizes are summed, fragmentation is left out.

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
  std::size_t instruction = 0;  // index of the instruction that reaches it
};

/// Peak memory of a rank of every class, by its index: buffers held for the whole step, buffers
/// bound by instructions, and the temporaries of the running phase.
std::vector<MemoryPeak> memory_peaks(const Program& program);

}  // namespace orrery::models

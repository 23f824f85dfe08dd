#pragma once
// The ways to compute an attention; `launch_attention` chooses.

#include <cstdint>

#include "executor/device/cuda/kernels/call.hpp"

namespace orrery::executor::cuda {

// On tensor cores, of 16-bit storage; and plainly, of the rest.
void flash_forward(const Call& call);
void flash_backward(const Call& call);
void plain_forward(const Call& call);
void plain_backward(const Call& call);
// Of documents, of ranks that share sequences, and of values that are not as wide as keys.
void placed_forward(const Call& call);
void placed_backward(const Call& call);

/// Rows of statistics that backward keeps of a head of one sequence: as many as whole tiles have.
inline std::int64_t statistics_rows(const models::AttentionShape& shape) {
  constexpr std::int64_t tile = 128;
  return (shape.seq + tile - 1) / tile * tile;
}

}  // namespace orrery::executor::cuda

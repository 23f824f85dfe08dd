#pragma once
// The kernels that compute an attention; `launch_attention` chooses among them.

#include <cstdint>

#include "executor/device/cuda/kernels/call.hpp"

namespace orrery::executor::cuda {

// For 16-bit storage, on tensor cores; and for the rest, without them.
void flash_forward(const Call& call);
void flash_backward(const Call& call);
void plain_forward(const Call& call);
void plain_backward(const Call& call);
// For packed documents, ranks that share sequences, and values that are not as wide as keys.
void placed_forward(const Call& call);
void placed_backward(const Call& call);

/// Rows of statistics that backward keeps for a head of one sequence: seq rounded up to whole
/// tiles.
inline std::int64_t statistics_rows(const models::AttentionShape& shape) {
  constexpr std::int64_t tile = 128;
  return (shape.seq + tile - 1) / tile * tile;
}

}  // namespace orrery::executor::cuda

#pragma once
// Fused attention that never stores the [seq, seq] scores: forward keeps one log-sum-exp per query,
// from which backward computes the weights again, tile by tile.
//
// 16-bit storage runs on tensor cores with sums in fp32, for any head_dim that is a multiple of 8
// up to 128; fp32 and fp64 run without tensor cores, far slower. Supports causal masks, sliding
// windows, and any number of key-value heads that divides the query heads. Equal calls give equal
// bits.
// Source  Dao 2023, "FlashAttention-2", arXiv 2307.08691

#include <cstddef>
#include <cstdint>
#include <string>

#include "executor/device/cuda/kernels/experts/token_places.hpp"
#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// Why an attention or its backward cannot run here; empty: it can.
///   "no fused attention with head_dim 256 in bf16; supported: multiples of 8 up to 128"
std::string attention_refusal(const models::Operation& operation);

/// Bytes of scratch that `launch_attention` may overwrite while the operation runs.
std::int64_t attention_scratch_bytes(const models::Operation& operation);

/// Enqueues OpKind::attention (qkv -> out, log-sum-exp of the scaled scores) or
/// OpKind::attention_backward (qkv, out, log-sum-exp, gradient of out -> gradient of qkv,
/// overwritten) after all work on the stream. `scratch` and all operands of 16 bits are aligned to
/// 16 bytes. Where ranks share a sequence, `tokens` says which tokens are here, as on the CPU.
void launch_attention(const Kernel& kernel, Stream stream, std::byte* scratch,
                      const TokenPlaces& tokens = {});

/// Is it an attention of whole sequences, whose values are as wide as keys?
bool is_whole(const models::Operation& operation);

}  // namespace orrery::executor::cuda

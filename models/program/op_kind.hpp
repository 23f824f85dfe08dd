#pragma once
// The kinds of operations in a block, by what they compute. Shapes and sizes are in Operation.

#include <cstdint>
#include <string_view>

namespace orrery::models {

/// What an operation computes. An executor needs this and the attributes in `Operation`, no more.
enum class OpKind : std::uint8_t {
  gemm,                // writes[0] (+)= op(reads[0]) x op(reads[1])
  batched_gemm,        // one GEMM per head: attention scores, context and their gradients
  attention,           // fused forward: q k v -> out, log-sum-exp
  attention_backward,  // fused backward
  softmax,             // scale, mask, softmax (and dropout) of the scores
  softmax_backward,
  norm,
  norm_backward,
  rotary,
  rotary_backward,
  activation,  // gelu; silu(gate) * up
  activation_backward,
  add,  // residual (with bias and dropout where the model has them)
  add_backward,
  embedding,
  embedding_backward,
  cross_entropy,  // softmax and loss over vocabulary shards
  cross_entropy_backward,
  quantise,    // cast to or from few bits with scales; or the amax reduction for a scale
  accumulate,  // gradient accumulator += new gradient
  squared_norm,
  adam,
  cast,
  collective,
  copy,          // between the GPU and its host
  top_k,         // gradients += residual; the k largest and their indices; residual = the rest
  scatter_add,   // gradients = 0, then += every rank's values at their indices
  grouped_gemm,  // one GEMM for each expert, with rows and a weight of its own
  route,         // softmax or sigmoid over the experts, the k best and their weights
  route_backward,
  permute,        // reorder rows; a token's row is repeated for each of its copies
  unpermute,      // the inverse; copies of a token are summed
  orthogonalise,  // make a matrix's columns orthonormal, in place (PowerSGD)
  transpose,      // of a matrix
  scan,           // a recurrence over a sequence, chunk by chunk, with the convolution before it
  scan_backward,
  convolution,  // as an implicit GEMM
  kernel,       // by name, with its FLOPs and traffic
  host_work,    // of the host, for a stated time
};
inline constexpr int op_kind_count = 39;
std::string_view name(OpKind kind);
/// Is it a GEMM: single, batched or grouped?
constexpr bool is_gemm(OpKind kind) {
  return kind == OpKind::gemm || kind == OpKind::batched_gemm || kind == OpKind::grouped_gemm;
}

}  // namespace orrery::models

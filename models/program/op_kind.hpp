#pragma once
// What operations compute.

#include <cstdint>
#include <string_view>

namespace orrery::models {

/// What an operation computes. Its attributes are in `Operation`; an executor needs no more.
enum class OpKind : std::uint8_t {
  gemm,                // writes[0] (+)= op(reads[0]) x op(reads[1])
  batched_gemm,        // per head: attention scores, context and their gradients
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
  quantise,    // cast to few bits with its scales, or from them; or what a scale is found from
  accumulate,  // gradient += fresh gradient
  squared_norm,
  adam,
  cast,
  collective,
  copy,          // between the GPU and its host
  top_k,         // gradients += residual; the k largest and their places; residual = the rest
  scatter_add,   // gradients = 0, then += every rank's values at their places
  grouped_gemm,  // as gemm for each expert, which has rows and a weight of its own
  route,         // softmax or sigmoid over the experts, the k best and their weights
  route_backward,
  permute,        // rows in another order, each as often as its token has copies
  unpermute,      // and back, the copies of a token added up
  orthogonalise,  // a matrix's columns in place, each made a unit vector at right angles to others
  transpose,      // a matrix's rows as columns
};
inline constexpr int op_kind_count = 34;
std::string_view name(OpKind kind);
/// Is it one matrix product or several?
constexpr bool is_product(OpKind kind) {
  return kind == OpKind::gemm || kind == OpKind::batched_gemm || kind == OpKind::grouped_gemm;
}

}  // namespace orrery::models

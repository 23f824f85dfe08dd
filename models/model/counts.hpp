#pragma once
// A model's parameters and forward FLOPs: sums over the matrices of its parts. Leaves out backward
// and, of parts that are only counted, the arithmetic of their states.

#include <cstdint>
#include <string>

#include "models/model/model.hpp"

namespace orrery::models {

/// Parameters of a model: embedding tables and the matrices between their width and the layers',
/// the layers' parts (layer.hpp) each after a norm, final norm, and a head unless it is tied. Each
/// layer that predicts a further token has a layer's parameters, a matrix 2 h h and three norms.
/// Source   the tensors of these families in the transformers library; a norm is h weights, and h
///          biases when it is a layer norm with bias
std::int64_t count_parameters(const Model& model);

/// Those of them in layers that predict further tokens (MTP), which inference drops.
std::int64_t count_prediction_parameters(const Model& model);

/// Parameters that one token uses: of a layer's experts only those that it is sent to.
std::int64_t count_active_parameters(const Model& model);

/// The sum of count_parameters in symbols, with only the terms that this model has.
std::string parameter_formula(const Model& model);

/// How often a matrix of a layer multiplies for each token of the decoder's sequences of `seq_len`:
/// once, and in an encoder, and of its output as keys and values, once for each of the source's
/// tokens.
double passes_per_token(const Model& model, const Layer& layer, const LayerMatrix& matrix,
                        std::int64_t seq_len);

/// Weights that multiply one token in the forward GEMMs, with the experts that the token is sent
/// to. The LM head counts, tied or not; BERT's pooler (one token per sequence) does not.
std::int64_t count_gemm_parameters(const Model& model);

/// Forward FLOPs of one token at sequence length s, averaged over the sequence: 2 for each weight
/// of count_gemm_parameters, and over layers with attention the sum of
///   2 c H (d + v)
/// c       tokens that a token of that layer attends to (attended_tokens)
/// H, d, v heads, and the widths of one head's key and value. Sparse attention is counted as full.
/// Scans of Mamba-2 and delta rules add scan_flops. Embedding look-ups, norms and softmax do not
/// count. Backward is twice forward. A generator adds its matrices, its own attention and its head
/// V h, though that table has no parameters more. Source  Narayanan et al. 2021, arXiv 2104.04473,
/// appendix (which counts c = s)
/// Of a model with an encoder, a token is the decoder's, and S tokens of a source come to s of
/// those: cross-attention adds 4 S H d, and what is done with a source token counts S / s times.
double forward_flops_per_token(const Model& model, std::int64_t seq_len);

/// Tokens that a token attends to, averaged over a sequence of s: s/2 causal (half of the square),
/// s otherwise, w - w w / 2s under a sliding window w < s, and the same within each chunk where
/// there are chunks.
double attended_tokens(const AttentionPart& attention, bool causal, std::int64_t seq_len);

/// Forward FLOPs of a sequence's images in front of a language model: of the frozen encoder with
/// its patches' matrix, and of the projector's two matrices. They are in none of the counts for
/// each token.
struct FrontFlops {
  double encoder = 0, project_up = 0, project_down = 0;
};
FrontFlops front_flops(const FrontEncoder& front, std::int64_t hidden);

/// The part of forward_flops_per_token in the layers, without those that predict further tokens.
double layers_flops_per_token(const Model& model, std::int64_t seq_len);

/// FLOPs of attention's scores and context for one token, summed over the model's layers (without
/// those that predict further tokens).
double attention_flops_per_token(const Model& model, std::int64_t seq_len);

}  // namespace orrery::models

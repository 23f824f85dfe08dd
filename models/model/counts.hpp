#pragma once
// A model's parameters and forward FLOPs, counted from its fields in closed form. Leaves out
// backward and the layers of models that are counted in a tally (import/config.hpp).

#include <cstdint>
#include <string>

#include "models/model/model.hpp"

namespace orrery::models {

/// Parameters of a Model by its fields; `Model::parameters` must equal it if the model is
/// simulated.
///   V e + P h + T h [+ 2 e h] + L (h (q + 2k) + q h + g h f + biases + norms) + final norm + head
/// V, P, T  tokens, learned positions, token types;  h  hidden;  f  width of the MLP;  L  layers
/// e        embedding_width; where it is not h, matrices e x h and h x e project in and out
/// q, k     heads and kv_heads times head_dim;  g  matrices of the MLP: 3 gated, 2 otherwise
/// head     V e when untied; BERT's transform (h h + h and a norm), bias (V) and pooler
///          (h h + h and a classifier of 2 h + 2)
/// Source   the tensors of these families in the transformers library; a norm is h weights, and h
///          biases when it is a layer norm with bias
/// Each of D prediction layers has a layer's parameters, a matrix 2 h h and three norms; a
/// generator of width g has its layers, g h + g in, h g out and a bias of V. A layer with E experts
/// has a router h E and E such MLPs besides its shared expert; latent attention has its own
/// matrices (parameters.cpp).
std::int64_t count_parameters(const Model& model);

/// Those of them in layers that predict further tokens (MTP), which inference drops.
std::int64_t count_prediction_parameters(const Model& model);

/// Parameters that one token uses: of a layer's experts only those that it is sent to.
std::int64_t count_active_parameters(const Model& model);

/// The sum of count_parameters in symbols, with only the terms that this model has.
std::string dense_formula(const Model& model);

/// Weights that multiply one token in the forward GEMMs: the first bracket of
/// forward_flops_per_token, with the experts that the token is sent to.
std::int64_t dense_gemm_parameters(const Model& model);

/// Forward FLOPs of one token at sequence length s, averaged over the sequence.
///   2 (L (h (q + 2k) + q h + g h f) + V e [+ 2 e h] [+ h h]) + sum over layers of 4 q c
/// c       tokens that a token of that layer attends to (attended_tokens)
/// q       in the attention term: the mean of key and value width where they differ; only layers
///         with attention count; sparse attention is counted as full, state-space arithmetic is
///         left out
/// h h     BERT's head transform; the LM head counts, embedding look-ups, norms, softmax and the
///         pooler (one token per sequence) do not. Backward is twice forward. A generator adds its
///         matrices, its own attention and its head V h, though that table has no parameters more.
/// Source  Narayanan et al. 2021, arXiv 2104.04473, appendix (which counts c = s)
double forward_flops_per_token(const Model& model, std::int64_t seq_len);

/// Tokens that a token attends to in a model of equal layers, averaged over a sequence of s: s/2
/// causal (half of the square), s otherwise, w - w w / 2s under a sliding window w < s, and the
/// same within each chunk where there are chunks.
double attended_tokens(const Model& layer, std::int64_t seq_len);

/// FLOPs of attention's scores and context for one token, summed over the model's layers (without
/// those that predict further tokens).
double attention_flops_per_token(const Model& model, std::int64_t seq_len);

}  // namespace orrery::models

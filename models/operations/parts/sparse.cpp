#include "models/operations/parts/sparse.hpp"

#include <algorithm>

namespace orrery::models {

namespace {

/// Queries whose scores exist at a time.
/// Source  DeepSeek-AI 2025, DeepSeek-V3.2-Exp: the indexer's logits are made for chunks of queries
constexpr std::int64_t scored_at_once = 1024;

constexpr const char* index_names[] = {"index_query", "index_key", "index_weight"};

}  // namespace

/// Queries of the indexer come from the normalised latent of queries, where there is one.
OperandId SparseSelection::query_source(OperandId in) {
  if (attention_.latents->query_rank == 0) return in;
  return features("query_norm.out", Role::saved, attention_.latents->query_rank,
                  rows_layout(inputs_.plan));
}

OperandId SparseSelection::projected(const LayerMatrix& matrix, Role role) {
  const std::string name =
      role == Role::temporary ? matrix.name + ".out.grad" : matrix.name + ".out";
  return features(name, role, matrix.out, rows_layout(inputs_.plan));
}

/// [T, k] indices of the selected tokens.
OperandId SparseSelection::chosen() {
  const std::int64_t most = std::min(attention_.indexer->top, length());
  return block_.operand("attention.selected", Role::saved, DType::int32, {1, tokens(), most});
}

/// Scores of all tokens with all earlier ones, in 8 bits where the GPU has them.
Operation& SparseSelection::score(std::string_view name, double factor, OperandId out) {
  const std::vector<LayerMatrix> all = matrices_of(attention_, hidden());
  Operation& op = block_.add(OpKind::kernel, name, {}, {out});
  for (const char* each : index_names)
    op.reads.push_back(projected(matrix_of(all, each), Role::saved));
  op.reads.push_back(parameter(key_norm()));
  op.dtype = DType::fp8;
  op.time_class = TimeClass::attention;
  op.mutable_named() = {"index_scores", false, 0};
  op.flops = nearest_count<Flops>(index_flops(*attention_.indexer, length()) *
                                  static_cast<double>(tokens()) * factor);
  op.bytes = multiplied<Bytes>(tokens(), length(), 4);
  return op;
}

/// Weight and bias of the norm of its keys.
ModelTensor SparseSelection::key_norm() const {
  return {.name = "index_norm.weight",
          .uncut = {1, 2, attention_.indexer->dim},
          .initial = {Initial::Kind::ones}};
}

void SparseSelection::forward(OperandId in) {
  if (!own()) return;
  const std::vector<LayerMatrix> all = matrices_of(attention_, hidden());
  for (const char* name : index_names) {
    const LayerMatrix matrix = matrix_of(all, name);
    const bool query = std::string_view{name} == "index_query";
    linear_.forward(linear_of(matrix, {}), query ? query_source(in) : in,
                    projected(matrix, Role::saved));
  }
  // Some queries at a time, as no kernel keeps the scores of a long sequence.
  const OperandId scores =
      block_.operand("index.scores", Role::temporary, DType::fp32,
                     {1, std::min<std::int64_t>(tokens(), scored_at_once), length()});
  score("index.scores", 1, scores);
  Operation& top = block_.add(OpKind::kernel, "index.top_k", {scores}, {chosen()});
  top.mutable_named() = {"top_k", false, tokens()};
  top.flops = multiplied<Flops>(tokens(), length());  // scores that it looks at
}

/// Scores again, the target summed over the ranks that share heads, and gradients of the weights.
void SparseSelection::backward(OperandId in) {
  if (!own()) return;
  const std::vector<LayerMatrix> all = matrices_of(attention_, hidden());
  const OperandId loss = block_.operand("index.loss", Role::temporary, DType::fp32,
                                        {1, tokens(), std::min(attention_.indexer->top, length())});
  score("index.scores.again", 2, loss).writes.push_back(block_.gradient(key_norm(), gradient_));
  if (block_.mesh().degree(MeshAxis::tensor) > 1) {
    block_.collective(Collective::all_reduce, "index.target", CommunicatorRole::tensor, loss, loss);
  }
  for (const char* name : index_names) {
    const LayerMatrix matrix = matrix_of(all, name);
    const bool query = std::string_view{name} == "index_query";
    const OperandId from = query ? query_source(in) : in;
    const OperandId gradient_out = projected(matrix, Role::temporary);
    block_.add(OpKind::kernel, matrix.name + ".split", {loss}, {gradient_out});
    const ModelTensor tensor{.name = matrix.name + ".weight", .uncut = {1, matrix.in, matrix.out}};
    const OperandId sum =
        block_.gradient(tensor, gradient_, block_.at(gradient_out).sharding.axes());
    const std::int64_t rows = block_.at(gradient_out).shape[1];
    GemmShape shape{.m = matrix.in, .n = matrix.out, .k = rows, .transpose_a = true};
    shape.accumulate = true;
    block_.gemm(matrix.name + ".wgrad", from, gradient_out, sum, shape, storage_);
  }
}

void SparseSelection::narrow(Operation& core, double factor) {
  if (!attention_.indexer || core.attention().selected > 0) return;
  if (!selects_faster(attention_, length())) return;
  const std::int64_t heads = core.attention().heads;
  core.mutable_attention().selected = attention_.indexer->top;
  core.flops = nearest_count<Flops>(selected_flops(attention_, length()) /
                                    static_cast<double>(attention_.heads) *
                                    static_cast<double>(heads * tokens()) * factor);
  if (own()) core.reads.push_back(chosen());
}

}  // namespace orrery::models

#pragma once
// What the kernels of fused attention's backward share. The weights are made again from the scores
// and the log-sum-exp.
//   P = exp(scale Q K' - lse)   D = rowsum(dO o O)   dS = P o (dO V' - D)
//   dV = P' dO   dK = scale dS' Q   dQ = scale dS K
// Three kernels: row statistics; keys and values, a block for each tile of keys, which walks over
// the queries that see it, of all heads that share it; queries, a block for each tile of them. Two
// of seven products are made twice; in return nothing is added up by atomics, every sum has one
// order, and neither P nor dS leaves the registers.
// Source  Dao 2023, arXiv 2307.08691, algorithm 2

#include "executor/device/cuda/attention/flash_shape.hpp"
#include "executor/device/cuda/stream.hpp"

namespace orrery::executor::cuda {

/// Of one query: log-sum-exp in units of log 2, and D. What is past the last query has infinity,
/// and so no weight.
struct alignas(8) Statistic {
  float log_sum, product;
};

template <class T>
struct BackwardOperands {
  AttentionSizes sizes;
  int rows;  // of statistics of one head
  const T* qkv;
  const T* d_out;
  const Statistic* statistics;
  T* d_qkv;
};

/// Gradients of keys and values, then of queries; both read the statistics. Dim is 64 or 128.
template <class T, int Dim>
void launch_key_gradients(const BackwardOperands<T>& operands, Stream stream);
template <class T, int Dim>
void launch_query_gradients(const BackwardOperands<T>& operands, Stream stream);

}  // namespace orrery::executor::cuda

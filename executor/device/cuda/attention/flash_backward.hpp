#pragma once
// What the kernels of fused attention's backward share. It recomputes the weights from the scores
// and the log-sum-exp.
//   P = exp(scale Q K' - lse)   D = rowsum(dO o O)   dS = P o (dO V' - D)
//   dV = P' dO   dK = scale dS' Q   dQ = scale dS K
// Three kernels: row statistics; gradients of keys and values, with a block for each tile of keys,
// which loops over the queries that see it, of all heads that share it; gradients of queries, with
// a block for each tile of them. Two of seven products are computed twice; in return there are no
// atomic additions, every sum has one order, and neither P nor dS leaves the registers.

#include "executor/device/cuda/attention/flash_shape.hpp"

namespace orrery::executor::cuda {

/// Of one query: log-sum-exp in units of log 2, and D. Rows past the last query have a log-sum-exp
/// of infinity, and so weights of 0.
struct alignas(8) Statistic {
  float log_sum, product;
};

template <class T>
struct BackwardOperands {
  AttentionSizes sizes;
  int rows;  // of the statistics of one head
  const T* qkv;
  const T* d_out;
  Statistic* statistics;
  T* d_qkv;

  explicit BackwardOperands(const Call& call)
      : sizes{call.operation().attention()},
        rows{static_cast<int>(statistics_rows(call.operation().attention()))},
        qkv{call.read<T>(0)},
        d_out{call.read<T>(3)},
        statistics{reinterpret_cast<Statistic*>(call.scratch)},
        d_qkv{call.write<T>(0)} {}
};

/// Gradients of keys and values, then of queries; both read the statistics.
void flash_key_gradients(const Call& call);
void flash_query_gradients(const Call& call);

}  // namespace orrery::executor::cuda

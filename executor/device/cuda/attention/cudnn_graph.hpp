#pragma once
// The graphs that describe attention to cuDNN, and the ids of their tensors; only for cudnn_*.cpp.

#include <cudnn_frontend.h>

#include <cstdint>

#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// Ids of a graph's tensors, which are the operands of OpKind::attention and its backward.
enum class Operand : std::int64_t {
  query = 1,
  key,
  value,
  context,
  log_sum,
  d_context,
  d_query,
  d_key,
  d_value
};

enum class Sums : std::uint8_t { in_any_order, in_one_order };

/// The graph of an attention or its backward, not yet validated. `sums` matters to backward alone;
/// a GPU's `capability` 90 is 9.0.
cudnn_frontend::graph::Graph attention_graph(const models::Operation& operation, Sums sums,
                                             int capability);

}  // namespace orrery::executor::cuda

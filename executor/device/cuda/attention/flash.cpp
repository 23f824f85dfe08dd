#include "executor/device/cuda/attention/flash.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "executor/device/cuda/attention/flash_calls.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

namespace {

using models::AttentionShape;
using models::DType;
using models::OpKind;

/// The widest heads: a tile's row on tensor cores; without them, eight registers in each lane of a
/// warp.
constexpr std::int64_t most_columns = 128, most_plain_columns = 256;

}  // namespace

bool is_whole(const models::Operation& operation) {
  const AttentionShape& shape = operation.attention();
  const bool backward = operation.kind == OpKind::attention_backward;
  const bool apart = operation.reads.size() == (backward ? 5U : 2U);
  return !apart && shape.value_width() == shape.head_dim;
}

std::string attention_refusal(const models::Operation& operation) {
  const AttentionShape& shape = operation.attention();
  const auto refused_columns = [&](const char* accepted) {
    return fmt::format("no fused attention with head_dim {} in {}; supported: {}", shape.head_dim,
                       hardware::name(operation.dtype), accepted);
  };
  const bool placed = !is_whole(operation);
  const std::int64_t widest = std::max(shape.head_dim, shape.value_width());
  if (placed) return widest <= most_plain_columns ? std::string{} : refused_columns("up to 256");
  switch (operation.dtype) {
    case DType::bf16:
    case DType::fp16:
      if (shape.head_dim % 8 == 0 && shape.head_dim <= most_columns) return {};
      return refused_columns("multiples of 8 up to 128");
    case DType::fp32:
    case DType::tf32:
    case DType::fp64:
      return shape.head_dim <= most_plain_columns ? std::string{} : refused_columns("up to 256");
    default:
      return fmt::format("no fused attention in {}", hardware::name(operation.dtype));
  }
}

/// Two numbers for each query of each head, in the format that sums are computed in.
std::int64_t attention_scratch_bytes(const models::Operation& operation) {
  if (operation.kind != OpKind::attention_backward) return 0;
  const AttentionShape& shape = operation.attention();
  return 2 * std::max<std::int64_t>(bits(operation.dtype), 32) / 8 * shape.batch * shape.heads *
         statistics_rows(shape);
}

void launch_attention(const Kernel& kernel, Stream stream, std::byte* scratch,
                      const TokenPlaces& tokens) {
  const Call call{kernel, stream, scratch, tokens};
  const bool forward = call.operation().kind == OpKind::attention;
  ensure(forward || call.operation().kind == OpKind::attention_backward,
         "a kernel that is no attention");
  const bool backward = !forward;
  const bool apart = kernel.reads.size() == (backward ? 5U : 2U);
  if (apart || !tokens.one_document || !is_whole(call.operation())) {
    return forward ? placed_forward(call) : placed_backward(call);
  }
  if (bits(call.in(0).dtype) == 16) {
    forward ? flash_forward(call) : flash_backward(call);
  } else {
    forward ? plain_forward(call) : plain_backward(call);
  }
}

}  // namespace orrery::executor::cuda

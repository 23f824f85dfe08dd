#include "executor/device/cuda/kernels/kernels.hpp"

#include "executor/device/cuda/kernels/call.hpp"

namespace orrery::executor::cuda {

using models::OpKind;

void launch_kernel(const Kernel& kernel, Stream stream, std::byte* scratch) {
  const Call call{kernel, stream, scratch};
  switch (kernel.operation->kind) {
    case OpKind::softmax:
      return softmax(call);
    case OpKind::softmax_backward:
      return softmax_backward(call);
    case OpKind::rotary:
    case OpKind::rotary_backward:
      return rotary(call);
    case OpKind::norm:
      return norm(call);
    case OpKind::norm_backward:
      return norm_backward(call);
    case OpKind::activation:
      return activation(call);
    case OpKind::activation_backward:
      return activation_backward(call);
    case OpKind::add:
      return add(call);
    case OpKind::add_backward:
      return add_backward(call);
    case OpKind::embedding:
      return embedding(call);
    case OpKind::embedding_backward:
      return embedding_backward(call);
    case OpKind::cross_entropy:
      return cross_entropy(call);
    case OpKind::cross_entropy_backward:
      return cross_entropy_backward(call);
    case OpKind::squared_norm:
      return squared_norm(call);
    case OpKind::adam:
      return adam(call);
    case OpKind::accumulate:
      return accumulate(call);
    case OpKind::cast:
      return cast(call);
    case OpKind::top_k:
      return top_k(call);
    case OpKind::scatter_add:
      return scatter_add(call);
    case OpKind::quantise:
      return quantise(call);
    default:
      throw ContractError{"an operation that is not one of the GPU's kernels"};
  }
}

std::int64_t scratch_bytes(const models::Operation& operation, std::span<const View> reads,
                           std::span<const View>) {
  switch (operation.kind) {
    case OpKind::norm_backward:
      return norm_backward_scratch(reads[1], reads[2]);
    case OpKind::add_backward:
      return column_sums_scratch(reads[0]);
    case OpKind::embedding_backward:
      return embedding_backward_scratch(reads[0]);
    case OpKind::squared_norm:
      return squared_norm_scratch(reads[0]);
    case OpKind::top_k:
      return top_k_scratch(reads[0]);
    case OpKind::quantise:
      return quantise_scratch(reads[0]);
    default:
      return 0;
  }
}

std::string kernel_refusal(const models::Operation& operation) {
  const bool narrow =
      operation.dtype == models::DType::fp8 || operation.dtype == models::DType::fp4;
  if (operation.kind != OpKind::quantise && narrow) {
    return "the GPU's kernels have 8 bits for products alone, and no 4";
  }
  const bool masks = operation.kind == OpKind::add && operation.writes.size() > 1;
  const bool masked = operation.kind == OpKind::add_backward && operation.reads.size() > 1;
  if (masks || masked) return "the GPU's kernels have no dropout";
  return {};
}

}  // namespace orrery::executor::cuda

#include "executor/device/cuda/kernels/kernels.hpp"

#include <fmt/format.h>

#include <array>

#include "executor/device/cuda/kernels/call.hpp"

namespace orrery::executor::cuda {

using models::OpKind;

namespace {

/// The function that launches each kind of operation; null: no kernel of ours.
constexpr auto launchers() {
  std::array<void (*)(const Call&), models::op_kind_count> table{};
  const auto set = [&table](OpKind kind, auto run) { table[static_cast<std::size_t>(kind)] = run; };
  set(OpKind::softmax, softmax);
  set(OpKind::softmax_backward, softmax_backward);
  set(OpKind::rotary, rotary);
  set(OpKind::rotary_backward, rotary);
  set(OpKind::norm, norm);
  set(OpKind::norm_backward, norm_backward);
  set(OpKind::activation, activation);
  set(OpKind::activation_backward, activation_backward);
  set(OpKind::add, add);
  set(OpKind::add_backward, add_backward);
  set(OpKind::embedding, embedding);
  set(OpKind::embedding_backward, embedding_backward);
  set(OpKind::cross_entropy, cross_entropy);
  set(OpKind::cross_entropy_backward, cross_entropy_backward);
  set(OpKind::squared_norm, squared_norm);
  set(OpKind::adam, adam);
  set(OpKind::accumulate, accumulate);
  set(OpKind::cast, cast);
  set(OpKind::top_k, top_k);
  set(OpKind::orthogonalise, orthogonalise);
  set(OpKind::scatter_add, scatter_add);
  set(OpKind::quantise, quantise);
  set(OpKind::route, route);
  set(OpKind::route_backward, route_backward);
  set(OpKind::permute, move_rows);
  set(OpKind::unpermute, move_rows);
  return table;
}

}  // namespace

void launch_kernel(const Kernel& kernel, Stream stream, std::byte* scratch,
                   const TokenPlaces& tokens) {
  static constexpr auto table = launchers();
  const auto launch = table[static_cast<std::size_t>(kernel.operation->kind)];
  ensure(launch != nullptr, "an operation that is not one of the GPU's kernels");
  launch({kernel, stream, scratch, tokens});
}

std::int64_t scratch_bytes(const models::Operation& operation, std::span<const View> reads) {
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
    case OpKind::permute:
    case OpKind::unpermute:
      return move_rows_scratch(reads);
    default:
      return 0;
  }
}

std::string part_refusal(const models::Operation& operation) {
  const auto lacks = [](const char* what) {
    return fmt::format("the GPU kernels do not support {}", what);
  };
  if (operation.is<models::ScanWork>()) return lacks("recurrences over a sequence");
  if (operation.attention().sinks) return lacks("attention sinks");
  if (operation.attention().chunk > 0) return lacks("attention within chunks");
  const bool gates = operation.attention().gated || operation.heads().gated ||
                     operation.gates() != models::GatedColumns::none || operation.gates_row();
  if (gates) return lacks("gates of attention's output and of shared experts");
  if (operation.clamp() > 0) return lacks("clamped activations");
  return {};
}

std::string kernel_refusal(const models::Operation& operation) {
  const bool narrow =
      operation.dtype == models::DType::fp8 || operation.dtype == models::DType::fp4;
  if (operation.kind != OpKind::quantise && narrow) {
    return "the GPU kernels support fp8 only for GEMM operands, and do not support fp4";
  }
  if (std::string part = part_refusal(operation); !part.empty()) return part;
  const bool masks = operation.kind == OpKind::add && operation.writes.size() > 1;
  const bool masked = operation.kind == OpKind::add_backward && operation.reads.size() > 1;
  if (masks || masked) return "the GPU kernels do not support dropout";
  return {};
}

}  // namespace orrery::executor::cuda

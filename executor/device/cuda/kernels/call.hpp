#pragma once
// One kernel call, with its stream and scratch memory, and the dispatch from a number format known
// at run time to a C++ type.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "executor/device/cuda/kernels/experts/token_places.hpp"
#include "executor/device/cuda/stream.hpp"
#include "executor/device/formats.hpp"

namespace orrery::executor::cuda {

struct Call {
  const Kernel& kernel;
  Stream stream = nullptr;
  std::byte* scratch = nullptr;  // of `scratch_bytes` bytes
  TokenPlaces tokens{};

  const models::Operation& operation() const { return *kernel.operation; }
  const View& in(std::size_t i) const { return kernel.reads[i]; }
  const View& out(std::size_t i) const { return kernel.writes[i]; }
  bool has_in(std::size_t i) const { return i < kernel.reads.size(); }
  bool has_out(std::size_t i) const { return i < kernel.writes.size(); }

  template <class T>
  const T* read(std::size_t i) const {
    return has_in(i) ? reinterpret_cast<const T*>(in(i).data) : nullptr;
  }
  template <class T>
  T* write(std::size_t i) const {
    return has_out(i) ? reinterpret_cast<T*>(out(i).data) : nullptr;
  }
};

// One function per OpKind; each computes what the CPU's function of the same name does
// (executor/device/cpu).
void norm(const Call& call);
void norm_backward(const Call& call);
void softmax(const Call& call);
void softmax_backward(const Call& call);
void rotary(const Call& call);
void activation(const Call& call);
void activation_backward(const Call& call);
void add(const Call& call);
void merge(const Call& call);  // an add of partial attentions to several ranks' keys
void add_backward(const Call& call);
void embedding(const Call& call);
void embedding_backward(const Call& call);
void cross_entropy(const Call& call);
void cross_entropy_backward(const Call& call);
void squared_norm(const Call& call);
void adam(const Call& call);
void adam_in_8_bits(const Call& call);  // an adam with 8-bit moments
void accumulate(const Call& call);
void cast(const Call& call);
void join_heads(const Call& call);   // a cast that joins heads of latent attention
void split_heads(const Call& call);  // ... and its backward
void top_k(const Call& call);
void orthogonalise(const Call& call);
void quantise(const Call& call);
void scatter_add(const Call& call);
void route(const Call& call);
void route_backward(const Call& call);
void move_rows(const Call& call);

// Bytes of scratch that some of them need, by their operands.
std::int64_t norm_backward_scratch(const View& x, const View& weight);
std::int64_t embedding_backward_scratch(const View& tokens);
std::int64_t squared_norm_scratch(const View& gradient);
std::int64_t top_k_scratch(const View& gradient);
std::int64_t quantise_scratch(const View& from);
std::int64_t move_rows_scratch(std::span<const View> reads);

/// Calls f(Type<T>{}), with the type T that a number format is stored as.
template <class F>
void with_format(models::DType format, F f) {
  executor::with_format(format, f, "a GPU kernel was given a format that it refuses");
}

/// The same for the formats of two operands; the second, a sum over rows or optimizer state, has
/// the same format or is fp32 next to 16 bits.
template <class F>
void with_formats(models::DType format, models::DType sums, F f) {
  with_format(format, [&]<class T>(Type<T> type) {
    if (bits(sums) == bits(format)) return f(type, type);
    if constexpr (sizeof(T) == 2) {
      if (bits(sums) == 32) return f(type, Type<float>{});
    }
    throw ContractError{"a GPU kernel was given two formats that do not go together"};
  });
}

/// The same, where sums or statistics must not be in 16 bits.
/// refused  what is said of those that are
template <class F>
void with_wide_sums(models::DType format, models::DType sums, const char* refused, F f) {
  with_formats(format, sums, [&]<class T, class S>(Type<T> type, Type<S> of_sums) {
    if constexpr (sizeof(S) >= 4) return f(type, of_sums);
    throw ContractError{refused};
  });
}

}  // namespace orrery::executor::cuda

#pragma once
// A kernel call on the CPU whose operands are all of one type: float, double, or integers modulo
// 2^64. Operands stored in 16 bits are widened before the call and rounded after it.

#include <array>
#include <cstdint>
#include <type_traits>

#include "executor/device/device.hpp"
#include "executor/device/token_map.hpp"

namespace orrery::executor::cpu {

/// An element of Arithmetic::ring: an integer modulo 2^64.
using Ring = std::uint64_t;

template <class T>
inline constexpr bool in_ring = std::is_same_v<T, Ring>;

inline constexpr std::size_t most_operands = 8;

template <class T>
struct Call {
  const Kernel& kernel;
  std::array<T*, most_operands> reads{}, writes{};

  const models::Operation& operation() const { return *kernel.operation; }
  const View& in(std::size_t i) const { return kernel.reads[i]; }
  const View& out(std::size_t i) const { return kernel.writes[i]; }
  /// Operand i as integers: tokens or labels.
  const std::int64_t* indices(std::size_t i) const {
    return reinterpret_cast<const std::int64_t*>(kernel.reads[i].data);
  }
};

/// The position of the i-th token of a rank.
inline std::int64_t position_of(const Place& place, std::int64_t i) {
  const std::int64_t in_sequence = i % place.sequence;
  if (place.tokens == nullptr) return in_sequence;
  return place.tokens->positions[static_cast<std::size_t>(in_sequence)];
}

// One function per OpKind; what it computes is written at its definition.
template <class T>
void gemm(const Call<T>& call);
template <class T>
void batched_gemm(const Call<T>& call);
template <class T>
void grouped_gemm(const Call<T>& call);
template <class T>
void attention(const Call<T>& call);
template <class T>
void merge(const Call<T>& call);
template <class T>
void softmax(const Call<T>& call);
template <class T>
void softmax_backward(const Call<T>& call);
template <class T>
void rotary(const Call<T>& call);
template <class T>
void norm(const Call<T>& call);
template <class T>
void norm_backward(const Call<T>& call);
template <class T>
void activation(const Call<T>& call);
template <class T>
void activation_backward(const Call<T>& call);
template <class T>
void add(const Call<T>& call);
template <class T>
void add_backward(const Call<T>& call);
template <class T>
void embedding(const Call<T>& call);
template <class T>
void embedding_backward(const Call<T>& call);
template <class T>
void cross_entropy(const Call<T>& call);
template <class T>
void cross_entropy_backward(const Call<T>& call);
template <class T>
void squared_norm(const Call<T>& call);
template <class T>
void adam(const Call<T>& call);
template <class T>
void accumulate(const Call<T>& call);
template <class T>
void cast(const Call<T>& call);
template <class T>
void join_heads(const Call<T>& call);
template <class T>
void split_heads(const Call<T>& call);
template <class T>
void orthogonalise(const Call<T>& call);
template <class T>
void top_k(const Call<T>& call);
template <class T>
void scatter_add(const Call<T>& call);
template <class T>
void route(const Call<T>& call);
template <class T>
void route_backward(const Call<T>& call);
template <class T>
void move_rows(const Call<T>& call);

}  // namespace orrery::executor::cpu

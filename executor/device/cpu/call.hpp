#pragma once
// A kernel call on the CPU whose operands are all of one type: float, double, or integers modulo
// 2^64. Operands stored in 16 bits are widened before the call and rounded after it.

#include <array>
#include <cstdint>
#include <tuple>
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

/// Merges partial attentions: an add of operands that several ranks' keys contributed to.
template <class T>
void merge(const Call<T>& call);

/// The function that computes each kind of operation, for each type of numbers; null: none.
class KernelTable {
 public:
  /// `run` takes a Call of any type; what it computes is written at the function that it calls.
  template <class Run>
  void set(models::OpKind kind, Run run) {
    const auto at = static_cast<std::size_t>(kind);
    std::get<Functions<float>>(functions_)[at] = run;
    std::get<Functions<double>>(functions_)[at] = run;
    std::get<Functions<Ring>>(functions_)[at] = run;
  }
  template <class T>
  auto function(models::OpKind kind) const {
    return std::get<Functions<T>>(functions_)[static_cast<std::size_t>(kind)];
  }

 private:
  template <class T>
  using Functions = std::array<void (*)(const Call<T>&), models::op_kind_count>;

  std::tuple<Functions<float>, Functions<double>, Functions<Ring>> functions_{};
};

// Each file of kernels adds its own.
void add_casts(KernelTable& table);
void add_embedding_and_loss(KernelTable& table);
void add_fused_attention(KernelTable& table);
void add_gradients(KernelTable& table);
void add_norms(KernelTable& table);
void add_orthogonalise(KernelTable& table);
void add_pointwise(KernelTable& table);
void add_products(KernelTable& table);
void add_router(KernelTable& table);
void add_row_moves(KernelTable& table);
void add_scans(KernelTable& table);
void add_unfused_attention(KernelTable& table);
void add_updates(KernelTable& table);

}  // namespace orrery::executor::cpu

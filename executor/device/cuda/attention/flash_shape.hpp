#pragma once
// One attention as its kernels get it: sizes, which keys a query sees, and where the rows of a head
// are. A row of `qkv` has [query heads | key heads | value heads], head_dim elements each.

#include <cstdint>
#include <type_traits>

#include "executor/device/cuda/attention/flash_calls.hpp"
#include "executor/device/cuda/kernels/device_code.hpp"

namespace orrery::executor::cuda {

/// Weights are computed as powers of two: e^x = 2^(x log2(e)).
inline constexpr float log2_of_e = 1.4426950408889634F;

/// Positions [first, last) of one sequence.
struct FlashSpan {
  int first = 0, last = 0;
};

/// Which keys a query sees, and which queries see a key.
struct AttentionMask {
  int seq = 0;
  int window = 0;  // keys that a query sees at most, its own the last; 0: all before it
  bool causal = true;

  __host__ __device__ FlashSpan keys_of(int query) const {
    return {window > 0 && query >= window ? query - window + 1 : 0,
            causal && query < seq ? query + 1 : seq};
  }
  __host__ __device__ FlashSpan queries_of(int key) const {
    return {causal ? key : 0, window > 0 && key < seq - window ? key + window : seq};
  }
  /// The keys that any query of a tile sees, and the queries that see any key of a tile; tiles
  /// begin before `seq`.
  __host__ __device__ FlashSpan keys_of(FlashSpan queries) const {
    return {keys_of(queries.first).first, keys_of(last_of(queries)).last};
  }
  __host__ __device__ FlashSpan queries_of(FlashSpan keys) const {
    return {queries_of(keys.first).first, queries_of(last_of(keys)).last};
  }
  /// Does each of these queries see each of these keys?
  __host__ __device__ bool all(FlashSpan queries, FlashSpan keys) const {
    return keys.first >= keys_of(queries.last - 1).first &&
           keys.last <= keys_of(queries.first).last;
  }

 private:
  __host__ __device__ int last_of(FlashSpan tile) const {
    return tile.last < seq ? tile.last - 1 : seq - 1;
  }
};

/// The rows of one head in one sequence: `count` of `width` elements, `stride` elements apart.
template <class T>
struct HeadRows {
  T* first;
  std::int64_t stride;
  int count, width;

  __device__ T* row(int i) const { return first + i * stride; }
};

struct AttentionSizes {
  AttentionMask mask;
  int batch = 0, heads = 0, kv_heads = 0, head_dim = 0;
  double scale = 1;       // of scores
  float power_scale = 1;  // scale times log2(e), for powers of two

  explicit AttentionSizes(const models::AttentionShape& shape)
      : mask{.seq = static_cast<int>(shape.seq),
             .window = static_cast<int>(shape.window < shape.seq ? shape.window : 0),
             .causal = shape.causal},
        batch{static_cast<int>(shape.batch)},
        heads{static_cast<int>(shape.heads)},
        kv_heads{static_cast<int>(shape.kv_heads)},
        head_dim{static_cast<int>(shape.head_dim)},
        scale{shape.score_scale()},
        power_scale{static_cast<float>(scale) * log2_of_e} {}

  __host__ __device__ int group() const { return heads / kv_heads; }

  /// Query head `head`, or its gradient, in operands with the columns of qkv.
  template <class T>
  __device__ HeadRows<T> queries(T* qkv, int sequence, int head) const {
    return columns(qkv, sequence, heads + 2 * kv_heads, head);
  }
  template <class T>
  __device__ HeadRows<T> keys(T* qkv, int sequence, int kv_head) const {
    return columns(qkv, sequence, heads + 2 * kv_heads, heads + kv_head);
  }
  template <class T>
  __device__ HeadRows<T> values(T* qkv, int sequence, int kv_head) const {
    return columns(qkv, sequence, heads + 2 * kv_heads, heads + kv_heads + kv_head);
  }
  /// Query head `head` in operands with the columns of the attention's output.
  template <class T>
  __device__ HeadRows<T> context(T* out, int sequence, int head) const {
    return columns(out, sequence, heads, head);
  }

 private:
  template <class T>
  __device__ HeadRows<T> columns(T* of, int sequence, int of_heads, int head) const {
    const std::int64_t stride = static_cast<std::int64_t>(of_heads) * head_dim;
    return {of + sequence * (mask.seq * stride) + static_cast<std::int64_t>(head) * head_dim,
            stride, mask.seq, head_dim};
  }
};

/// f(Type<T>{}, dim) for 16-bit storage T and a tile's columns, 64 or 128.
template <class F>
void with_tensor_cores(const Call& call, F f) {
  const auto with_columns = [&](auto type) {
    call.operation().attention().head_dim <= 64 ? f(type, std::integral_constant<int, 64>{})
                                                : f(type, std::integral_constant<int, 128>{});
  };
  call.in(0).dtype == models::DType::bf16 ? with_columns(Type<Bf16>{}) : with_columns(Type<Fp16>{});
}

}  // namespace orrery::executor::cuda

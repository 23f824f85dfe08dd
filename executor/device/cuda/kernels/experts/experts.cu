// Moves token rows to the slots of experts and back. A token's slots follow from the experts that
// were chosen, in token order, as on the CPU (device/cpu/experts.cpp); every kernel that moves rows
// counts them again. In a dropless plan slots suffice: the runner has checked.

#include "executor/device/cuda/kernels/clear.hpp"
#include "executor/device/cuda/kernels/experts/weights_of_experts.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

using models::RowMove;

/// The slot of each choice: in its expert's slots, the one whose number is that of earlier choices
/// of the same expert; -1 if there are no more slots. One warp for each choice, so this is
/// quadratic, as sorting tokens is (embedding.cu).
__global__ void find_slots(const std::int32_t* chosen, std::int64_t count, std::int64_t room,
                           std::int32_t* slots) {
  const std::int64_t i = thread_of_grid() / warp_lanes;
  if (i >= count) return;
  const unsigned lane = threadIdx.x % warp_lanes;
  const std::int32_t own = chosen[i];
  std::int32_t ahead = 0;
#pragma unroll 4
  for (std::int64_t j = lane; j < i; j += warp_lanes) ahead += chosen[j] == own ? 1 : 0;
  ahead = of_group(ahead, warp_lanes, Sum{});
  if (lane == 0) slots[i] = ahead < room ? own * static_cast<std::int32_t>(room) + ahead : -1;
}

/// Writes to each slot its token's row times the factor. Slots are cleared before, and no two
/// choices write to the same one.
template <class T, class W>
struct ToSlots {
  Packs packs;  // of choices
  std::int64_t k;
  const T* rows;  // of tokens
  const W* factors;
  const std::int32_t* slots;
  T* out;

  __device__ void operator()(std::int64_t i) const {
    constexpr int width = per_access<T>;
    using C = Compute<T>;
    const auto [choice, at] = packs.place<T>(i);
    const std::int32_t slot = slots[choice];
    if (slot < 0) return;
    auto pack = packs.load(rows, choice / k, at);
    if (factors != nullptr) {
      const C factor = widen_to<C>(factors[choice]);
#pragma unroll
      for (int j = 0; j < width; ++j) pack.of[j] = from_float<T>(factor * widen_to<C>(pack.of[j]));
    }
    packs.store(pack, out, slot, at);
  }
};

/// A token's row is the sum of its slots' rows, times their factors, in the order of its choices.
/// The slots are also copied to `kept`, if that is not null.
template <class T, class W>
struct FromSlots {
  Packs packs;  // of tokens
  std::int64_t k;
  const T* rows;  // of slots
  const W* factors;
  const std::int32_t* slots;
  T *out, *kept;

  __device__ void operator()(std::int64_t i) const {
    constexpr int width = per_access<T>;
    using C = Compute<T>;
    const auto [token, at] = packs.place<T>(i);
    C sum[width]{};
    for (std::int64_t j = 0; j < k; ++j) {
      const std::int64_t choice = token * k + j;
      const std::int32_t slot = slots[choice];
      if (slot < 0) continue;
      const auto pack = packs.load(rows, slot, at);
      const C factor = factors == nullptr ? C(1) : widen_to<C>(factors[choice]);
#pragma unroll
      for (int x = 0; x < width; ++x) sum[x] += factor * widen_to<C>(pack.of[x]);
      if (kept != nullptr) packs.store(pack, kept, slot, at);
    }
    Pack<T, width> pack;
#pragma unroll
    for (int x = 0; x < width; ++x) pack.of[x] = from_float<T>(sum[x]);
    packs.store(pack, out, token, at);
  }
};

/// The gradient of a choice's weight: the dot product of its token's gradient and its expert's
/// output. One warp for each choice.
template <class T, class W>
__global__ void weight_gradients(const T* gradient, const T* kept, const std::int32_t* slots,
                                 std::int64_t choices, std::int64_t k, std::int64_t n, W* out) {
  using C = Compute<T>;
  const std::int64_t i = thread_of_grid() / warp_lanes;
  if (i >= choices) return;
  const unsigned lane = threadIdx.x % warp_lanes;
  const std::int32_t slot = slots[i];
  C sum{};
  if (slot >= 0) {
    for (std::int64_t x = lane; x < n; x += warp_lanes) {
      sum += widen_to<C>(gradient[i / k * n + x]) * widen_to<C>(kept[slot * n + x]);
    }
  }
  sum = of_group(sum, warp_lanes, Sum{});
  if (lane == 0) out[i] = from_float<W>(sum);
}

/// [outer, inner, n] becomes [inner, outer, n].
template <class T>
struct SwapOuter {
  Packs packs;  // of blocks of n
  std::int64_t outer, inner;
  const T* from;
  T* to;

  __device__ void operator()(std::int64_t i) const {
    const auto [block, at] = packs.place<T>(i);
    const Division of = divided(block, inner);
    packs.store(packs.load(from, block, at), to, of.remainder * outer + of.quotient, at);
  }
};

/// One move of rows [tokens, n] to slots [experts, room, n], or back.
template <class T, class W>
class RowMoves {
 public:
  RowMoves(const Call& call, const View& chosen, const View& slots)
      : call_{call},
        k_{chosen.shape[2]},
        tokens_{chosen.shape[1]},
        room_{slots.shape[1]},
        slots_{reinterpret_cast<std::int32_t*>(call.scratch)} {
    launch(find_slots, warps_for(tokens_ * k_), call.stream,
           reinterpret_cast<const std::int32_t*>(chosen.data), tokens_ * k_, room_, slots_);
  }

  void spread(const T* rows, const W* factors, const View& to) const {
    T* const out = reinterpret_cast<T*>(to.data);
    clear(out, to.elements(), call_.stream);
    const Packs packs{tokens_ * k_, to.shape[2], per_access<T>, rows, out};
    packs.launch(call_.stream, ToSlots<T, W>{packs, k_, rows, factors, slots_, out});
  }
  void gather(const T* rows, const W* factors, const View& to, const View* kept) const {
    T* const out = reinterpret_cast<T*>(to.data);
    T* const keep = kept == nullptr ? nullptr : reinterpret_cast<T*>(kept->data);
    const Packs packs{tokens_, to.shape[2], per_access<T>, rows, out, keep};
    packs.launch(call_.stream, FromSlots<T, W>{packs, k_, rows, factors, slots_, out, keep});
  }
  void weigh(const T* gradient, const T* kept, std::int64_t n, W* out) const {
    launch(weight_gradients<T, W>, warps_for(tokens_ * k_), call_.stream, gradient, kept, slots_,
           tokens_ * k_, k_, n, out);
  }

 private:
  const Call& call_;
  std::int64_t k_, tokens_, room_;
  std::int32_t* slots_;
};

template <class T>
void swap_outer(const Call& call, std::int64_t outer, std::int64_t inner) {
  const T* from = call.read<T>(0);
  T* to = call.write<T>(0);
  const Packs packs{outer * inner, call.out(0).elements() / (outer * inner), per_access<T>, from,
                    to};
  packs.launch(call.stream, SwapOuter<T>{packs, outer, inner, from, to});
}

template <class T, class W>
void move_between(const Call& call) {
  switch (call.operation().moves()) {
    case RowMove::dispatch:
      return RowMoves<T, W>{call, call.in(1), call.out(0)}.spread(call.read<T>(0), nullptr,
                                                                  call.out(0));
    case RowMove::dispatch_backward:
      return RowMoves<T, W>{call, call.in(1), call.in(0)}.gather(call.read<T>(0), nullptr,
                                                                 call.out(0), nullptr);
    case RowMove::combine:
      return RowMoves<T, W>{call, call.in(2), call.in(0)}.gather(
          call.read<T>(0), call.read<W>(1), call.out(0), call.has_out(1) ? &call.out(1) : nullptr);
    case RowMove::combine_backward: {
      const RowMoves<T, W> moves{call, call.in(2), call.out(0)};
      moves.spread(call.read<T>(0), call.read<W>(1), call.out(0));
      return moves.weigh(call.read<T>(0), call.read<T>(3), call.out(0).shape[2], call.write<W>(1));
    }
    default:
      throw ContractError{"a permutation does not say which"};
  }
}

}  // namespace

void move_rows(const Call& call) {
  const std::int64_t senders = call.operation().source_ranks(), experts = call.out(0).shape[0];
  with_weights(call.in(0).dtype, [&]<class T, class W>(Type<T>, Type<W>) {
    switch (call.operation().moves()) {
      case RowMove::by_expert:
        return swap_outer<T>(call, senders, experts);
      case RowMove::by_rank:
        return swap_outer<T>(call, experts, senders);
      default:
        return move_between<T, W>(call);
    }
  });
}

/// Bytes for one slot number per choice of a token.
std::int64_t move_rows_scratch(std::span<const View> reads) {
  for (const View& each : reads) {
    if (each.dtype == models::DType::int32) {
      return each.elements() * static_cast<std::int64_t>(sizeof(std::int32_t));
    }
  }
  return 0;
}

}  // namespace orrery::executor::cuda

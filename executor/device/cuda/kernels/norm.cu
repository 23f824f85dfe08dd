// Layer norms and RMS norms, of whole rows or of each query and key head.

#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/norm_rows.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

template <class T>
struct Forward {
  Rows rows;
  Mean mean;
  Compute<T> epsilon, offset;
  const T* x;
  const T* weight;
  const T* bias;  // or null
  T* out;
};

/// y = (x - mean) / sqrt(variance + epsilon) (weight + offset) [+ bias]
template <class T>
__global__ void __launch_bounds__(most_norm_lanes) norm_rows(Forward<T> of) {
  using C = Compute<T>;
  constexpr int width = RowValues<T>::width;
  const RowPlace place = of.rows.place(of.rows.of_group(blockIdx.x));
  const RowValues<T> x{of.x, place};
  const Statistics<C> with = statistics_of(x, place, of.rows.n, of.mean, of.epsilon);
  x.visit([&](int at, auto pack, int) {
    const auto weight = load<width>(of.weight, at, place.n, of.rows.aligned);
    Pack<T, width> bias{};
    if (of.bias != nullptr) bias = load<width>(of.bias, at, place.n, of.rows.aligned);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const C z = (widen_to<C>(pack.of[j]) - with.mean) * with.inverse;
      const C scale = widen_to<C>(weight.of[j]) + of.offset;
      pack.of[j] = from_float<T>(z * scale + widen_to<C>(bias.of[j]));
    }
    store(pack, of.out + place.first, at, place.n, place.aligned);
  });
}

}  // namespace

void norm(const Call& call) {
  const Parts parts = parts_of(call, call.in(1));
  with_format(call.in(0).dtype, [&]<class T>(Type<T>) {
    for (int p = 0; p < parts.count; ++p) {
      const Part& part = parts.of[p];
      const RowShare share = share_of_rows(part.n, per_access<T>, most_norm_lanes);
      Forward<T> of{};
      of.mean = mean_of(call);
      of.epsilon = static_cast<Compute<T>>(call.operation().epsilon());
      of.offset = static_cast<Compute<T>>(call.operation().offset());
      of.x = call.read<T>(0) + part.first;
      of.weight = call.read<T>(1) + p * part.n;
      of.bias = call.read<T>(2);
      of.out = call.write<T>(0) + part.first;
      of.rows = rows_of<T>(call, part, share, of.x, of.weight, of.bias, of.out);
      launch(norm_rows<T>, {blocks_of(of.rows.count, share), share.threads}, call.stream, of);
    }
    pass<T>(call, parts);
  });
}

}  // namespace orrery::executor::cuda

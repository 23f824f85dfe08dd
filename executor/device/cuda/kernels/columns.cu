// Column sums over rows, for gradients of biases: in one pass, or first of chunks of rows and then
// of their partial sums.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/columns.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"

namespace orrery::executor::cuda {

namespace {

/// Blocks in flight that saturate the memory of the largest GPU (H100: 132 multiprocessors, eight
/// blocks each); a constant, so that sums have the same order on all of them.
constexpr std::int64_t wanted_blocks = 132 * 8;

/// The number of chunks of rows that are summed separately.
std::int64_t chunks_of(const View& from) {
  const std::int64_t rows = from.shape[1];
  const std::int64_t across = quotient_up(from.shape[2], wide_tile * (128 / bits(from.dtype)));
  return std::clamp<std::int64_t>(wanted_blocks / across, 1, quotient_up(rows, 64));
}

std::int64_t compute_bytes(const View& view) {
  return view.dtype == models::DType::fp64 ? 8 : 4;
}

}  // namespace

std::int64_t column_sums_scratch(const View& from) {
  const std::int64_t chunks = chunks_of(from);
  return chunks > 1 ? chunks * from.shape[2] * compute_bytes(from) : 0;
}

void column_sums(const View& from, const View& to, Stream stream, std::byte* scratch,
                 const float* factor) {
  const std::int64_t rows = from.shape[1], n = from.shape[2], chunks = chunks_of(from);
  with_formats(from.dtype, to.dtype, [&]<class T, class G>(Type<T>, Type<G>) {
    using C = Compute<T>;
    const auto* first = reinterpret_cast<const T*>(from.data);
    auto* gradient = reinterpret_cast<G*>(to.data);
    if (chunks == 1) {
      sum_columns(first, gradient, {rows, n, rows, wide_tile, SumInto::added, factor}, stream);
      return;
    }
    auto* partial = reinterpret_cast<C*>(scratch);
    const std::int64_t each = quotient_up(rows, chunks);
    sum_columns(first, partial, {rows, n, each, wide_tile, SumInto::fresh}, stream);
    sum_columns(
        partial, gradient,
        {quotient_up(rows, each), n, quotient_up(rows, each), narrow_tile, SumInto::added, factor},
        stream);
  });
}

}  // namespace orrery::executor::cuda

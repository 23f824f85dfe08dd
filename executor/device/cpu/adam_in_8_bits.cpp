// Adam with 8-bit moments on the CPU: each block is decoded, updated and encoded again.

#include <array>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/eight_bits.hpp"

namespace orrery::executor {

namespace {

constexpr std::array<EightBit, 2> kinds{EightBit::either_sign, EightBit::positive};

View part_of(const View& view, std::int64_t first, std::int64_t count) {
  View part = view;
  part.data += first * bits(view.dtype) / 8;
  part.shape = {1, 1, count};
  return part;
}

/// An adam kernel with 8-bit moments, and one block of both moments as `T`.
template <class T>
struct EightBitAdam {
  const Kernel& kernel;
  std::array<std::array<T, eight_bit_block>, 2> moments{};

  std::uint8_t* codes(std::size_t m) const {
    return reinterpret_cast<std::uint8_t*>(kernel.reads[2 + m].data);
  }
  float* scales(std::size_t m) const { return reinterpret_cast<float*>(kernel.reads[4 + m].data); }

  void run(CpuDevice& device, std::int64_t first, std::int64_t count) {
    const std::int64_t block = first / eight_bit_block;
    const auto view = [&](std::size_t m) {
      return View{
          reinterpret_cast<std::byte*>(moments[m].data()), kernel.reads[1].dtype, {1, 1, count}};
    };
    for (std::size_t m = 0; m < 2; ++m) {
      from_eight_bits(kinds[m], codes(m) + first, scales(m)[block], count, moments[m].data());
    }
    const View master = part_of(kernel.writes[0], first, count);
    const View sums = part_of(kernel.writes[3], first, count);
    const std::array<View, 4> reads{sums, master, view(0), view(1)};
    std::array<View, 5> writes{master, view(0), view(1), sums};
    const bool narrow = kernel.writes.size() == 7;  // a working copy follows
    if (narrow) writes[4] = part_of(kernel.writes[4], first, count);
    Kernel part = kernel;
    part.reads = reads;
    part.writes = {writes.data(), narrow ? 5U : 4U};
    device.run(part);
    for (std::size_t m = 0; m < 2; ++m) {
      scales(m)[block] = to_eight_bits(kinds[m], moments[m].data(), count, codes(m) + first);
    }
  }
};

template <class T>
void run_blocks(CpuDevice& device, const Kernel& kernel) {
  EightBitAdam<T> adam{kernel};
  const std::int64_t all = kernel.reads[0].elements();
  for (std::int64_t i = 0; i < all; i += eight_bit_block) {
    adam.run(device, i, std::min(eight_bit_block, all - i));
  }
}

}  // namespace

void CpuDevice::run_adam_in_8_bits(const Kernel& kernel) {
  kernel.reads[1].dtype == models::DType::fp64 ? run_blocks<double>(*this, kernel)
                                               : run_blocks<float>(*this, kernel);
}

}  // namespace orrery::executor

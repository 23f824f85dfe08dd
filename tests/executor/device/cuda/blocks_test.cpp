// mxfp8 and nvfp4 on the GPU: codes and scales of its kernels, and what products read of them, held
// to the processor's.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "executor/device/cpu/block_scaled.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/half.hpp"
#include "executor/device/low_precision.hpp"
#include "tests/executor/device/cuda/gpu_device.hpp"
#include "tests/executor/device/cuda/trial.hpp"

namespace orrery::executor::cuda {
namespace {

using models::Operation;
using Bytes8 = std::vector<std::byte>;

constexpr BlockFormat both_formats[] = {BlockFormat::mxfp8, BlockFormat::nvfp4};

DType dtype_of(BlockFormat format) {
  return format == BlockFormat::nvfp4 ? DType::fp4 : DType::fp8;
}

/// A tensor in bf16, and the same numbers.
struct Tensor {
  Shape shape;
  std::vector<Bf16> stored;
  std::vector<float> numbers;

  Tensor(Shape of, const Fill& fill) : shape{of} {
    for (std::int64_t i = 0; i < of[0] * of[1] * of[2]; ++i) {
      Bf16 each;
      narrow(static_cast<float>(fill(i)), each);
      stored.push_back(each);
      numbers.push_back(widened(each));
    }
  }
};

/// What a quantised tensor takes: codes, and scales with the tensor's after them.
struct Room {
  Bytes8 codes, scales;
  Shape shape, of_scales;
  DType dtype;

  Room(const Shape& of, BlockFormat format) : shape{of}, dtype{dtype_of(format)} {
    of_scales = {of[0], of[1], (of[2] + block_of(format) - 1) / block_of(format)};
    codes.resize(static_cast<std::size_t>(of[0] * of[1] * of[2]) + 16);
    scales.resize(static_cast<std::size_t>(block_scales_offset(of_scales) + fp8_scale_room));
  }
  View of_codes(std::byte* at) const { return {at, dtype, shape}; }
  View scales_at(std::byte* at) const { return {at, DType::uint8, of_scales}; }
};

Room by_processor(const Tensor& from, BlockFormat format, BlocksAlong way) {
  Room room{from.shape, format};
  cpu::quantise_blocks(from.numbers.data(), room.of_codes(room.codes.data()),
                       room.scales_at(room.scales.data()), way);
  return room;
}

/// A kernel's call with scratch of its own.
void launch_with_scratch(const Operation& op, std::span<const View> reads,
                         std::span<const View> writes) {
  const DeviceArray<std::byte> scratch{Bytes8(static_cast<std::size_t>(scratch_bytes(op, reads)))};
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = writes;
  launch_kernel(kernel, nullptr, scratch.data());
  finish_device();
  scratch.values();
}

/// Of both ways, as the GPU's kernels leave them; the source lies `askew` elements off 16 bytes.
std::array<Room, 2> by_gpu(const Tensor& from, BlockFormat format, std::size_t askew = 0) {
  std::vector<Bf16> stored = from.stored;
  stored.insert(stored.begin(), askew, Bf16{0x7f80});  // infinities, which nobody shall see
  const DeviceArray<Bf16> source{stored};
  std::array<Room, 2> rooms{Room{from.shape, format}, Room{from.shape, format}};
  std::vector<std::unique_ptr<DeviceArray<std::byte>>> arrays;
  std::vector<View> writes;
  for (Room& room : rooms) {
    arrays.push_back(std::make_unique<DeviceArray<std::byte>>(room.codes));
    writes.push_back(room.of_codes(arrays.back()->data()));
    arrays.push_back(std::make_unique<DeviceArray<std::byte>>(room.scales));
    writes.push_back(room.scales_at(arrays.back()->data()));
  }
  Operation op;
  op.kind = OpKind::quantise;
  op.dtype = dtype_of(format);
  const View read{reinterpret_cast<std::byte*>(source.data() + askew), DType::bf16, from.shape};
  launch_with_scratch(op, {&read, 1}, writes);
  for (std::size_t i = 0; i < 2; ++i) {
    rooms[i].codes = arrays[2 * i]->values();
    rooms[i].scales = arrays[2 * i + 1]->values();
  }
  return rooms;
}

void check_bytes(const Tensor& from, BlockFormat format, std::size_t askew = 0) {
  const std::array<Room, 2> found = by_gpu(from, format, askew);
  for (const BlocksAlong way : {BlocksAlong::rows, BlocksAlong::columns}) {
    const Room expected = by_processor(from, format, way);
    const Room& room = found[way == BlocksAlong::rows ? 0 : 1];
    INFO(hardware::name(room.dtype)
         << " of " << from.shape[0] << " x " << from.shape[1] << " x " << from.shape[2]
         << ", columns " << (way == BlocksAlong::columns) << ", askew " << askew);
    CHECK(room.codes == expected.codes);
    CHECK(room.scales == expected.scales);
  }
}

const Shape shapes[] = {{1, 1, 1},   {1, 3, 5},    {1, 16, 32}, {1, 33, 48},
                        {2, 40, 24}, {3, 17, 130}, {1, 64, 256}};

TEST_CASE("The GPU quantises blocks to the processor's codes and scales, both ways") {
  const Fill of = normal(3);
  const auto spread = [&](std::int64_t i) { return std::exp(6 * of(i)) * (i % 3 == 0 ? -1 : 1); };
  for (const BlockFormat format : both_formats) {
    for (const Shape& shape : shapes) {
      for (const std::size_t askew : {0U, 3U}) check_bytes({shape, spread}, format, askew);
    }
  }
}

TEST_CASE("On the GPU too blocks of zeros, of the least and of the largest numbers are scaled") {
  constexpr float tiny = 0x1p-130F, huge = 3.3e38F;
  for (const BlockFormat format : both_formats) {
    for (const float each : {0.0F, tiny, huge, std::numeric_limits<float>::infinity()}) {
      INFO(each);
      // Some blocks of ones next to them.
      const auto some = [=](std::int64_t i) { return i % 160 < 50 ? each : 1.0F; };
      check_bytes({{1, 40, 80}, some}, format);
      check_bytes({{1, 40, 80}, constant(each)}, format);
    }
  }
}

TEST_CASE("The GPU writes a tensor's largest magnitude where a scale is found from it") {
  const Tensor from{{1, 70, 1000}, [](std::int64_t i) { return i == 60123 ? -77.0 : 0.5; }};
  const DeviceArray<Bf16> source{from.stored};
  const DeviceArray<float> largest{std::vector<float>{-1.0F}};
  Operation op;
  op.kind = OpKind::quantise;
  op.dtype = DType::fp4;
  const View read{reinterpret_cast<std::byte*>(source.data()), DType::bf16, from.shape};
  const View write{reinterpret_cast<std::byte*>(largest.data()), DType::fp32, {1, 1, 1}};
  launch_with_scratch(op, {&read, 1}, {&write, 1});
  CHECK(largest.values()[0] == 77.0F);
}

/// A product of a layer in blocks, as lowering makes it, with operands on the GPU, and what the
/// processor multiplies for it.
struct BlockTrial {
  enum class Of { output, input_gradient, weight_gradient };

  Operation op;
  std::vector<float> expected[2];
  std::vector<std::unique_ptr<DeviceArray<std::byte>>> memory;
  std::vector<View> reads, scales, writes;

  BlockTrial(Of of, models::GemmShape shape, BlockFormat format) {
    op.dtype = dtype_of(format);
    op.mutable_gemm() = shape;
    op.mutable_gemm().transpose_a = op.mutable_gemm().accumulate = of == Of::weight_gradient;
    op.mutable_gemm().transpose_b = of == Of::input_gradient;
    const auto spread = [n = normal(4)](std::int64_t i) { return std::exp(2 * n(i)) * n(i + 1); };
    const auto& s = op.gemm();
    add_stored({s.transpose_a ? Shape{1, s.k, s.m} : Shape{1, s.m, s.k}, spread}, format, 0);
    const Tensor b{s.transpose_b ? Shape{1, s.n, s.k} : Shape{1, s.k, s.n}, spread};
    of == Of::weight_gradient ? add_stored(b, format, 1) : add_weight(b, format);
    reads.insert(reads.end(), scales.begin(), scales.end());
  }
  Kernel kernel() const {
    Kernel kernel;
    kernel.operation = &op;
    kernel.reads = reads;
    kernel.writes = writes;
    return kernel;
  }

 private:
  std::byte* add(const Bytes8& bytes) {
    memory.push_back(std::make_unique<DeviceArray<std::byte>>(bytes));
    return memory.back()->data();
  }
  void add_stored(const Tensor& from, BlockFormat format, std::size_t i) {
    const BlocksAlong way = summed_along(op.gemm(), i);
    Room room = by_processor(from, format, way);
    expected[i].resize(from.numbers.size());
    cpu::decode_blocks(room.of_codes(room.codes.data()), room.scales_at(room.scales.data()), way,
                       expected[i].data());
    reads.push_back(room.of_codes(add(room.codes)));
    scales.push_back(room.scales_at(add(room.scales)));
  }
  void add_weight(const Tensor& from, BlockFormat format) {
    Bytes8 bytes(from.stored.size() * sizeof(Bf16));
    std::memcpy(bytes.data(), from.stored.data(), bytes.size());
    reads.push_back({add(bytes), DType::bf16, from.shape});
    expected[1] = from.numbers;
    cpu::round_to_blocks(expected[1].data(), reads.back(), format, summed_along(op.gemm(), 1));
  }
};

using OfBlocks = BlockTrial::Of;
constexpr OfBlocks every_block_product[] = {OfBlocks::output, OfBlocks::input_gradient,
                                            OfBlocks::weight_gradient};
const models::GemmShape block_shapes[] = {
    {.m = 3, .n = 5, .k = 7}, {.m = 16, .n = 48, .k = 32}, {.m = 70, .n = 34, .k = 100}};

/// Beyond the two tensors' scales, which the processor rounds into each number: 2^-24 each.
bool as_good_as(float found, float expected) {
  return std::abs(found - expected) <= 0x1p-22F * std::abs(expected);
}

TEST_CASE("Products in blocks read on the GPU what the processor multiplies") {
  for (const BlockFormat format : both_formats) {
    for (const OfBlocks of : every_block_product) {
      for (const models::GemmShape& shape : block_shapes) {
        const BlockTrial trial{of, shape, format};
        const Kernel kernel = trial.kernel();
        INFO(hardware::name(trial.op.dtype) << " " << static_cast<int>(of) << ", k " << shape.k);
        REQUIRE(reads_blocks(kernel));
        const DeviceArray<std::byte> scratch{
            Bytes8(static_cast<std::size_t>(block_product_scratch(kernel)))};
        const BlockOperands found = block_operands(kernel, nullptr, scratch.data());
        finish_device();
        scratch.values();
        CHECK((found.factors == nullptr) == (format == BlockFormat::mxfp8));
        float factors[3] = {1, 0, 1};
        if (found.factors != nullptr) copy_across(factors, found.factors, sizeof factors);
        const float of_both[] = {factors[0] / factors[2], factors[2]};
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < 2; ++i) {
          const View& view = i == 0 ? found.a : found.b;
          std::vector<Bf16> meant(trial.expected[i].size());
          copy_across(meant.data(), view.data, meant.size() * sizeof(Bf16));
          for (std::size_t at = 0; at < meant.size(); ++at) {
            const float number = widened(meant[at]) * of_both[i];
            if (!as_good_as(number, trial.expected[i][at])) ++wrong;
          }
        }
        CHECK(wrong == 0);
        if (found.factors != nullptr) {
          CHECK(factors[1] == (of == OfBlocks::weight_gradient ? 1 : 0));
        }
      }
    }
  }
}

TEST_CASE("A whole product in blocks is the processor's, its bias and a bias's gradient too") {
  const auto gpu = gpu_device();
  for (const BlockFormat format : both_formats) {
    for (const OfBlocks of : every_block_product) {
      for (const models::GemmShape& shape : block_shapes) {
        BlockTrial trial{of, shape, format};
        const models::GemmShape& s = trial.op.gemm();
        const bool gradient = of == OfBlocks::weight_gradient;
        const DeviceArray<float> bias{std::vector<float>(static_cast<std::size_t>(s.n), 10.0F)};
        const DeviceArray<float> out{std::vector<float>(static_cast<std::size_t>(s.m * s.n), 2.0F)};
        const View of_bias{reinterpret_cast<std::byte*>(bias.data()), DType::fp32, {1, 1, s.n}};
        trial.writes = {{reinterpret_cast<std::byte*>(out.data()), DType::fp32, {1, s.m, s.n}}};
        if (gradient) trial.writes.push_back(of_bias);
        gpu->run(trial.kernel());
        gpu->finish();
        const std::vector<float> found = out.values(), sums = bias.values();
        const auto a = [&](std::int64_t i, std::int64_t k) {
          return trial
              .expected[0][static_cast<std::size_t>(s.transpose_a ? k * s.m + i : i * s.k + k)];
        };
        const auto b = [&](std::int64_t k, std::int64_t j) {
          return trial
              .expected[1][static_cast<std::size_t>(s.transpose_b ? j * s.k + k : k * s.n + j)];
        };
        for (std::int64_t i = 0; i < s.m; ++i) {
          for (std::int64_t j = 0; j < s.n; ++j) {
            double sum = gradient ? 2 : 0, size = sum;
            for (std::int64_t k = 0; k < s.k; ++k) {
              sum += double{a(i, k)} * b(k, j);
              size += std::abs(double{a(i, k)} * b(k, j));
            }
            REQUIRE(std::abs(found[static_cast<std::size_t>(i * s.n + j)] - sum) <= 1e-5 * size);
          }
        }
        for (std::int64_t j = 0; gradient && j < s.n; ++j) {
          double sum = 10, size = 10;
          for (std::int64_t k = 0; k < s.k; ++k) {
            sum += b(k, j);
            size += std::abs(b(k, j));
          }
          REQUIRE(std::abs(sums[static_cast<std::size_t>(j)] - sum) <= 1e-5 * size);
        }
      }
    }
  }
}

// A bias of 1 for the rows of the first expert and 2 for those of the third; the second has none.
TEST_CASE("Each expert's rows get its bias, and its gradient is their sum") {
  constexpr std::int64_t n = 40;
  Operation op;
  op.kind = OpKind::grouped_gemm;
  op.mutable_group_rows() = {3, 0, 70};
  op.mutable_gemm() = {.m = 73, .n = n, .k = 8};
  std::vector<float> biases;
  for (std::int64_t i = 0; i < 3 * n; ++i) biases.push_back(1 + static_cast<float>(i / n) / 2);
  const DeviceArray<float> bias{biases}, rows{std::vector<float>(73 * n, 4.0F)};
  const View of_bias{reinterpret_cast<std::byte*>(bias.data()), DType::fp32, {3, 1, n}};
  const View of_rows{reinterpret_cast<std::byte*>(rows.data()), DType::fp32, {1, 73, n}};
  const View forward[] = {{}, {}, of_bias}, backward[] = {{}, of_rows}, sums[] = {{}, of_bias};
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = forward;
  kernel.writes = {&of_rows, 1};
  add_biases(kernel, nullptr);
  finish_device();
  CHECK(rows.values()[2 * n] == 5);
  CHECK(rows.values()[3 * n] == 6);
  op.mutable_gemm() = {.m = 8, .n = n, .k = 73, .transpose_a = true, .accumulate = true};
  kernel.reads = backward;
  kernel.writes = sums;
  const DeviceArray<std::byte> scratch{
      Bytes8(static_cast<std::size_t>(bias_gradients_scratch(kernel, DType::fp32)))};
  add_bias_gradients(kernel, nullptr, scratch.data());
  finish_device();
  scratch.values();
  CHECK(bias.values()[n - 1] == 1 + 3 * 5);
  CHECK(bias.values()[n] == 1.5F);
  CHECK(bias.values()[2 * n] == 2 + 70 * 6);
}

}  // namespace
}  // namespace orrery::executor::cuda

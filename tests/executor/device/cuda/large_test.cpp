// Operands of 2^31 elements and more, on a real GPU with some 20 GB free: what emulation has no
// time for. Almost all of each is zero; rows here and there are held to the processor's.
#ifndef ORRERY_EMULATED

#include <catch2/catch.hpp>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/half.hpp"
#include "tests/executor/device/cuda/gpu_device.hpp"
#include "tests/executor/device/cuda/trial.hpp"

namespace orrery::executor::cuda {
namespace {

constexpr std::int64_t two_31 = std::int64_t{1} << 31;

/// Is so much of the GPU free? If not, that is said.
bool has_room(std::int64_t bytes) {
  std::size_t free = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  if (free > static_cast<std::size_t>(bytes)) return true;
  WARN("skipped: " << free << " bytes of the GPU are free, " << bytes << " are needed");
  return false;
}

/// Memory of a device that is given back, of zeros.
class Zeros {
 public:
  Zeros(Device& device, std::int64_t bytes)
      : device_{device}, data_{device.allocate(Bytes{bytes})} {
    device.zero(data_, Bytes{bytes});
    device.finish();
  }
  ~Zeros() { device_.release(data_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  std::byte* data() const { return data_; }

 private:
  Device& device_;
  std::byte* data_;
};

std::vector<std::uint16_t> row_of_bf16(std::int64_t count, std::uint64_t stream) {
  const Fill of = normal(stream);
  std::vector<std::uint16_t> row;
  for (std::int64_t i = 0; i < count; ++i) {
    Bf16 number;
    narrow(static_cast<float>(of(i)), number);
    row.push_back(number.bits);
  }
  return row;
}

void run(Device& device, const models::Operation& op, std::vector<View> reads,
         std::vector<View> writes) {
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = writes;
  kernel.place.loss_scale = 1.0 / 64;
  device.run(kernel);
  device.finish();
}

struct LossRow {
  std::vector<float> statistics;
  std::vector<std::uint16_t> slopes;
};

/// Loss and its gradient of `rows` rows, of which `probed` have the logits of `probe`; what comes
/// out for those.
std::vector<LossRow> losses(Device& device, std::int64_t rows, std::int64_t columns,
                            const std::vector<std::int64_t>& probed) {
  const Zeros logits{device, rows * columns * 2}, wide{device, rows * columns * 4},
      labels{device, rows * 8}, statistics{device, rows * 12};
  const std::vector<std::uint16_t> probe = row_of_bf16(columns, 3);
  const std::int64_t label = columns - 1;
  for (const std::int64_t row : probed) {
    device.write(probe.data(), logits.data() + row * columns * 2, Bytes{columns * 2});
    device.write(&label, labels.data() + row * 8, Bytes{8});
  }
  const View in{logits.data(), DType::bf16, {1, rows, columns}};
  const View kept{wide.data(), DType::fp32, {1, rows, columns}};
  const View targets{labels.data(), DType::int64, {1, 1, rows}};
  const View sums{statistics.data(), DType::fp32, {1, rows, 3}};
  models::Operation op;
  op.name = "loss";
  op.kind = OpKind::cross_entropy;
  op.vocabulary = columns;
  run(device, op, {in, targets}, {kept, sums});
  op.kind = OpKind::cross_entropy_backward;
  run(device, op, {kept, targets, sums}, {in});
  std::vector<LossRow> found;
  for (const std::int64_t row : probed) {
    LossRow& of = found.emplace_back();
    of.statistics.resize(3);
    of.slopes.resize(static_cast<std::size_t>(columns));
    device.read(statistics.data() + row * 12, of.statistics.data(), Bytes{12});
    device.read(logits.data() + row * columns * 2, of.slopes.data(), Bytes{columns * 2});
  }
  return found;
}

TEST_CASE("A loss over 16384 rows of 151936 columns is the processor's in every row", "[large]") {
  constexpr std::int64_t rows = 16384, columns = 151936;
  static_assert(rows * columns > two_31);
  const auto gpu = gpu_device();
  if (!has_room(rows * columns * 6 + (1 << 30))) return;
  CpuDevice processor;
  const LossRow expected = losses(processor, 1, columns, {0}).front();
  const std::vector<std::int64_t> probed{0, two_31 / columns, two_31 / columns + 1, rows - 1};
  const std::vector<LossRow> found = losses(*gpu, rows, columns, probed);
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("row " << probed[i]);
    for (std::size_t k = 0; k < 3; ++k) {
      CHECK(found[i].statistics[k] == Approx(expected.statistics[k]).epsilon(1e-4));
    }
    std::size_t others = 0;
    for (std::size_t k = 0; k < expected.slopes.size(); ++k) {
      const float a = widened(Bf16{found[i].slopes[k]}), b = widened(Bf16{expected.slopes[k]});
      others += std::abs(a - b) <= 0x1p-6F * std::abs(b) ? 0 : 1;
    }
    CHECK(others == 0);
  }
}

TEST_CASE("An activation of more than 2^31 elements is the processor's at both ends", "[large]") {
  constexpr std::int64_t columns = 2048, rows = two_31 / columns + 3;
  const auto gpu = gpu_device();
  if (!has_room(rows * columns * 4 + (1 << 30))) return;
  models::Operation op;
  op.name = "activation";
  op.kind = OpKind::activation;
  op.activation = models::Activation::gelu;
  const std::vector<std::uint16_t> probe = row_of_bf16(columns, 4);
  const auto row_by = [&](Device& device, std::int64_t of, std::int64_t at) {
    const Zeros in{device, of * columns * 2}, out{device, of * columns * 2};
    device.write(probe.data(), in.data() + at * columns * 2, Bytes{columns * 2});
    run(device, op, {{in.data(), DType::bf16, {1, of, columns}}},
        {{out.data(), DType::bf16, {1, of, columns}}});
    std::vector<std::uint16_t> row(columns);
    device.read(out.data() + at * columns * 2, row.data(), Bytes{columns * 2});
    return row;
  };
  CpuDevice processor;
  const std::vector<std::uint16_t> expected = row_by(processor, 1, 0);
  for (const std::int64_t row : {std::int64_t{0}, two_31 / columns - 1, rows - 1}) {
    INFO("row " << row);
    const std::vector<std::uint16_t> found = row_by(*gpu, rows, row);
    std::size_t others = 0;
    for (std::size_t k = 0; k < found.size(); ++k) {
      const float a = widened(Bf16{found[k]}), b = widened(Bf16{expected[k]});
      others += std::abs(a - b) <= 0x1p-6F * std::abs(b) + 1e-6F ? 0 : 1;
    }
    CHECK(others == 0);
  }
}

}  // namespace
}  // namespace orrery::executor::cuda

#endif

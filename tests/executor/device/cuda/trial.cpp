#include "tests/executor/device/cuda/trial.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/cuda/attention/flash.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/half.hpp"
#include "executor/run/weights/random.hpp"
#include "tests/executor/device/cuda/device_array.hpp"

namespace orrery::executor::cuda {

namespace {

/// Calls `f` with a value of the type that a format is stored as.
template <class F>
void with_stored(DType dtype, F f) {
  switch (dtype) {
    case DType::fp64:
      return f(double{});
    case DType::bf16:
      return f(Bf16{});
    case DType::fp16:
      return f(Fp16{});
    case DType::int64:
      return f(std::int64_t{});
    case DType::int32:
      return f(std::int32_t{});
    case DType::uint8:
      return f(std::uint8_t{});
    default:
      return f(float{});
  }
}

std::vector<std::byte> stored(DType dtype, std::int64_t count, const Fill& fill) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * bits(dtype) / 8), std::byte{0xff});
  if (!fill) return bytes;
  with_stored(dtype, [&](auto value) {
    for (std::int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_class_v<decltype(value)>) {
        narrow(static_cast<float>(fill(i)), value);
      } else {
        value = static_cast<decltype(value)>(fill(i));
      }
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(value), &value,
                  sizeof(value));
    }
  });
  return bytes;
}

Numbers numbers(DType dtype, const std::byte* bytes, std::int64_t count) {
  Numbers all;
  with_stored(dtype, [&](auto value) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(&value, bytes + static_cast<std::size_t>(i) * sizeof(value), sizeof(value));
      if constexpr (std::is_class_v<decltype(value)>) {
        all.push_back(widened(value));
      } else {
        all.push_back(static_cast<double>(value));
      }
    }
  });
  return all;
}

/// Sums of some hundred terms in fp32 and fp64; one rounding to the next in 16 bits.
double unit_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return 1e-13;
    case DType::bf16:
      return 0x1p-7;
    case DType::fp16:
      return 0x1p-10;
    case DType::uint8:
    case DType::int32:
    case DType::int64:
      return 0;
    default:
      return 1e-5;
  }
}

std::int64_t count_of(const Shape& shape) {
  return shape[0] * shape[1] * shape[2];
}

}  // namespace

Fill normal(std::uint64_t stream) {
  return [random = RandomStream{5, stream}](std::int64_t i) {
    return random.normal(static_cast<std::uint64_t>(i));
  };
}
Fill constant(double value) {
  return [value](std::int64_t) { return value; };
}
Fill integers(std::int64_t count) {
  return [random = RandomStream{6, 1}, count](std::int64_t i) {
    const std::uint64_t drawn = random.bits(static_cast<std::uint64_t>(i));
    return static_cast<double>(drawn % static_cast<std::uint64_t>(count));
  };
}

Trial::Trial(OpKind kind, std::string name) {
  operation.kind = kind;
  operation.name = std::move(name);
  if (kind == OpKind::norm || kind == OpKind::norm_backward) operation.mutable_epsilon() = 1e-5;
}

Trial& Trial::read(DType dtype, Shape shape, const Fill& fill) {
  reads_.push_back(operands_.size());
  operands_.push_back({dtype, shape, stored(dtype, count_of(shape), fill)});
  return *this;
}
Trial& Trial::write(DType dtype, Shape shape, const Fill& fill) {
  writes_.push_back(operands_.size());
  operands_.push_back({dtype, shape, stored(dtype, count_of(shape), fill)});
  return *this;
}
Trial& Trial::write_over(std::size_t index) {
  writes_.push_back(reads_[index]);
  return *this;
}
Trial& Trial::askew(std::int64_t elements) {
  askew_ = elements;
  return *this;
}

Trial::Views Trial::views(const std::function<std::byte*(std::size_t)>& place) const {
  const auto view = [&](std::size_t i) {
    return View{place(i), operands_[i].dtype, operands_[i].shape};
  };
  Views all;
  for (const std::size_t i : reads_) all.reads.push_back(view(i));
  for (const std::size_t i : writes_) all.writes.push_back(view(i));
  return all;
}

Kernel Trial::kernel(const Views& views) const {
  Kernel kernel;
  kernel.operation = &operation;
  kernel.reads = views.reads;
  kernel.writes = views.writes;
  kernel.place = place;
  kernel.adam = adam;
  return kernel;
}

std::vector<Numbers> Trial::by_cpu() const {
  std::vector<Operand> copies = operands_;
  const Views all = views([&](std::size_t i) { return copies[i].bytes.data(); });
  CpuDevice{}.run(kernel(all));
  std::vector<Numbers> results;
  for (const View& each : all.writes) {
    results.push_back(numbers(each.dtype, each.data, each.elements()));
  }
  return results;
}

std::vector<Numbers> Trial::by_gpu() const {
  std::vector<std::unique_ptr<DeviceArray<std::byte>>> arrays;
  const auto ahead = [&](std::size_t i) { return askew_ * bits(operands_[i].dtype) / 8; };
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(ahead(i)));
    bytes.insert(bytes.end(), operands_[i].bytes.begin(), operands_[i].bytes.end());
    arrays.push_back(std::make_unique<DeviceArray<std::byte>>(bytes));
  }
  const Views all = views([&](std::size_t i) { return arrays[i]->data() + ahead(i); });
  const bool attends =
      operation.kind == OpKind::attention || operation.kind == OpKind::attention_backward;
  const std::int64_t room =
      attends ? attention_scratch_bytes(operation) : scratch_bytes(operation, all.reads);
  const DeviceArray<std::byte> scratch{
      std::vector<std::byte>(static_cast<std::size_t>(room), std::byte{0xff})};
  const bool mapped = place.tokens != nullptr && !place.tokens->in_order();
  const DeviceArray<std::int64_t> map{mapped ? numbers_of(*place.tokens)
                                             : std::vector<std::int64_t>{}};
  const TokenPlaces tokens = mapped ? places_at(*place.tokens, map.data()) : TokenPlaces{};
  (attends ? launch_attention : launch_kernel)(kernel(all), nullptr, scratch.data(), tokens);
  finish_device();
  scratch.values();  // nothing written next to it
  std::vector<Numbers> results;
  for (const std::size_t i : writes_) {
    const std::vector<std::byte> bytes = arrays[i]->values();
    results.push_back(
        numbers(operands_[i].dtype, bytes.data() + ahead(i), count_of(operands_[i].shape)));
  }
  return results;
}

std::vector<Numbers> Trial::on(Device& device) const {
  std::vector<std::byte*> memory;
  for (const Operand& each : operands_) {
    const Bytes size{static_cast<std::int64_t>(each.bytes.size())};
    memory.push_back(device.allocate(size + Bytes{askew_ * 8}));
    memory.back() += askew_ * bits(each.dtype) / 8;
    device.write(each.bytes.data(), memory.back(), size);
  }
  const Views all = views([&](std::size_t i) { return memory[i]; });
  device.run(kernel(all));
  std::vector<Numbers> results;
  for (const std::size_t i : writes_) {
    std::vector<std::byte> bytes(operands_[i].bytes.size());
    device.read(memory[i], bytes.data(), Bytes{static_cast<std::int64_t>(bytes.size())});
    results.push_back(numbers(operands_[i].dtype, bytes.data(), count_of(operands_[i].shape)));
  }
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    device.release(memory[i] - askew_ * bits(operands_[i].dtype) / 8);
  }
  return results;
}

void Trial::check(double unit) const {
  const std::vector<Numbers> found = by_gpu();
  compare(found, by_cpu(), unit);
  CHECK(by_gpu() == found);  // the same call gives the same bits
}

void Trial::check_on(Device& device, double unit) const {
  compare(on(device), by_cpu(), unit);
}

/// Of each operand all elements, and of those that are too far the farthest.
void Trial::compare(const std::vector<Numbers>& found, const std::vector<Numbers>& expected,
                    double unit) const {
  for (std::size_t w = 0; w < writes_.size(); ++w) {
    const double allowed = unit > 0 ? unit : unit_of(operands_[writes_[w]].dtype);
    double largest = 0;
    for (const double each : expected[w]) {
      if (std::isfinite(each)) largest = std::max(largest, std::abs(each));
    }
    const auto distance = [&](std::size_t i) {
      const double a = found[w][i], b = expected[w][i];
      return a == b ? 0 : std::isnan(a - b) ? HUGE_VAL : std::abs(a - b);
    };
    const auto bound = [&](std::size_t i) {
      return allowed * (std::abs(expected[w][i]) + largest / 16);
    };
    std::size_t too_far = 0, farthest = 0;
    double excess = 0;
    for (std::size_t i = 0; i < expected[w].size(); ++i) {
      const double over = distance(i) == 0 ? 0 : distance(i) / bound(i);
      too_far += over > 1 ? 1 : 0;
      if (over <= excess) continue;
      excess = over;
      farthest = i;
    }
    INFO("'" << operation.name << "', operand " << w << " in " << name(operands_[writes_[w]].dtype)
             << ": " << too_far << " of " << expected[w].size()
             << " elements are too far, most of all element " << farthest);
    CHECK(found[w].size() == expected[w].size());
    if (too_far == 0) continue;
    INFO("found " << found[w][farthest] << ", by the CPU " << expected[w][farthest]);
    CHECK(distance(farthest) <= bound(farthest));
  }
}

DType state_beside(DType storage) {
  return storage == DType::fp64 ? DType::fp64 : DType::fp32;
}

void for_each_format(const std::function<void(DType)>& test) {
  for (const DType each : {DType::fp32, DType::fp64, DType::bf16, DType::fp16}) {
    INFO("stored in " << name(each));
    test(each);
  }
}

void for_each_pair(const std::function<void(DType, DType)>& test) {
  for_each_format([&](DType storage) {
    test(storage, storage);
    if (storage != state_beside(storage)) test(storage, state_beside(storage));
  });
}

}  // namespace orrery::executor::cuda

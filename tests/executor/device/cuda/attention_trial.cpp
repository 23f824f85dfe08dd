#include "tests/executor/device/cuda/attention_trial.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "executor/device/cuda/attention/flash.hpp"
#include "executor/device/half.hpp"

namespace orrery::executor::cuda {

namespace {

using models::AttentionShape;
using models::DType;
using models::Operation;
using models::OpKind;

template <class T>
T as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

double number(DType format, const std::byte* from) {
  switch (format) {
    case DType::bf16:
      return widened(as<Bf16>(from));
    case DType::fp16:
      return widened(as<Fp16>(from));
    case DType::fp32:
      return as<float>(from);
    default:
      return as<double>(from);
  }
}

std::vector<std::byte> stored(DType format, const Numbers& values) {
  std::vector<std::byte> bytes;
  const auto append = [&](auto value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(value));
  };
  for (const double value : values) {
    Bf16 bf16;
    Fp16 fp16;
    narrow(static_cast<float>(value), bf16);
    narrow(static_cast<float>(value), fp16);
    if (format == DType::bf16) append(bf16);
    if (format == DType::fp16) append(fp16);
    if (format == DType::fp32) append(static_cast<float>(value));
    if (format == DType::fp64) append(value);
  }
  return bytes;
}

/// Only the columns of query heads, of keys or of values.
Numbers part_of(const Numbers& d_qkv, const AttentionShape& s, std::int64_t first_head,
                std::int64_t last_head) {
  Numbers part;
  for (std::size_t i = 0; i < d_qkv.size(); ++i) {
    const std::int64_t head = static_cast<std::int64_t>(i) % columns_of(s) / s.head_dim;
    if (head >= first_head && head < last_head) part.push_back(d_qkv[i]);
  }
  return part;
}

}  // namespace

Way own_way() {
  return {attention_refusal, attention_scratch_bytes,
          [](const Kernel& kernel, Stream stream, std::byte* scratch) {
            launch_attention(kernel, stream, scratch);
          }};
}

AttentionOperand::AttentionOperand(DType format, std::array<std::int64_t, 3> shape,
                                   const Numbers& values)
    : format_{format}, shape_{shape}, bytes_{stored(format, values)} {}

AttentionOperand::AttentionOperand(DType format, std::array<std::int64_t, 3> shape)
    : format_{format},
      shape_{shape},
      bytes_{std::vector<std::byte>(
          static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * bits(format) / 8),
          std::byte{0xff})} {}

Numbers AttentionOperand::values() const {
  const std::vector<std::byte> bytes = bytes_.values();
  Numbers read;
  const std::size_t size = static_cast<std::size_t>(bits(format_)) / 8;
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    read.push_back(number(format_, bytes.data() + i));
  }
  return read;
}

AttentionTrial::AttentionTrial(const Way& way, const AttentionShape& shape, DType format,
                               const Numbers& qkv, const Numbers& d_out)
    : way_{way},
      shape_{shape},
      format_{format},
      rows_{shape.batch * shape.seq},
      qkv_{format, {1, rows_, columns_of(shape)}, qkv},
      d_out_{format, {1, rows_, shape.heads * shape.head_dim}, d_out},
      out_{format, {1, rows_, shape.heads * shape.head_dim}},
      lse_{DType::fp32, {shape.batch, shape.heads, shape.seq}},
      d_qkv_{format, {1, rows_, columns_of(shape)}} {
  launch(OpKind::attention, {qkv_.view()}, {out_.view(), lse_.view()});
  launch(OpKind::attention_backward, {qkv_.view(), out_.view(), lse_.view(), d_out_.view()},
         {d_qkv_.view()});
}

void AttentionTrial::launch(OpKind kind, const std::vector<View>& reads,
                            const std::vector<View>& writes) {
  Operation operation;
  operation.kind = kind;
  operation.dtype = format_;
  operation.mutable_attention() = shape_;
  REQUIRE(way_.refusal(operation) == "");
  DeviceArray<std::byte> scratch{std::vector<std::byte>(
      static_cast<std::size_t>(way_.scratch_bytes(operation)), std::byte{0xff})};
  Kernel kernel;
  kernel.operation = &operation;
  kernel.reads = reads;
  kernel.writes = writes;
  way_.launch(kernel, nullptr, scratch.data());
  finish_device();
}

double error_of(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    whole += expected[i] * expected[i];
  }
  return std::sqrt(difference / whole);
}

void check_against_formula(const Way& way, const AttentionShape& s, DType format) {
  const std::int64_t rows = s.batch * s.seq;
  const Numbers qkv = numbers(rows * columns_of(s), format, 1);
  const Numbers d_out = numbers(rows * s.heads * s.head_dim, format, 2);
  const AttentionResults found = AttentionTrial{way, s, format, qkv, d_out}.results();
  const AttentionResults expected = attention_by_formula(s, qkv, d_out);
  // One unit of the format; of fp32 a few, for sums have as many terms as there are keys.
  const double unit = format == DType::bf16   ? 0x1p-8
                      : format == DType::fp16 ? 0x1p-11
                      : format == DType::fp32 ? 0x1p-21
                                              : 0x1p-50;
  INFO("seq " << s.seq << " heads " << s.heads << " kv " << s.kv_heads << " head_dim " << s.head_dim
              << " causal " << s.causal << " window " << s.window);
  CHECK(error_of(found.out, expected.out) < unit);
  CHECK(error_of(found.lse, expected.lse) < 1e-5);
  const std::int64_t keys = s.heads, values = s.heads + s.kv_heads, end = values + s.kv_heads;
  const auto check_part = [&](std::int64_t first, std::int64_t last) {
    CHECK(error_of(part_of(found.d_qkv, s, first, last), part_of(expected.d_qkv, s, first, last)) <
          2 * unit);
  };
  check_part(0, keys);
  check_part(keys, values);
  check_part(values, end);
}

}  // namespace orrery::executor::cuda

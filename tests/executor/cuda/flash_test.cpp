// Fused attention against its formula in fp64. Tolerances are of whole tensors, by norm: a 16-bit
// format of p bits rounds weights, their gradients and results by 2^-p of each at most, one
// independently of the other, so that the error stays below 2^-p of the tensor, and gradients, made
// from rounded outputs, below twice that.

#include "executor/cuda/flash.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "executor/half.hpp"
#include "tests/executor/cuda/attention_reference.hpp"
#include "tests/executor/cuda/device_array.hpp"

namespace orrery::executor::cuda {
namespace {

using models::AttentionShape;
using models::DType;
using models::Operation;
using models::OpKind;

/// Numbers in the device's memory, in a format of their own.
class Operand {
 public:
  Operand(DType format, std::array<std::int64_t, 3> shape, const Numbers& values)
      : format_{format}, shape_{shape}, bytes_{stored(format, values)} {}
  /// All bits set: NaN, for what is overwritten.
  Operand(DType format, std::array<std::int64_t, 3> shape)
      : format_{format},
        shape_{shape},
        bytes_{std::vector<std::byte>(
            static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * bits(format) / 8),
            std::byte{0xff})} {}

  View view() { return {bytes_.data(), format_, shape_}; }
  Numbers values() const {
    const std::vector<std::byte> bytes = bytes_.values();
    Numbers read;
    const std::size_t size = static_cast<std::size_t>(bits(format_)) / 8;
    for (std::size_t i = 0; i < bytes.size(); i += size) read.push_back(number(bytes.data() + i));
    return read;
  }
  bool operator==(const Operand& other) const { return bytes_.values() == other.bytes_.values(); }

 private:
  template <class T>
  static T as(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
  }
  double number(const std::byte* from) const {
    switch (format_) {
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
  static std::vector<std::byte> stored(DType format, const Numbers& values) {
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

  DType format_;
  std::array<std::int64_t, 3> shape_;
  DeviceArray<std::byte> bytes_;
};

/// Forward and backward of one attention, as a Program would have them.
class Attention {
 public:
  Attention(const AttentionShape& shape, DType format, const Numbers& qkv, const Numbers& d_out)
      : shape_{shape},
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

  AttentionResults results() const { return {out_.values(), lse_.values(), d_qkv_.values()}; }
  bool operator==(const Attention& other) const {
    return out_ == other.out_ && lse_ == other.lse_ && d_qkv_ == other.d_qkv_;
  }

 private:
  void launch(OpKind kind, const std::vector<View>& reads, const std::vector<View>& writes) {
    Operation operation;
    operation.kind = kind;
    operation.dtype = format_;
    operation.attention = shape_;
    REQUIRE(attention_refusal(operation).empty());
    DeviceArray<std::byte> scratch{std::vector<std::byte>(
        static_cast<std::size_t>(attention_scratch_bytes(operation)), std::byte{0xff})};
    Kernel kernel;
    kernel.operation = &operation;
    kernel.reads = reads;
    kernel.writes = writes;
    launch_attention(kernel, nullptr, scratch.data());
    finish_device();
  }

  AttentionShape shape_;
  DType format_;
  std::int64_t rows_;
  Operand qkv_, d_out_, out_, lse_, d_qkv_;
};

/// Norm of the difference over the norm.
double error_of(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    whole += expected[i] * expected[i];
  }
  return std::sqrt(difference / whole);
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

void check_against_formula(const AttentionShape& s, DType format) {
  const std::int64_t rows = s.batch * s.seq;
  const Numbers qkv = numbers(rows * columns_of(s), format, 1);
  const Numbers d_out = numbers(rows * s.heads * s.head_dim, format, 2);
  const AttentionResults found = Attention{s, format, qkv, d_out}.results();
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

TEST_CASE("Fused attention and its gradients are the formula's") {
  SECTION("in bf16, causal, over several tiles of queries and keys") {
    check_against_formula({1, 200, 2, 2, 64, true, 0}, DType::bf16);
  }
  SECTION("in fp16, every query seeing every key, eight heads sharing keys, two sequences") {
    check_against_formula({2, 40, 8, 1, 64, false, 0}, DType::fp16);
  }
  SECTION("in bf16, with 128 columns, four heads sharing keys") {
    check_against_formula({1, 135, 4, 1, 128, true, 0}, DType::bf16);
  }
  SECTION("in fp16, with 128 columns, not causal, tiles filled exactly") {
    check_against_formula({2, 128, 1, 1, 128, false, 0}, DType::fp16);
  }
  SECTION("with head_dim that no tile has, under a window shorter than a tile") {
    check_against_formula({1, 300, 1, 1, 40, true, 50}, DType::bf16);
  }
  SECTION("with head_dim that no tile has, under a window, not causal") {
    check_against_formula({1, 140, 1, 1, 96, false, 30}, DType::fp16);
  }
  SECTION("a window as long as the sequence is none") {
    check_against_formula({1, 70, 1, 1, 80, true, 70}, DType::bf16);
  }
  SECTION("in fp32 and fp64, without tensor cores") {
    check_against_formula({2, 19, 4, 2, 40, true, 0}, DType::fp32);
    check_against_formula({1, 23, 2, 1, 33, false, 7}, DType::fp64);
    check_against_formula({1, 9, 1, 1, 256, true, 4}, DType::fp64);
  }
}

TEST_CASE("A sequence of one token attends to itself alone") {
  // One weight of 1: the output is the value, the log-sum-exp the scaled score; the softmax has no
  // slope, so queries and keys have no gradient, and a value's is its output's.
  const AttentionShape s{1, 1, 1, 1, 8, true, 0};
  const Numbers query{1, 0, 0, 0, 0, 0, 0, 2}, key{3, 0, 0, 0, 0, 0, 0, 1};
  const Numbers value{1, 2, 3, 4, 5, 6, 7, 8}, d_out{8, 7, 6, 5, 4, 3, 2, 1};
  Numbers qkv = query;
  qkv.insert(qkv.end(), key.begin(), key.end());
  qkv.insert(qkv.end(), value.begin(), value.end());
  Numbers d_qkv(16, 0.0);
  d_qkv.insert(d_qkv.end(), d_out.begin(), d_out.end());
  for (const DType format : {DType::bf16, DType::fp16, DType::fp32, DType::fp64}) {
    const AttentionResults found = Attention{s, format, qkv, d_out}.results();
    CHECK(found.out == value);
    CHECK(found.lse.at(0) == Approx(5 / std::sqrt(8.0)).epsilon(1e-6));
    CHECK(found.d_qkv == d_qkv);
  }
}

TEST_CASE("Scores far from zero neither overflow nor vanish") {
  // Scores of +-1800 / sqrt(64): exp would overflow fp32 at 89. The key that equals the query takes
  // all weight, so a query's output is its own value.
  const AttentionShape s{1, 96, 1, 1, 64, false, 0};
  Numbers qkv(static_cast<std::size_t>(s.seq * columns_of(s)), 0.0);
  Numbers values;
  std::uint32_t random = 5;
  for (std::int64_t row = 0; row < s.seq; ++row) {
    const auto at = static_cast<std::size_t>(row * columns_of(s));
    for (std::size_t c = 0; c < 64; ++c) {
      random = random * 1664525U + 1013904223U;
      const double sign = random >> 31 == 0 ? -1 : 1;
      qkv[at + c] = qkv[at + 64 + c] = 6 * sign;
      qkv[at + 128 + c] = static_cast<double>(row);
      values.push_back(static_cast<double>(row));
    }
  }
  const AttentionResults found =
      Attention{s, DType::bf16, qkv, Numbers(values.size(), 1.0)}.results();
  CHECK(found.out == values);
  for (const double lse : found.lse) CHECK(lse == Approx(64 * 36 / 8.0).epsilon(1e-6));
}

TEST_CASE("Equal calls of fused attention give equal bits") {
  const AttentionShape s{1, 140, 2, 1, 64, true, 0};
  const Numbers qkv = numbers(s.seq * columns_of(s), DType::bf16, 3);
  const Numbers d_out = numbers(s.seq * s.heads * s.head_dim, DType::bf16, 4);
  CHECK(Attention{s, DType::bf16, qkv, d_out} == Attention{s, DType::bf16, qkv, d_out});
}

TEST_CASE("Fused gradients are those of the CPU's products one by one") {
  const AttentionShape s{2, 45, 2, 1, 24, true, 20};
  const Numbers qkv = numbers(s.batch * s.seq * columns_of(s), DType::bf16, 6);
  const Numbers d_out = numbers(s.batch * s.seq * s.heads * s.head_dim, DType::bf16, 7);
  const Numbers expected = unfused_gradients(s, qkv, d_out);
  // Sums of fp32 in another order; then 16 bits, as above.
  CHECK(error_of(Attention{s, DType::fp32, qkv, d_out}.results().d_qkv, expected) < 1e-6);
  CHECK(error_of(Attention{s, DType::bf16, qkv, d_out}.results().d_qkv, expected) < 0x1p-7);
}

TEST_CASE("What fused attention lacks it refuses by name") {
  const auto refusal = [](std::int64_t head_dim, DType format) {
    Operation operation;
    operation.kind = OpKind::attention;
    operation.dtype = format;
    operation.attention = {1, 16, 2, 1, head_dim, true, 0};
    return attention_refusal(operation);
  };
  CHECK(refusal(256, DType::bf16) ==
        "no fused attention with a head_dim of 256 in bf16: multiples of 8 up to 128");
  CHECK(refusal(36, DType::fp16) ==
        "no fused attention with a head_dim of 36 in fp16: multiples of 8 up to 128");
  CHECK(refusal(257, DType::fp32) ==
        "no fused attention with a head_dim of 257 in fp32: up to 256");
  CHECK(refusal(320, DType::fp64) ==
        "no fused attention with a head_dim of 320 in fp64: up to 256");
  CHECK(refusal(64, DType::fp8) == "no fused attention in fp8");
  CHECK(refusal(128, DType::bf16).empty());
  CHECK(refusal(256, DType::fp64).empty());
}

TEST_CASE("Fused attention keeps two numbers for each query of each head of whole tiles") {
  Operation operation;
  operation.kind = OpKind::attention_backward;
  operation.dtype = DType::bf16;
  operation.attention = {3, 130, 4, 2, 64, true, 0};  // 130 queries lie in 256 rows
  CHECK(attention_scratch_bytes(operation) == 3 * 4 * 256 * 2 * 4);
  operation.dtype = DType::fp64;
  CHECK(attention_scratch_bytes(operation) == 3 * 4 * 256 * 2 * 8);
  operation.kind = OpKind::attention;
  CHECK(attention_scratch_bytes(operation) == 0);
}

}  // namespace
}  // namespace orrery::executor::cuda

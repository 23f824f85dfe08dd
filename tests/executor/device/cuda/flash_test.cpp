// Fused attention by our own kernels, held to its formula in fp64.

#include "executor/device/cuda/attention/flash.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/executor/device/cuda/attention_trial.hpp"

namespace orrery::executor::cuda {
namespace {

using models::AttentionShape;
using models::DType;
using models::Operation;
using models::OpKind;

TEST_CASE("Fused attention and its gradients are the formula's") {
  SECTION("in bf16, causal, over several tiles of queries and keys") {
    check_against_formula(own_way(), {1, 200, 2, 2, 64, true, 0}, DType::bf16);
  }
  SECTION("in fp16, every query seeing every key, eight heads sharing keys, two sequences") {
    check_against_formula(own_way(), {2, 40, 8, 1, 64, false, 0}, DType::fp16);
  }
  SECTION("in bf16, with 128 columns, four heads sharing keys") {
    check_against_formula(own_way(), {1, 135, 4, 1, 128, true, 0}, DType::bf16);
  }
  SECTION("in fp16, with 128 columns, not causal, tiles filled exactly") {
    check_against_formula(own_way(), {2, 128, 1, 1, 128, false, 0}, DType::fp16);
  }
  SECTION("with head_dim that no tile has, under a window shorter than a tile") {
    check_against_formula(own_way(), {1, 300, 1, 1, 40, true, 50}, DType::bf16);
  }
  SECTION("with head_dim that no tile has, under a window, not causal") {
    check_against_formula(own_way(), {1, 140, 1, 1, 96, false, 30}, DType::fp16);
  }
  SECTION("a window as long as the sequence is none") {
    check_against_formula(own_way(), {1, 70, 1, 1, 80, true, 70}, DType::bf16);
  }
  SECTION("in fp32 and fp64, without tensor cores") {
    check_against_formula(own_way(), {2, 19, 4, 2, 40, true, 0}, DType::fp32);
    check_against_formula(own_way(), {1, 23, 2, 1, 33, false, 7}, DType::fp64);
    check_against_formula(own_way(), {1, 9, 1, 1, 256, true, 4}, DType::fp64);
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
    const AttentionResults found = AttentionTrial{own_way(), s, format, qkv, d_out}.results();
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
      AttentionTrial{own_way(), s, DType::bf16, qkv, Numbers(values.size(), 1.0)}.results();
  CHECK(found.out == values);
  for (const double lse : found.lse) CHECK(lse == Approx(64 * 36 / 8.0).epsilon(1e-6));
}

TEST_CASE("Equal calls of fused attention give equal bits") {
  const AttentionShape s{1, 140, 2, 1, 64, true, 0};
  const Numbers qkv = numbers(s.seq * columns_of(s), DType::bf16, 3);
  const Numbers d_out = numbers(s.seq * s.heads * s.head_dim, DType::bf16, 4);
  CHECK(AttentionTrial{own_way(), s, DType::bf16, qkv, d_out} ==
        AttentionTrial{own_way(), s, DType::bf16, qkv, d_out});
}

TEST_CASE("Fused gradients are those of the CPU's products one by one") {
  const AttentionShape s{2, 45, 2, 1, 24, true, 20};
  const Numbers qkv = numbers(s.batch * s.seq * columns_of(s), DType::bf16, 6);
  const Numbers d_out = numbers(s.batch * s.seq * s.heads * s.head_dim, DType::bf16, 7);
  const Numbers expected = unfused_gradients(s, qkv, d_out);
  // Sums of fp32 in another order; then 16 bits, as above.
  CHECK(error_of(AttentionTrial{own_way(), s, DType::fp32, qkv, d_out}.results().d_qkv, expected) <
        1e-6);
  CHECK(error_of(AttentionTrial{own_way(), s, DType::bf16, qkv, d_out}.results().d_qkv, expected) <
        0x1p-7);
}

TEST_CASE("What fused attention lacks it refuses by name") {
  const auto refusal = [](std::int64_t head_dim, DType format) {
    Operation operation;
    operation.kind = OpKind::attention;
    operation.dtype = format;
    operation.mutable_attention() = {1, 16, 2, 1, head_dim, true, 0};
    return attention_refusal(operation);
  };
  CHECK(refusal(256, DType::bf16) ==
        "no fused attention with head_dim 256 in bf16; supported: multiples of 8 up to 128");
  CHECK(refusal(36, DType::fp16) ==
        "no fused attention with head_dim 36 in fp16; supported: multiples of 8 up to 128");
  CHECK(refusal(257, DType::fp32) ==
        "no fused attention with head_dim 257 in fp32; supported: up to 256");
  CHECK(refusal(320, DType::fp64) ==
        "no fused attention with head_dim 320 in fp64; supported: up to 256");
  CHECK(refusal(64, DType::fp8) == "no fused attention in fp8");
  CHECK(refusal(128, DType::bf16).empty());
  CHECK(refusal(256, DType::fp64).empty());
}

TEST_CASE("Fused attention keeps two numbers for each query of each head of whole tiles") {
  Operation operation;
  operation.kind = OpKind::attention_backward;
  operation.dtype = DType::bf16;
  operation.mutable_attention() = {3, 130, 4, 2, 64, true, 0};  // 130 queries lie in 256 rows
  CHECK(attention_scratch_bytes(operation) == 3 * 4 * 256 * 2 * 4);
  operation.dtype = DType::fp64;
  CHECK(attention_scratch_bytes(operation) == 3 * 4 * 256 * 2 * 8);
  operation.kind = OpKind::attention;
  CHECK(attention_scratch_bytes(operation) == 0);
}

}  // namespace
}  // namespace orrery::executor::cuda

#include "executor/device/cuda/products/product_attempts.hpp"

#include <catch2/catch.hpp>

namespace orrery::executor::cuda {
namespace {

TEST_CASE("A product is asked for with its bias before without, and on 16 bytes last of each") {
  CHECK(product_attempts(true) ==
        std::vector<ProductAttempt>{{true, 256}, {true, 16}, {false, 256}, {false, 16}});
  CHECK(product_attempts(false) == std::vector<ProductAttempt>{{false, 256}, {false, 16}});
}

TEST_CASE("A product that no way of asking gets is named with its shape and every answer") {
  using models::DType;
  const models::GemmShape plain{.m = 4096, .n = 3072, .k = 1024};
  CHECK(product_words("qkv", plain, DType::bf16, DType::bf16) ==
        "'qkv' [4096, 1024] x [1024, 3072] of bf16 to bf16");
  models::GemmShape turned = plain;
  turned.batch = 8;
  turned.transpose_a = turned.accumulate = true;
  const std::string words = product_words("qkv.wgrad", turned, DType::bf16, DType::fp32);
  CHECK(words ==
        "'qkv.wgrad' [4096, 1024] x [1024, 3072] of bf16 to fp32, 8 times, a transposed, "
        "accumulating");
  const std::vector<std::string> two{"CUBLAS_STATUS_NOT_SUPPORTED", "no algorithm"};
  CHECK(no_product_text("'qkv'", false, two) ==
        "cuBLASLt has no algorithm for GEMM 'qkv' (aligned to 256 bytes: "
        "CUBLAS_STATUS_NOT_SUPPORTED; aligned to 16 bytes: no algorithm)");
  const std::vector<std::string> four{"A", "B", "C", "D"};
  CHECK(
      no_product_text("'qkv'", true, four) ==
      "cuBLASLt has no algorithm for GEMM 'qkv' (with bias, aligned to 256 bytes: A; with bias, "
      "aligned to 16 bytes: B; without bias, aligned to 256 bytes: C; without bias, aligned to 16 "
      "bytes: D)");
}

}  // namespace
}  // namespace orrery::executor::cuda

#include "executor/device/cuda/products/fp8_product.hpp"

#include <fmt/format.h>

namespace orrery::executor::cuda {

std::string fp8_product_refusal(const models::Operation& product) {
  const models::GemmShape& s = product.gemm;
  const bool whole = s.m % 16 == 0 && s.n % 16 == 0 && s.k % 16 == 0;
  if (product.kind != models::OpKind::gemm) return "the GPU has fp8 for products of layers alone";
  if (whole) return {};
  return fmt::format("fp8 products need sizes in multiples of 16, this one is [{}, {}] x [{}, {}]",
                     s.m, s.k, s.k, s.n);
}

}  // namespace orrery::executor::cuda

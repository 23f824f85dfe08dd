#include "executor/device/cuda/products/fp8_product.hpp"

#include <fmt/format.h>

namespace orrery::executor::cuda {

std::string fp8_product_refusal(const models::Operation& product) {
  const models::GemmShape& s = product.gemm();
  const bool whole = s.m % 16 == 0 && s.n % 16 == 0 && s.k % 16 == 0;
  if (product.kind != models::OpKind::gemm)
    return "the GPU supports fp8 only for the GEMMs of layers";
  if (whole) return {};
  return fmt::format(
      "fp8 GEMMs need sizes that are multiples of 16, this one is [{}, {}] x [{}, {}]", s.m, s.k,
      s.k, s.n);
}

}  // namespace orrery::executor::cuda

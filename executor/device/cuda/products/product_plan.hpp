#pragma once
// cuBLASLt's description of one GEMM and the algorithm that was chosen; for gemms.cpp,
// product_plan.cpp and grouped.cpp alone.

#include <type_traits>

#include "executor/device/cuda/products/gemms.hpp"

namespace orrery::executor::cuda {

/// How cuBLAS names a number format, and the arithmetic of a product.
/// Errors  a format that it cannot multiply: RunFailure{invalid_program}
cudaDataType_t stored(models::DType type);
cublasComputeType_t computed(models::DType arithmetic, models::DType from);

struct DestroyProduct {
  void operator()(cublasLtMatmulDesc_t of) const noexcept { cublasLtMatmulDescDestroy(of); }
  void operator()(cublasLtMatrixLayout_t of) const noexcept { cublasLtMatrixLayoutDestroy(of); }
  void operator()(cublasLtMatmulPreference_t of) const noexcept {
    cublasLtMatmulPreferenceDestroy(of);
  }
};
template <class Handle>
using OwnedHandle = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyProduct>;

struct Gemms::Plan {
  OwnedHandle<cublasLtMatmulDesc_t> product;
  OwnedHandle<cublasLtMatrixLayout_t> a, b, c;
  cublasLtMatmulAlgo_t algorithm{};
  Choice choice;
  bool adds_bias = false;
};

}  // namespace orrery::executor::cuda

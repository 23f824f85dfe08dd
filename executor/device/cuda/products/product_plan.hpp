#pragma once
// cuBLASLt's description of one GEMM and the algorithm that was chosen; for gemms.cpp and
// product_plan.cpp alone.

#include <type_traits>

#include "executor/device/cuda/products/gemms.hpp"

namespace orrery::executor::cuda {

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

// Makes plans: describes one GEMM to cuBLASLt and asks its heuristic for the best algorithm.

#include "executor/device/cuda/products/product_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "executor/device/cuda/errors.hpp"
#include "executor/errors.hpp"

namespace orrery::executor::cuda {

namespace {

using models::DType;
using models::GemmShape;

cudaDataType_t stored(Fp8 format) {
  return format == Fp8::e4m3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

/// `rows` of `columns` elements, row-major, which is [columns, rows] to cuBLAS.
OwnedHandle<cublasLtMatrixLayout_t> layout(cudaDataType_t type, std::int64_t rows,
                                           std::int64_t columns, std::int64_t row,
                                           std::int64_t step, std::int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), row),
        "the layout of a matrix");
  OwnedHandle<cublasLtMatrixLayout_t> owned{made};
  if (batch == 1) return owned;
  const auto count = static_cast<std::int32_t>(batch);
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof count),
        "the layout of a matrix");
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                         sizeof step),
        "the layout of a matrix");
  return owned;
}

template <class Value>
void set(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(of, attribute, &value, sizeof value),
        "the description of a GEMM");
}

template <class Value>
void set(cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(of, attribute, &value, sizeof value),
        "the preferences of a product");
}

/// One number of an algorithm's configuration; 0 where this version does not report it.
int configured(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  std::int32_t value = 0;
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : 0;
}

}  // namespace

cudaDataType_t stored(DType type) {
  switch (type) {
    case DType::fp64:
      return CUDA_R_64F;
    case DType::fp32:
    case DType::tf32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::fp16:
      return CUDA_R_16F;
    default:
      throw RunFailure{Exit::invalid_program,
                       fmt::format("the GPU does not support GEMMs in {}", hardware::name(type))};
  }
}

cublasComputeType_t computed(DType arithmetic, DType from) {
  if (from == DType::fp64) return CUBLAS_COMPUTE_64F;
  return arithmetic == DType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/// Returns null where cuBLASLt has no algorithm, with its answer in `answer`: some formats lack the
/// bias, some shapes an algorithm for a large alignment.
std::unique_ptr<Gemms::Plan> Gemms::make_plan(const Call& call, const ProductAttempt& attempt,
                                              std::string& answer) const {
  const GemmShape& s = call.shape;
  const bool bias = attempt.bias;
  auto plan = std::make_unique<Plan>();
  const bool wide = call.from == DType::fp64;
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, computed(call.arithmetic, call.from),
                                 wide ? CUDA_R_64F : CUDA_R_32F),
        *call.name);
  plan->product.reset(made);
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (bias) set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  if (call.factors != nullptr) {
    set(made, CUBLASLT_MATMUL_DESC_POINTER_MODE,
        static_cast<std::int32_t>(CUBLASLT_POINTER_MODE_DEVICE));
  }
  const auto type_a = call.scaled ? stored(call.scaled->a.format) : stored(call.from);
  const auto type_b = call.scaled ? stored(call.scaled->b.format) : stored(call.from);
  plan->a = s.transpose_a ? layout(type_a, s.k, s.m, call.a.row, call.a.step, s.batch)
                          : layout(type_a, s.m, s.k, call.a.row, call.a.step, s.batch);
  plan->b = s.transpose_b ? layout(type_b, s.n, s.k, call.b.row, call.b.step, s.batch)
                          : layout(type_b, s.k, s.n, call.b.row, call.b.step, s.batch);
  plan->c = layout(stored(call.to), s.m, s.n, call.c.row, call.c.step, s.batch);
  plan->adds_bias = bias;
  point(*plan, call);

  cublasLtMatmulPreference_t wishes = nullptr;
  check(cublasLtMatmulPreferenceCreate(&wishes), *call.name);
  const OwnedHandle<cublasLtMatmulPreference_t> owned{wishes};
  const auto aligned = [&](const Matrix& of, DType type) {
    return static_cast<std::uint32_t>(std::min(alignment_of(of, type), attempt.most_alignment));
  };
  const std::uint32_t of_c = aligned(call.c, call.to), of_bias = aligned({call.bias}, call.to);
  set(wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::size_t>(workspace_size.count()));
  // cuBLAS's A, B, C and D are our b, a, c and c; with a bias, D's alignment must suit both.
  set(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned(call.b, call.from));
  set(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned(call.a, call.from));
  set(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_c);
  set(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::min(of_c, of_bias));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, made, plan->b.get(), plan->a.get(), plan->c.get(),
                                     plan->c.get(), wishes, 1, &best, &found);
  if (status == CUBLAS_STATUS_SUCCESS && found > 0) status = best.state;
  if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
    answer = found == 0 && status == CUBLAS_STATUS_SUCCESS ? "no algorithm"
                                                           : cublasLtGetStatusName(status);
    return nullptr;
  }
  plan->algorithm = best.algo;
  plan->choice = {.shape = s,
                  .from = call.from,
                  .to = call.to,
                  .algorithm = configured(best.algo, CUBLASLT_ALGO_CONFIG_ID),
                  .tile = configured(best.algo, CUBLASLT_ALGO_CONFIG_TILE_ID),
                  .stages = configured(best.algo, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                  .split_k = configured(best.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                  .waves = best.wavesCount,
                  .workspace = Bytes{static_cast<std::int64_t>(best.workspaceSize)}};
  return plan;
}

Gemms::Plan& Gemms::plan_of(const Call& call) {
  std::unique_ptr<Plan>& plan = plans_[key_of(call)];
  std::vector<std::string> answers;
  for (const ProductAttempt& each : product_attempts(call.bias != nullptr)) {
    if (plan != nullptr) return *plan;
    plan = make_plan(call, each, answers.emplace_back());
  }
  if (plan != nullptr) return *plan;
  throw RunFailure{Exit::invalid_program,
                   no_product_text(words_of(call), call.bias != nullptr, answers)};
}

std::string Gemms::words_of(const Call& call) {
  return product_words(*call.name, call.shape, call.from, call.to);
}

/// Sets the pointers that a plan needs besides the matrices; cuBLAS's A and B are our b and a.
void Gemms::point(Plan& plan, const Call& call) {
  cublasLtMatmulDesc_t product = plan.product.get();
  if (plan.adds_bias) set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
  if (call.scaled == nullptr) return;
  set(product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, call.scaled->b.inverse);
  set(product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, call.scaled->a.inverse);
}

}  // namespace orrery::executor::cuda

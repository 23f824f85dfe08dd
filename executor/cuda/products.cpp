#include "executor/cuda/products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "executor/cuda/errors.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

namespace {

using models::DType;
using models::GemmShape;

struct Destroy {
  void operator()(cublasLtMatmulDesc_t of) const noexcept { cublasLtMatmulDescDestroy(of); }
  void operator()(cublasLtMatrixLayout_t of) const noexcept { cublasLtMatrixLayoutDestroy(of); }
  void operator()(cublasLtMatmulPreference_t of) const noexcept {
    cublasLtMatmulPreferenceDestroy(of);
  }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

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
                       fmt::format("the GPU has no products of {}", hardware::name(type))};
  }
}

cudaDataType_t stored(Fp8 format) {
  return format == Fp8::e4m3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

cublasComputeType_t computed(DType arithmetic, DType from) {
  if (from == DType::fp64) return CUBLAS_COMPUTE_64F;
  return arithmetic == DType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/// Bytes that a pointer, and every step from it, is a multiple of; 256 at the most.
std::int64_t alignment_of(const std::byte* data, std::int64_t step, DType type) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t both = address | static_cast<std::uintptr_t>(step * bits(type) / 8) | 256U;
  return static_cast<std::int64_t>(both & (~both + 1));
}

/// `rows` of `columns` elements, row-major, which is [columns, rows] to cuBLAS.
Owned<cublasLtMatrixLayout_t> layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                                     std::int64_t row, std::int64_t step, std::int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), row),
        "the layout of a matrix");
  Owned<cublasLtMatrixLayout_t> owned{made};
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
        "the description of a product");
}

template <class Value>
void set(cublasLtMatmulPreference_t of, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(of, attribute, &value, sizeof value),
        "the preferences of a product");
}

/// One number of an algorithm's configuration; 0 where this version does not tell.
int configured(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  std::int32_t value = 0;
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : 0;
}

}  // namespace

struct Products::Plan {
  Owned<cublasLtMatmulDesc_t> product;
  Owned<cublasLtMatrixLayout_t> a, b, c;
  cublasLtMatmulAlgo_t algorithm{};
  Choice choice;
  bool adds_bias = false;
};

Products::Products(std::byte* workspace) : workspace_{workspace} {
  check(cublasLtCreate(&handle_), "starting cuBLASLt");
}

Products::~Products() {
  plans_.clear();
  experts_.clear();
  if (blas_ != nullptr) cublasDestroy(blas_);
  cublasLtDestroy(handle_);
}

Products::Key Products::key_of(const Call& call) {
  const GemmShape& s = call.shape;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const auto wider = [&](const Fp8Operand Fp8Operands::*which) {
    return number(call.scaled != nullptr && (call.scaled->*which).format == Fp8::e5m2);
  };
  const std::int64_t flags = number(s.transpose_a) + 2 * number(s.transpose_b) +
                             4 * number(s.accumulate) + 8 * number(call.bias != nullptr) +
                             16 * wider(&Fp8Operands::a) + 32 * wider(&Fp8Operands::b);
  return {s.m,
          s.n,
          s.k,
          s.batch,
          flags,
          number(call.arithmetic),
          number(call.from),
          number(call.to),
          call.row_a,
          call.row_b,
          call.row_c,
          call.step_a,
          call.step_b,
          call.step_c,
          alignment_of(call.a, call.step_a, call.from),
          alignment_of(call.b, call.step_b, call.from),
          alignment_of(call.c, call.step_c, call.to),
          alignment_of(call.bias, 0, call.to)};
}

/// Nothing where cuBLASLt has no algorithm: some formats lack the bias.
std::unique_ptr<Products::Plan> Products::make_plan(const Call& call, bool bias) const {
  const GemmShape& s = call.shape;
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
  const auto type_a = call.scaled ? stored(call.scaled->a.format) : stored(call.from);
  const auto type_b = call.scaled ? stored(call.scaled->b.format) : stored(call.from);
  plan->a = s.transpose_a ? layout(type_a, s.k, s.m, call.row_a, call.step_a, s.batch)
                          : layout(type_a, s.m, s.k, call.row_a, call.step_a, s.batch);
  plan->b = s.transpose_b ? layout(type_b, s.n, s.k, call.row_b, call.step_b, s.batch)
                          : layout(type_b, s.k, s.n, call.row_b, call.step_b, s.batch);
  plan->c = layout(stored(call.to), s.m, s.n, call.row_c, call.step_c, s.batch);
  plan->adds_bias = bias;
  point(*plan, call);

  cublasLtMatmulPreference_t wishes = nullptr;
  check(cublasLtMatmulPreferenceCreate(&wishes), *call.name);
  const Owned<cublasLtMatmulPreference_t> owned{wishes};
  const Key key = key_of(call);
  const auto aligned = [&](std::size_t at) { return static_cast<std::uint32_t>(key[at]); };
  set(wishes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::size_t>(workspace_size.count()));
  // Ours are b, a, c and c, which with a bias is read and written in steps that suit both.
  set(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned(15));
  set(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned(14));
  set(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned(16));
  set(wishes, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::min(aligned(16), aligned(17)));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, made, plan->b.get(), plan->a.get(), plan->c.get(),
                                     plan->c.get(), wishes, 1, &best, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || found == 0) return nullptr;
  check(status, *call.name);
  check(best.state, *call.name);
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

Products::Plan& Products::plan_of(const Call& call) {
  std::unique_ptr<Plan>& plan = plans_[key_of(call)];
  if (plan == nullptr) plan = make_plan(call, call.bias != nullptr);
  if (plan == nullptr && call.bias != nullptr) plan = make_plan(call, false);
  if (plan == nullptr) {
    const GemmShape& s = call.shape;
    throw RunFailure{Exit::invalid_program,
                     fmt::format("cuBLASLt has no product [{}, {}] x [{}, {}] of {} for '{}'", s.m,
                                 s.k, s.k, s.n, hardware::name(call.from), *call.name)};
  }
  return *plan;
}

/// Where a call finds what its plan needs beside the matrices; ours are cuBLAS's b and a.
void Products::point(Plan& plan, const Call& call) {
  cublasLtMatmulDesc_t product = plan.product.get();
  if (plan.adds_bias) set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
  if (call.scaled == nullptr) return;
  set(product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, call.scaled->b.inverse);
  set(product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, call.scaled->a.inverse);
}

bool Products::multiply(const Call& call, Stream stream) {
  Plan& plan = plan_of(call);
  point(plan, call);
  const bool wide = call.from == DType::fp64;
  const double one = 1, beta = call.shape.accumulate ? 1 : 0;
  const float narrow_one = 1, narrow_beta = call.shape.accumulate ? 1 : 0;
  const void* alpha = wide ? static_cast<const void*>(&one) : &narrow_one;
  const void* keep = wide ? static_cast<const void*>(&beta) : &narrow_beta;
  check(
      cublasLtMatmul(handle_, plan.product.get(), alpha, call.b, plan.b.get(), call.a, plan.a.get(),
                     keep, call.c, plan.c.get(), call.c, plan.c.get(), &plan.algorithm, workspace_,
                     static_cast<std::size_t>(plan.choice.workspace.count()), stream),
      *call.name);
  return plan.adds_bias || call.bias == nullptr;
}

Products::Call Products::call_of(const Kernel& kernel) {
  const models::Operation& op = *kernel.operation;
  ensure(kernel.reads[0].dtype == kernel.reads[1].dtype, "a product reads two formats");
  return {.name = &op.name,
          .shape = op.gemm,
          .arithmetic = op.dtype,
          .from = kernel.reads[0].dtype,
          .to = kernel.writes[0].dtype,
          .a = kernel.reads[0].data,
          .b = kernel.reads[1].data,
          .c = kernel.writes[0].data};
}

bool Products::gemm(const Kernel& kernel, Stream stream) {
  Call call = call_of(kernel);
  const GemmShape& s = call.shape;
  call.shape.batch = 1;
  call.row_a = s.transpose_a ? s.m : s.k;
  call.row_b = s.transpose_b ? s.k : s.n;
  call.row_c = s.n;
  if (kernel.reads.size() > 2) call.bias = kernel.reads[2].data;
  return multiply(call, stream);
}

bool Products::gemm(const Kernel& kernel, const Fp8Operands& operands, Stream stream) {
  const models::Operation& op = *kernel.operation;
  Call call{.name = &op.name,
            .shape = op.gemm,
            .arithmetic = op.dtype,
            .from = DType::fp8,
            .to = kernel.writes[0].dtype,
            .a = operands.a.codes,
            .b = operands.b.codes,
            .c = kernel.writes[0].data,
            .scaled = &operands};
  call.shape.batch = 1;
  call.shape.transpose_a = false;
  call.shape.transpose_b = true;
  call.row_a = call.row_b = call.shape.k;
  call.row_c = call.shape.n;
  if (kernel.reads.size() > 2) call.bias = kernel.reads[2].data;
  return multiply(call, stream);
}

std::vector<Products::Choice> Products::choices() const {
  std::vector<Choice> all;
  for (const auto& [key, plan] : plans_) all.push_back(plan->choice);
  return all;
}

}  // namespace orrery::executor::cuda

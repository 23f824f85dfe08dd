#include "executor/device/cuda/products/gemms.hpp"

#include "executor/device/cuda/errors.hpp"
#include "executor/device/cuda/products/product_plan.hpp"
#include "executor/device/row_steps.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cuda {

using models::DType;
using models::GemmShape;

Gemms::Gemms(std::byte* workspace) : workspace_{workspace} {
  check(cublasLtCreate(&handle_), "starting cuBLASLt");
}

Gemms::~Gemms() {
  plans_.clear();
  experts_.clear();
  if (blas_ != nullptr) cublasDestroy(blas_);
  cublasLtDestroy(handle_);
}

Gemms::Key Gemms::key_of(const Call& call) {
  const GemmShape& s = call.shape;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const auto wider = [&](const Fp8Operand Fp8Operands::*which) {
    return number(call.scaled != nullptr && (call.scaled->*which).format == Fp8::e5m2);
  };
  const std::int64_t flags = number(s.transpose_a) + 2 * number(s.transpose_b) +
                             4 * number(s.accumulate) + 8 * number(call.bias != nullptr) +
                             16 * wider(&Fp8Operands::a) + 32 * wider(&Fp8Operands::b) +
                             64 * number(call.factors != nullptr);
  Key key{
      s.m, s.n, s.k, s.batch, flags, number(call.arithmetic), number(call.from), number(call.to)};
  const Matrix* const matrices[] = {&call.a, &call.b, &call.c};
  for (const Matrix* each : matrices) key.push_back(each->row);
  for (const Matrix* each : matrices) key.push_back(each->step);
  for (const Matrix* each : matrices) {
    key.push_back(alignment_of(*each, each == &call.c ? call.to : call.from));
  }
  key.push_back(alignment_of({call.bias}, call.to));
  return key;
}

/// Alignment in bytes of a matrix and of every step from it; 256 at most.
std::int64_t Gemms::alignment_of(const Matrix& matrix, DType type) {
  const auto address = reinterpret_cast<std::uintptr_t>(matrix.data);
  const auto step = static_cast<std::uintptr_t>(matrix.step * bits(type) / 8);
  const std::uintptr_t both = address | step | 256U;
  return static_cast<std::int64_t>(both & (~both + 1));
}

bool Gemms::multiply(const Call& call, Stream stream) {
  Plan& plan = plan_of(call);
  point(plan, call);
  const bool wide = call.from == DType::fp64;
  const double one = call.shape.subtract ? -1 : 1, beta = call.shape.accumulate ? 1 : 0;
  const auto narrow_one = static_cast<float>(one), narrow_beta = static_cast<float>(beta);
  const void* alpha = wide ? static_cast<const void*>(&one) : &narrow_one;
  const void* keep = wide ? static_cast<const void*>(&beta) : &narrow_beta;
  if (call.factors != nullptr) {
    alpha = call.factors;
    keep = call.factors + 1;
  }
  check(cublasLtMatmul(handle_, plan.product.get(), alpha, call.b.data, plan.b.get(), call.a.data,
                       plan.a.get(), keep, call.c.data, plan.c.get(),
                       const_cast<std::byte*>(call.c.data), plan.c.get(), &plan.algorithm,
                       workspace_, static_cast<std::size_t>(plan.choice.workspace.count()), stream),
        words_of(call));
  return plan.adds_bias || call.bias == nullptr;
}

Gemms::Call Gemms::call_of(const Kernel& kernel) {
  const models::Operation& op = *kernel.operation;
  ensure(kernel.reads[0].dtype == kernel.reads[1].dtype, "a product reads two formats");
  return {.name = &op.name,
          .shape = op.gemm,
          .arithmetic = op.dtype,
          .from = kernel.reads[0].dtype,
          .to = kernel.writes[0].dtype,
          .a = {kernel.reads[0].data},
          .b = {kernel.reads[1].data},
          .c = {kernel.writes[0].data}};
}

bool Gemms::gemm(const Kernel& kernel, const float* factors, Stream stream) {
  Call call = call_of(kernel);
  call.factors = factors;
  const GemmShape& s = call.shape;
  call.shape.batch = 1;
  const RowSteps steps{kernel};
  call.a.row = steps.a;
  call.b.row = s.transpose_b ? s.k : s.n;
  call.c.row = steps.c;
  if (kernel.reads.size() > 2 && !has_columns_after(kernel)) call.bias = kernel.reads[2].data;
  return multiply(call, stream);
}

bool Gemms::gemm(const Kernel& kernel, const Fp8Operands& operands, Stream stream) {
  const models::Operation& op = *kernel.operation;
  Call call{.name = &op.name,
            .shape = op.gemm,
            .arithmetic = op.dtype,
            .from = DType::fp8,
            .to = kernel.writes[0].dtype,
            .a = {operands.a.codes, op.gemm.k},
            .b = {operands.b.codes, op.gemm.k},
            .c = {kernel.writes[0].data, op.gemm.n},
            .scaled = &operands};
  call.shape.batch = 1;
  call.shape.transpose_a = false;
  call.shape.transpose_b = true;
  if (kernel.reads.size() > 2) call.bias = kernel.reads[2].data;
  return multiply(call, stream);
}

std::vector<Gemms::Choice> Gemms::choices() const {
  std::vector<Choice> all;
  for (const auto& [key, plan] : plans_) all.push_back(plan->choice);
  return all;
}

}  // namespace orrery::executor::cuda

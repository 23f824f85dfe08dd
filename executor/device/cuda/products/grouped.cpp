// Grouped GEMM: all products in one call of cuBLAS where it has one for the format, else one
// after another by cuBLASLt.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <optional>

#include "executor/device/cuda/errors.hpp"
#include "executor/device/cuda/products/gemms.hpp"
#include "executor/device/grouped.hpp"
#include "executor/errors.hpp"

namespace orrery::executor::cuda {

namespace {

using models::DType;

/// What cublasGemmGroupedBatchedEx takes: one format for all three matrices.
/// Source  cuBLAS documentation, cublasGemmGroupedBatchedEx
struct GroupedFormat {
  cudaDataType_t stored;
  cublasComputeType_t computed;
};

std::optional<GroupedFormat> grouped_format(DType arithmetic, DType from, DType to) {
  if (from != to) return std::nullopt;
  switch (arithmetic) {
    case DType::bf16:
      return GroupedFormat{CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case DType::fp16:
      return GroupedFormat{CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case DType::tf32:
      return GroupedFormat{CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case DType::fp32:
      return GroupedFormat{CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::fp64:
      return GroupedFormat{CUDA_R_64F, CUBLAS_COMPUTE_64F};
    default:
      return std::nullopt;
  }
}

}  // namespace

/// Arguments of one grouped GEMM, kept for the next call with the same operands: the experts that
/// have rows, and the addresses of their matrices on the GPU.
struct Gemms::Experts {
  std::vector<Call> calls;         // one for each expert with rows
  std::byte* addresses = nullptr;  // of all b, all a, all c
  bool at_once = false;
};

void Gemms::FreeExperts::operator()(Experts* of) const noexcept {
  cudaFree(of->addresses);
  delete of;
}

/// Addresses are copied on the stream that reads them: a plain cudaMemcpy may return before
/// pageable memory has arrived, and a non-blocking stream does not wait for it.
Gemms::OwnedExperts Gemms::make_experts(const Kernel& kernel, const float* factors,
                                        Stream stream) const {
  const models::Operation& op = *kernel.operation;
  const models::GemmShape& s = op.gemm;
  OwnedExperts made{new Experts};
  Call whole = call_of(kernel);
  whole.factors = factors;
  const auto width = [](DType type) { return bits(type) / 8; };
  std::vector<const std::byte*> addresses[3];
  for (const ExpertProduct& each : expert_products(op)) {
    if (each.shape.m == 0 || each.shape.k == 0) continue;
    Call call = whole;
    call.shape = each.shape;
    call.a += each.a * width(call.from);
    call.b += each.b * width(call.from);
    call.c += each.c * width(call.to);
    call.row_a = s.transpose_a ? s.m : s.k;
    call.row_b = s.transpose_b ? s.k : s.n;
    call.row_c = s.n;
    addresses[0].push_back(call.b);
    addresses[1].push_back(call.a);
    addresses[2].push_back(call.c);
    made->calls.push_back(call);
  }
  made->at_once = blas_ != nullptr && factors == nullptr && !made->calls.empty() &&
                  grouped_format(op.dtype, whole.from, whole.to).has_value();
  if (!made->at_once) return made;
  const std::size_t size = made->calls.size() * sizeof(std::byte*);
  void* memory = nullptr;
  check(cudaMalloc(&memory, 3 * size), "allocating memory for addresses");
  made->addresses = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < 3; ++i) {
    check(cudaMemcpyAsync(made->addresses + i * size, addresses[i].data(), size,
                          cudaMemcpyHostToDevice, stream),
          "writing addresses");
  }
  check(cudaStreamSynchronize(stream), "writing addresses");  // the source is freed on return
  return made;
}

/// cuBLAS's A, B and C are our b, a and c, as everywhere (gemms.hpp). Returns false if cuBLAS
/// has no such call.
bool Gemms::multiply_at_once(const Experts& experts, Stream stream) {
#if CUBLAS_VERSION >= 120500
  const Call& first = experts.calls.front();
  const auto format = grouped_format(first.arithmetic, first.from, first.to);
  const auto count = experts.calls.size();
  const models::GemmShape& s = first.shape;
  const std::vector<cublasOperation_t> turn_b(count, s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  const std::vector<cublasOperation_t> turn_a(count, s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  std::vector<int> n, m, k;
  for (const Call& each : experts.calls) {
    n.push_back(static_cast<int>(each.shape.n));
    m.push_back(static_cast<int>(each.shape.m));
    k.push_back(static_cast<int>(each.shape.k));
  }
  const std::vector<int> row_b(count, static_cast<int>(first.row_b));
  const std::vector<int> row_a(count, static_cast<int>(first.row_a));
  const std::vector<int> row_c(count, static_cast<int>(first.row_c)), one_each(count, 1);
  const float keep = s.accumulate ? 1 : 0;
  const std::vector<float> ones(count, 1), keeps(count, keep);
  const std::vector<double> wide_ones(count, 1), wide_keeps(count, keep);
  const bool wide = first.from == DType::fp64;
  const auto** addresses = reinterpret_cast<const void**>(experts.addresses);
  check(cublasSetStream(blas_, stream), *first.name);
  // A change of the stream resets the workspace.
  check(cublasSetWorkspace(blas_, workspace_, static_cast<std::size_t>(workspace_size.count())),
        *first.name);
  const cublasStatus_t status = cublasGemmGroupedBatchedEx(
      blas_, turn_b.data(), turn_a.data(), n.data(), m.data(), k.data(),
      wide ? static_cast<const void*>(wide_ones.data()) : ones.data(), addresses, format->stored,
      row_b.data(), addresses + count, format->stored, row_a.data(),
      wide ? static_cast<const void*>(wide_keeps.data()) : keeps.data(),
      const_cast<void**>(addresses + 2 * count), format->stored, row_c.data(),
      static_cast<int>(count), one_each.data(), format->computed);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  check(status, *first.name);
  return true;
#else
  static_cast<void>(experts);
  static_cast<void>(stream);
  return false;
#endif
}

void Gemms::grouped(const Kernel& kernel, const float* factors, Stream stream) {
  const models::Operation& op = *kernel.operation;
  std::vector<std::int64_t> key = op.group_rows;
  for (const std::int64_t each : key_of(call_of(kernel))) key.push_back(each);
  for (const View* each : {&kernel.reads[0], &kernel.reads[1], &kernel.writes[0]}) {
    key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(each->data)));
  }
  key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(factors)));
#if CUBLAS_VERSION >= 120500
  if (blas_ == nullptr) check(cublasCreate(&blas_), "starting cuBLAS");
#endif
  OwnedExperts& experts = experts_[key];
  if (experts == nullptr) experts = make_experts(kernel, factors, stream);
  for (Call& each : experts->calls) each.name = &op.name;
  if (op.gemm.transpose_a && !op.gemm.accumulate) {  // zeros for experts without a row
    const View& to = kernel.writes[0];
    const auto size = static_cast<std::size_t>(to.elements() * bits(to.dtype) / 8);
    check(cudaMemsetAsync(to.data, 0, size, stream), op.name);
  }
  if (experts->at_once) {
    experts->at_once = multiply_at_once(*experts, stream);
    if (experts->at_once) return;
  }
  for (const Call& each : experts->calls) multiply(each, stream);
}

std::vector<std::string> Gemms::grouped_choices() const {
  std::vector<std::string> all;
  for (const auto& [key, experts] : experts_) {
    if (experts->calls.empty()) continue;
    const Call& of = experts->calls.front();
    all.push_back(fmt::format("grouped GEMM of {} {} to {}, n {} k {}: {}", experts->calls.size(),
                              hardware::name(of.from), hardware::name(of.to), of.shape.n,
                              of.shape.k,
                              experts->at_once ? "one call of cuBLAS" : "one after another"));
  }
  return all;
}

}  // namespace orrery::executor::cuda

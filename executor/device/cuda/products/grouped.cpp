// Grouped GEMM: all products in one call of cuBLAS where it has one for the format, else one
// after another by cuBLASLt.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "executor/device/cuda/errors.hpp"
#include "executor/device/cuda/products/product_plan.hpp"
#include "executor/device/grouped.hpp"

namespace orrery::executor::cuda {

using models::DType;

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
  std::vector<const std::byte*> addresses[3];
  for (const ExpertProduct& each : expert_products(op)) {
    if (each.shape.m == 0 || each.shape.k == 0) continue;
    Call call = whole;
    call.shape = each.shape;
    call.a = {whole.a.data + each.a * width_of(call.from), s.transpose_a ? s.m : s.k};
    call.b = {whole.b.data + each.b * width_of(call.from), s.transpose_b ? s.k : s.n};
    call.c = {whole.c.data + each.c * width_of(call.to), s.n};
    addresses[0].push_back(call.b.data);
    addresses[1].push_back(call.a.data);
    addresses[2].push_back(call.c.data);
    made->calls.push_back(call);
  }
  made->at_once = blas_ != nullptr && factors == nullptr && !made->calls.empty() &&
                  whole.from == whole.to && bits(whole.from) >= 16;
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
/// Source  cuBLAS documentation, cublasGemmGroupedBatchedEx
bool Gemms::multiply_at_once(const Experts& experts, Stream stream) {
#if CUBLAS_VERSION >= 120500
  const Call& first = experts.calls.front();
  const cudaDataType_t format = stored(first.from);  // of all three matrices
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
  const std::vector<int> row_b(count, static_cast<int>(first.b.row));
  const std::vector<int> row_a(count, static_cast<int>(first.a.row));
  const std::vector<int> row_c(count, static_cast<int>(first.c.row)), one_each(count, 1);
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
      wide ? static_cast<const void*>(wide_ones.data()) : ones.data(), addresses, format,
      row_b.data(), addresses + count, format, row_a.data(),
      wide ? static_cast<const void*>(wide_keeps.data()) : keeps.data(),
      const_cast<void**>(addresses + 2 * count), format, row_c.data(), static_cast<int>(count),
      one_each.data(), computed(first.arithmetic, first.from));
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

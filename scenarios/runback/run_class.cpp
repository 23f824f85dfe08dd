#include "scenarios/runback/run_class.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include "scenarios/runback/profiled_rank.hpp"

namespace orrery::scenarios {

namespace {

struct ClassTitle {
  RunClass which;
  std::string_view title;
};
constexpr ClassTitle class_titles[] = {
    {RunClass::gemm, "GEMMs"},
    {RunClass::attention, "attention"},
    {RunClass::memory_bound, "memory-bound kernels"},
    {RunClass::optimizer, "optimizer"},
    {RunClass::copies, "copies alone"},
    {RunClass::communication, "exposed communication"},
    {RunClass::pipeline, "pipeline: transfers, bubble"},
    {RunClass::host, "idle: the host is late"},
    {RunClass::data_loading, "idle: data loading"},
    {RunClass::other, "idle: launched, but waiting"},
};

/// The first row with a part that a kernel's name, in lower case, holds decides.
struct KernelPart {
  std::string_view part;
  RunClass which;
};
constexpr KernelPart kernel_parts[] = {
    {"nccl", RunClass::communication},
    {"rccl", RunClass::communication},
    {"nvshmem", RunClass::communication},
    {"deep_ep", RunClass::communication},
    // Inductor's kernels name what they fuse: a softmax of a loss is no attention.
    {"triton_poi_", RunClass::memory_bound},
    {"triton_red_", RunClass::memory_bound},
    {"triton_per_", RunClass::memory_bound},
    {"triton_for_", RunClass::memory_bound},
    {"triton_tem_fused_flex", RunClass::attention},
    {"triton_tem_", RunClass::gemm},
    // Kernels of a trace that `orrery simulate --trace-format kineto` wrote: CLASS_kernel(NAME).
    {"memory_bound_kernel(", RunClass::memory_bound},
    {"gemm_kernel(", RunClass::gemm},
    {"attention_kernel(", RunClass::attention},
    {"optimizer_kernel(", RunClass::optimizer},
    {"multi_tensor_apply", RunClass::optimizer},
    {"multitensorapply", RunClass::optimizer},
    {"fusedadam", RunClass::optimizer},
    {"adam_kernel", RunClass::optimizer},
    {"adamfunctor", RunClass::optimizer},
    {"lamb_", RunClass::optimizer},
    {"embedding", RunClass::memory_bound},
    {"log_softmax", RunClass::memory_bound},
    {"logsoftmax", RunClass::memory_bound},
    {"cross_entropy", RunClass::memory_bound},
    {"flash", RunClass::attention},
    {"fmha", RunClass::attention},
    {"attention", RunClass::attention},
    {"attn_", RunClass::attention},
    {"sdpa", RunClass::attention},
    {"scaled_masked_softmax", RunClass::attention},
    {"scaled_upper_triang", RunClass::attention},
    {"softmax_warp_forward", RunClass::attention},
    {"softmax_warp_backward", RunClass::attention},
    {"softmax", RunClass::attention},
    {"gemm", RunClass::gemm},
    {"nvjet", RunClass::gemm},
    {"cublas", RunClass::gemm},
    {"cutlass", RunClass::gemm},
    {"xmma", RunClass::gemm},
    {"wgmma", RunClass::gemm},
    {"cijk_", RunClass::gemm},
    {"splitkreduce", RunClass::gemm},
    {"gemv", RunClass::gemm},
    {"matmul", RunClass::gemm},
    {"_mm_", RunClass::gemm},
    {"scudnn", RunClass::gemm},
    {"fprop", RunClass::gemm},
    {"dgrad", RunClass::gemm},
    {"wgrad", RunClass::gemm},
    {"convolve", RunClass::gemm},
    {"implicit_convolve", RunClass::gemm},
    {"winograd", RunClass::gemm},
    {"fft2d_", RunClass::gemm},
    // Operators of a trace without a GPU.
    {"aten::mm", RunClass::gemm},
    {"aten::addmm", RunClass::gemm},
    {"aten::bmm", RunClass::gemm},
    {"aten::baddbmm", RunClass::gemm},
    {"aten::mkldnn_convolution", RunClass::gemm},
    {"mkldnn_linear", RunClass::gemm},
};

}  // namespace

std::string_view title_of(RunClass which) {
  for (const ClassTitle& each : class_titles) {
    if (each.which == which) return each.title;
  }
  throw ContractError{"a class of a run has no title"};
}

RunClass class_of_kernel(std::string_view name) {
  std::string lower{name};
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  for (const KernelPart& each : kernel_parts) {
    if (lower.find(each.part) != std::string::npos) return each.which;
  }
  return RunClass::memory_bound;
}

Time ClassTimes::sum() const {
  Time all{};
  for (const Time each : times_) all += each;
  return all;
}

Time ClassTimes::computing() const {
  Time all{};
  for (const auto& each : run_class_words) {
    if (computes(each.value)) all += (*this)[each.value];
  }
  return all;
}

ClassTimes classes_of(const models::Breakdown& breakdown) {
  using models::TimeClass;
  constexpr std::pair<TimeClass, RunClass> classes[] = {
      {TimeClass::gemm, RunClass::gemm},
      {TimeClass::attention, RunClass::attention},
      {TimeClass::memory_bound, RunClass::memory_bound},
      {TimeClass::tp, RunClass::communication},
      {TimeClass::cp, RunClass::communication},
      {TimeClass::ep, RunClass::communication},
      {TimeClass::dp, RunClass::communication},
      {TimeClass::other_comm, RunClass::communication},
      {TimeClass::pp, RunClass::pipeline},
      {TimeClass::bubble, RunClass::pipeline},
      {TimeClass::optimizer, RunClass::optimizer},
      {TimeClass::host, RunClass::host},
      {TimeClass::other, RunClass::other}};
  static_assert(std::size(classes) == models::time_class_count);
  ClassTimes times;
  for (const auto& [from, to] : classes) times[to] += breakdown[static_cast<std::size_t>(from)];
  return times;
}

}  // namespace orrery::scenarios

// What cuDNN itself says of our graphs. It checks and lowers them for a GPU that is described to
// it; its kernels need a driver, which is why nothing is computed here.

#include <catch2/catch.hpp>
#include <cstdlib>

#include "executor/device/cuda/attention/cudnn_attention.hpp"

namespace orrery::executor::cuda {
namespace {

using models::AttentionShape;
using models::DType;
using models::Operation;
using models::OpKind;

/// An H100 SXM in cuDNN's words.
/// Source  field names: libcudnn 9.19; figures: CUDA C Programming Guide 13.0, table 28 (compute
///         capability 9.0), NVIDIA H100 datasheet
constexpr const char* h100 = R"({
  "deviceName": "NVIDIA H100 80GB HBM3", "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
  "isTccDriver": 0, "supportCoopLaunch": 1, "pciDeviceId": 0, "multiProcessorCount": 132,
  "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "totalGlobalMem": 85000000000,
  "l2CacheSize": 52428800, "warpSize": 32, "maxCtasPerSM": 32, "maxThreadsPerSM": 2048,
  "maxThreadsPerBlock": 1024, "maxRegistersPerSM": 65536, "regsPerBlock": 65536,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxBlockSize": [1024, 1024, 64],
  "maxGridSize": [2147483647, 65535, 65535]})";

Operation operation(OpKind kind, const AttentionShape& shape, DType format) {
  Operation op;
  op.kind = kind;
  op.dtype = format;
  op.attention = shape;
  return op;
}

/// Is libcudnn not on this machine?
bool absent() {
  const OpenedLibrary opened = open_cudnn({.capability = 90});
  const bool is_absent = opened.absence.find("cannot open shared object file") != std::string::npos;
  if (is_absent) WARN("skipped: " << opened.absence);
  return is_absent;
}

std::string refusal(OpKind kind, const AttentionShape& shape, DType format = DType::bf16,
                    int capability = 90) {
  return cudnn_graph_refusal(operation(kind, shape, format), h100, {.capability = capability});
}

TEST_CASE("cuDNN takes our operands where they lie, forward and backward") {
  if (absent()) return;
  for (const OpKind kind : {OpKind::attention, OpKind::attention_backward}) {
    CHECK(refusal(kind, {1, 200, 2, 2, 64, true, 0}) == "");
    CHECK(refusal(kind, {2, 40, 8, 1, 64, false, 0}, DType::fp16) == "");
    CHECK(refusal(kind, {4, 2048, 32, 8, 128, true, 0}) == "");
    CHECK(refusal(kind, {1, 300, 1, 1, 40, true, 50}) == "");                // a window
    CHECK(refusal(kind, {1, 140, 1, 1, 96, false, 30}, DType::fp16) == "");  // of one side alone
    CHECK(refusal(kind, {1, 1024, 16, 16, 256, true, 0}) == "");  // wider than our own kernels take
  }
}

TEST_CASE("What cuDNN does not take it says") {
  if (absent()) return;
  CHECK(refusal(OpKind::attention, {1, 64, 4, 4, 36, true, 0}) ==
        "hidden_dim should be multiple of 8");
  CHECK(refusal(OpKind::attention_backward, {1, 1, 1, 1, 64, true, 0}) ==
        "s_q = s_kv = 1 is not supported.");
  CHECK(
      refusal(OpKind::attention_backward, {1, 1024, 16, 16, 256, true, 0}, DType::bf16, 80) ==
      "Num hidden_dim should be less than or equal to 128 and hidden_dim should be multiple of 8");
}

TEST_CASE("Without libcudnn there is no library, and the loader says why") {
  const OpenedLibrary opened = open_cudnn({.library = "libcudnn-of-nobody.so", .capability = 90});
  CHECK(opened.library == nullptr);
  // Where CUDA's runtime is missing too, that is reported first.
  CHECK(opened.absence.find("cannot open shared object file") != std::string::npos);
}

TEST_CASE("Without CUDA's runtime there is no library, and what to do is said") {
  const char* variable = "CUDNN_FRONTEND_CUDART_LIB_NAME";
  const char* before = std::getenv(variable);
  const std::string kept = before == nullptr ? "" : before;
  setenv(variable, "libcudart-of-nobody.so", 1);
  const OpenedLibrary opened = open_cudnn({.capability = 90});
  kept.empty() ? unsetenv(variable) : setenv(variable, kept.c_str(), 1);
  CHECK(opened.library == nullptr);
  CHECK(
      opened.absence ==
      "libcudart-of-nobody.so: cannot open shared object file: No such file or directory (cuDNN's "
      "front end needs CUDA's runtime as a shared library: put its folder on LD_LIBRARY_PATH)");
}

TEST_CASE("Without a GPU cuDNN does not start, which is a sentence and not an end") {
  const OpenedLibrary opened = open_cudnn({.capability = 90});
  CHECK((opened.library != nullptr || !opened.absence.empty()));
  if (opened.library != nullptr) CHECK(opened.library->name().substr(0, 6) == "cuDNN ");
}

}  // namespace
}  // namespace orrery::executor::cuda

// cuDNN's fused attention on a GPU, held to the formula that our own kernels are held to. Without
// libcudnn there is nothing to test, and that is said.

#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "executor/device/cuda/attention/attentions.hpp"
#include "executor/device/cuda/attention/cudnn_attention.hpp"
#include "tests/executor/device/cuda/attention_trial.hpp"

namespace orrery::executor::cuda {
namespace {

using models::AttentionShape;
using models::DType;
using models::Operation;
using models::OpKind;

int capability() {
  int major = 0, minor = 0;
  REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
  REQUIRE(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) == cudaSuccess);
  return 10 * major + minor;
}

/// cuDNN first, as on a device.
class WithCudnn {
 public:
  WithCudnn()
      : attentions_{AttentionChoice::open, [] {
                      return open_cudnn({.capability = capability(), .sums = SumOrder::fixed});
                    }} {}

  /// Is there something to test?
  bool here() {
    const std::string note = attentions_.notes().front();
    const bool is_here = note.find("attention: cuDNN ") == 0;
    if (!is_here) WARN("skipped, " << note);
    return is_here;
  }

  Way way() {
    return {[this](const Operation& op) { return attentions_.refusal(op); },
            [this](const Operation& op) { return attentions_.scratch_bytes(op); },
            [this](const Kernel& kernel, Stream stream, std::byte* scratch) {
              attentions_.launch(kernel, stream, {.scratch = [scratch](Bytes) { return scratch; }});
            }};
  }

  void check(const AttentionShape& shape, DType format) {
    check_against_formula(way(), shape, format);
  }

  Attentions& attentions() { return attentions_; }

 private:
  Attentions attentions_;
};

TEST_CASE("cuDNN's attention and its gradients are the formula's") {
  WithCudnn with;
  if (!with.here()) return;
  SECTION("over several tiles of queries and keys, heads of 64 and 128, in both formats") {
    with.check({1, 200, 2, 2, 64, true, 0}, DType::bf16);
    with.check({2, 384, 2, 2, 128, true, 0}, DType::fp16);
  }
  SECTION("heads that share keys") {
    with.check({2, 40, 8, 1, 64, false, 0}, DType::fp16);
    with.check({1, 135, 4, 2, 128, true, 0}, DType::bf16);
  }
  SECTION("windows, causal or not, and head_dim that is no power of two") {
    with.check({1, 300, 1, 1, 40, true, 50}, DType::bf16);
    with.check({1, 140, 1, 1, 96, false, 30}, DType::fp16);
    with.check({1, 70, 1, 1, 80, true, 70}, DType::bf16);
  }
  INFO(Catch::Detail::stringify(with.attentions().notes()));
  CHECK(with.attentions().use().by_library > 0);
}

TEST_CASE("cuDNN takes heads wider than our own kernels do, or says why not") {
  WithCudnn with;
  if (!with.here()) return;
  Operation op;
  op.dtype = DType::bf16;
  op.attention = {1, 130, 2, 2, 256, true, 0};
  std::string refusal;
  for (const OpKind kind : {OpKind::attention, OpKind::attention_backward}) {
    op.kind = kind;
    if (refusal.empty()) refusal = with.attentions().refusal(op);
  }
  if (refusal.empty()) return with.check(op.attention, op.dtype);
  CHECK(refusal.find("no fused attention with head_dim 256 in bf16; supported: multiples of 8 up "
                     "to 128; cuDNN ") == 0);
}

TEST_CASE("What cuDNN refuses our own kernels compute on") {
  // cuDNN has no gradient for one token alone: the weight is 1, so a value's gradient is its
  // output's, and queries and keys have none.
  WithCudnn with;
  if (!with.here()) return;
  const AttentionShape s{1, 1, 1, 1, 8, true, 0};
  const Numbers qkv{1, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8};
  const Numbers d_out{8, 7, 6, 5, 4, 3, 2, 1};
  const AttentionResults found = AttentionTrial{with.way(), s, DType::bf16, qkv, d_out}.results();
  Numbers d_qkv(16, 0.0);
  d_qkv.insert(d_qkv.end(), d_out.begin(), d_out.end());
  CHECK(found.out == Numbers{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(found.lse.at(0) == Approx(5 / std::sqrt(8.0)).epsilon(1e-6));
  CHECK(found.d_qkv == d_qkv);
  CHECK(with.attentions().use().by_own > 0);
}

TEST_CASE("Equal calls of an attention whose sums cuDNN orders give equal bits") {
  WithCudnn with;
  if (!with.here()) return;
  const AttentionShape s{2, 640, 4, 2, 64, true, 0};
  const Numbers qkv = numbers(s.batch * s.seq * columns_of(s), DType::bf16, 3);
  const Numbers d_out = numbers(s.batch * s.seq * s.heads * s.head_dim, DType::bf16, 4);
  const AttentionTrial once{with.way(), s, DType::bf16, qkv, d_out};
  for (const std::string& note : with.attentions().notes()) {
    if (note.find("may differ") != std::string::npos) {
      WARN("skipped, " << note);
      return;
    }
  }
  CHECK(once == AttentionTrial{with.way(), s, DType::bf16, qkv, d_out});
}

}  // namespace
}  // namespace orrery::executor::cuda

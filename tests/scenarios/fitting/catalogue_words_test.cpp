#include "scenarios/fitting/catalogue_words.hpp"

#include <catch2/catch.hpp>

namespace orrery::scenarios {
namespace {

MeasuredKernel row_of(const std::string& kernel, const std::string& implementation) {
  MeasuredKernel row;
  row.kernel = kernel;
  row.implementation = implementation;
  row.gpu = "h100-sxm-80gb";
  row.dtype = "bf16";
  return row;
}

CurveCard gemm_card() {
  CurveCard card;
  card.rows = 604;
  card.range = {{"m", {1, 32768}}, {"n", {1024, 65536}}, {"k_or_seq", {1024, 16384}}};
  card.parameters = {{"compute_share", 0.78512},
                     {"memory_share", 0.8449},
                     {"overhead_s", 3.761e-6},
                     {"corner", 4.187}};
  card.leave_out = ErrorSummary{604, 4.36, 6.0, 12.34, 0.1};
  return card;
}

TEST_CASE("A GEMM curve is written as the file of its GPU has it") {
  const MeasuredKernel row = row_of("gemm", "trtllm-linear");
  const KernelCurves::Curve curve{"t", KernelForm::gemm, {{&row, nullptr}}};
  const Json words = catalogue_words(curve, gemm_card());
  CHECK(words["gpu"] == "h100-sxm-80gb");
  CHECK(words["at"] == "/gemm/bf16");
  CHECK(words["value"] ==
        Json::parse(R"({"compute_share": 0.785, "memory_share": 0.845, "overhead": "3.76 us",
                        "corner": 4.19,
                        "measured": {"rows": 604, "m": [1, 32768], "n": [1024, 65536],
                                     "k": [1024, 16384], "median_error_pct": 4.4,
                                     "p90_error_pct": 12.3}})"));
}

TEST_CASE("Rows that quantise leave the overhead to those that do not") {
  const MeasuredKernel row = row_of("gemm", "trtllm-linear");
  const KernelCurves::Curve curve{"t", KernelForm::gemm, {{&row, nullptr}}};
  CurveCard card = gemm_card();
  card.includes = "activation quantisation";
  const Json value = catalogue_words(curve, card)["value"];
  CHECK_FALSE(value.contains("overhead"));
  CHECK(value["measured"]["includes"] == "activation quantisation");
}

TEST_CASE("Attention measured forward and backward is split into forward's share") {
  // Forward takes F / E, backward 2.5 F / (0.92 E), both together 3.5 F / 0.366:
  // E = 0.366 (1 + 2.5 / 0.92) / 3.5 = 0.366 x 1.06211 = 0.3887.
  const MeasuredKernel row = row_of("flash_fwd_bwd", "FlashAttention-2");
  const KernelCurves::Curve curve{"t", KernelForm::fused_attention, {{&row, nullptr}}};
  CurveCard card;
  card.parameters = {{"share_128", 0.366}, {"half_length", 183.2}, {"causal_penalty", 2.11}};
  const Json words = catalogue_words(curve, card);
  CHECK(words["at"] == "/attention/flash-2");
  CHECK(words["value"]["share_128"] == 0.389);
  CHECK(words["value"]["half_length"] == 183);
}

TEST_CASE("Kernels that the catalogue does not hold have no words in it") {
  const MeasuredKernel row = row_of("rms_norm_forward", "liger");
  const KernelCurves::Curve curve{"t", KernelForm::stream, {{&row, nullptr}}};
  CHECK(catalogue_words(curve, gemm_card()).empty());
}

}  // namespace
}  // namespace orrery::scenarios

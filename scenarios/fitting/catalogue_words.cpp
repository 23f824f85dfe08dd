#include "scenarios/fitting/catalogue_words.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

namespace orrery::scenarios {

namespace {

double rounded(double value, double steps) {
  return std::round(value * steps) / steps;
}

double thousandth(double value) {
  return rounded(value, 1000);
}

/// Columns of measured rows, and how a GPU's file names them, in its order.
using Sides = std::vector<std::pair<const char*, const char*>>;

/// The number of rows, the range of shapes, and the errors on rows left out of the fit.
Json measured_words(const CurveCard& card, const Sides& sides) {
  Json words{{"rows", card.rows}};
  for (const auto& [column, side] : sides) {
    if (card.range.contains(column)) words[side] = card.range[column];
  }
  if (card.leave_out) {
    words["median_error_pct"] = rounded(card.leave_out->median, 10);
    words["p90_error_pct"] = rounded(card.leave_out->p90, 10);
  }
  if (!card.includes.empty()) words["includes"] = card.includes;
  return words;
}

Json gemm_words(const CurveCard& card) {
  const Json& found = card.parameters;
  Json words{{"compute_share", thousandth(found["compute_share"])},
             {"memory_share", thousandth(found["memory_share"])}};
  // Rows that include quantisation launch more than one kernel: their overhead is not a GEMM's.
  if (card.includes.empty()) {
    words["overhead"] = fmt::format("{:.2f} us", found["overhead_s"].get<double>() * 1e6);
  }
  words["corner"] = rounded(found["corner"], 100);
  words["measured"] = measured_words(card, {{"m", "m"}, {"n", "n"}, {"k_or_seq", "k"}});
  return words;
}

constexpr double backward_work = 2.5;  // times forward's FLOPs: five GEMMs instead of two
constexpr double backward_ratio = 0.92;

Json attention_words(const CurveCard& card, const AttentionPass& pass) {
  const double split = (pass.forward + pass.backward * backward_work / backward_ratio) /
                       (pass.forward + pass.backward * backward_work);
  Json words{{"half_length", std::round(card.parameters["half_length"].get<double>())},
             {"causal_penalty", rounded(card.parameters["causal_penalty"], 10)},
             {"backward_ratio", backward_ratio},
             {"measured", measured_words(card, {{"k_or_seq", "seq"}})}};
  if (card.parameters.contains("grouped_backward")) {
    words["grouped_backward_ratio"] =
        rounded(backward_ratio * card.parameters["grouped_backward"].get<double>(), 100);
  }
  for (const char* share : {"share_64", "share_128"}) {
    if (card.parameters.contains(share)) {
      words[share] = thousandth(split * card.parameters[share].get<double>());
    }
  }
  return words;
}

}  // namespace

Json catalogue_words(const KernelCurves::Curve& curve, const CurveCard& card) {
  const MeasuredKernel& row = *curve.samples.front().row;
  if (card.parameters.empty()) return Json::object();
  if (curve.form == KernelForm::gemm && row.implementation == "trtllm-linear") {
    return {{"gpu", row.gpu},
            {"at", "/gemm/" + catalogue_dtype(row.dtype)},
            {"value", gemm_words(card)}};
  }
  const auto kernel = catalogue_kernel(row.implementation);
  if (curve.form == KernelForm::fused_attention && kernel) {
    return {{"gpu", row.gpu},
            {"at", "/attention/" + std::string{*kernel}},
            {"value", attention_words(card, attention_pass(row))}};
  }
  return Json::object();
}

}  // namespace orrery::scenarios

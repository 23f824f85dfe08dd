#include "scenarios/fitting/kernels/kernel_validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/fitting/catalogue_words.hpp"
#include "scenarios/fitting/kernels/kernel_curves.hpp"
#include "scenarios/fitting/words.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::int64_t training_rows = 1024;      // tokens of a micro-batch's GEMM
constexpr double training_seconds = 20e-6;        // shorter ones are dominated by the launch
constexpr std::int64_t training_sequence = 2048;  // tokens
constexpr std::int64_t training_tokens = 4096;    // per batch

std::string gemm_class(const MeasuredKernel& row) {
  if (row.implementation != "trtllm-linear") return "gemm, other libraries";
  const bool training = row.m >= training_rows && row.seconds.value_or(0) >= training_seconds;
  return training ? "gemm, training" : "gemm, few rows or short";
}

std::string stream_class(const MeasuredKernel& row) {
  if (includes(row, Included::whole_mlp)) return "whole MLP";
  if (!mentions(row.kernel, "forward") && !mentions(row.kernel, "fwd")) {
    return "memory-bound, a framework's backward or both passes";
  }
  const bool fused = mentions(row.implementation, "liger") || mentions(row.implementation, "QuACK");
  return fused ? "memory-bound forward, fused" : "memory-bound forward, not fused by hand";
}

Json residual_json(const hardware::ShapeResidual& residual) {
  Json json;
  for (const auto& sample : residual.samples()) {
    json["m"].push_back(sample.shape.m);
    json["n"].push_back(sample.shape.n);
    json["k"].push_back(sample.shape.k);
    json["measured_over_formula"].push_back(std::exp(sample.log_ratio));
  }
  return json;
}

CurveCard card_of(const KernelCurves::Curve& curve, const KernelFit* fit) {
  CurveCard card;
  card.name = curve.table;
  card.kind = std::string{name(curve.form)};
  card.rows = curve.samples.size();
  const auto stated = [&](const char* column, auto value) {
    if (value != 0) card.widen(column, value);
  };
  for (const KernelSample& sample : curve.samples) {
    const MeasuredKernel& row = *sample.row;
    card.sources.insert(published_place(row.source));
    if (!row.includes.empty()) card.includes = row.includes;
    stated("m", row.m);
    stated("n", row.n);
    stated("k_or_seq", row.k);
    stated("heads", row.heads);
    stated("head_dim", row.head_dim);
    stated("seconds", *row.seconds);
  }
  if (!fit) return card;
  for (const auto& [name, value] : fit->parameters) card.parameters[name] = value;
  if (!fit->residual.samples().empty()) card.samples = residual_json(fit->residual);
  return card;
}

void add_cards(KernelCurves& curves, CurveReport& report) {
  for (const auto& [table, curve] : curves.curves()) {
    CurveCard card = card_of(curve, curves.fit(table));
    report.add_errors(card);
    card.prices = !catalogue_words(curve, card).empty();
    // Only formulas without residuals go into the catalogue.
    if (card.samples.empty()) card.catalogue = catalogue_words(curve, card);
    report.cards.push_back(std::move(card));
  }
}

}  // namespace

std::string score_class(const MeasuredKernel& row) {
  const auto form = form_of(row);
  if (!form) return "no size stated";
  switch (*form) {
    case KernelForm::gemm:
      return gemm_class(row);
    case KernelForm::prefill: {
      const std::int64_t tokens = std::max<std::int64_t>(row.batch, 1) * row.k;
      const bool training = row.k >= training_sequence && tokens >= training_tokens;
      return training ? "attention prefill, s >= 2048" : "attention prefill, short";
    }
    case KernelForm::fused_attention:
      return fmt::format("{}, fused", attention_pass(row).title);
    case KernelForm::unfused_attention:
      return fmt::format("{}, unfused", attention_pass(row).title);
    case KernelForm::stream:
      return stream_class(row);
  }
  return {};
}

CurveReport validate_kernels(const std::vector<MeasuredKernel>& rows,
                             const KernelQuestion& question) {
  KernelCurves curves{question.reference, question.residual};
  CurveReport report =
      validated("kernels", rows, question, curves, [](const MeasuredKernel& row, const auto&) {
        return CurveRow{.score_class = score_class(row), .curve = table_of(row)};
      });
  if (question.describe_curves) add_cards(curves, report);
  return report;
}

}  // namespace orrery::scenarios

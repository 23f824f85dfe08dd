#include "scenarios/fitting/kernel_validation.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "scenarios/fitting/catalogue_words.hpp"
#include "scenarios/fitting/kernel_curves.hpp"
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
  if (mentions(row.includes, "whole MLP")) return "whole MLP";
  if (!mentions(row.kernel, "forward") && !mentions(row.kernel, "fwd")) {
    return "memory-bound, a framework's backward or both passes";
  }
  const bool fused = mentions(row.implementation, "liger") || mentions(row.implementation, "QuACK");
  return fused ? "memory-bound forward, fused" : "memory-bound forward, not fused by hand";
}

template <class Value>
void widen(Json& range, const char* column, Value value) {
  if (value == 0) return;
  if (!range.contains(column)) range[column] = {value, value};
  if (value < range[column][0]) range[column][0] = value;
  if (value > range[column][1]) range[column][1] = value;
}

Json residual_json(const hardware::ShapeResidual& residual) {
  Json json{{"m", Json::array()},
            {"n", Json::array()},
            {"k", Json::array()},
            {"measured_over_formula", Json::array()}};
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
  std::set<std::string> sources;
  for (const KernelSample& sample : curve.samples) {
    const MeasuredKernel& row = *sample.row;
    sources.insert(published_place(row.source));
    if (!row.includes.empty()) card.includes = row.includes;
    widen(card.range, "m", row.m);
    widen(card.range, "n", row.n);
    widen(card.range, "k_or_seq", row.k);
    widen(card.range, "heads", row.heads);
    widen(card.range, "head_dim", row.head_dim);
    widen(card.range, "seconds", *row.seconds);
  }
  for (const std::string& source : sources) {
    card.source += (card.source.empty() ? "" : "; ") + source;
  }
  if (!fit) return card;
  for (const auto& [name, value] : fit->parameters()) card.parameters[name] = value;
  if (fit->residual()) card.samples = residual_json(*fit->residual());
  return card;
}

void add_cards(KernelCurves& curves, CurveReport& report) {
  for (const auto& [table, curve] : curves.curves()) {
    CurveCard card = card_of(curve, curves.fit(table));
    report.add_errors(card);
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
      return row.kernel == "flash_fwd" ? "attention forward, fused"
                                       : "attention forward and backward, fused";
    case KernelForm::unfused_attention:
      return "attention forward and backward, unfused";
    case KernelForm::stream:
      return stream_class(row);
  }
  return {};
}

CurveReport validate_kernels(const std::vector<MeasuredKernel>& rows,
                             const KernelQuestion& question) {
  KernelCurves curves{question.reference, question.residual};
  CurveReport report;
  report.kind = "kernels";
  report.scoring = question.scoring;
  for (const MeasuredKernel& row : rows) {
    CurveRow result;
    result.run = row.id;
    result.score_class = score_class(row);
    result.curve = table_of(row);
    result.not_scored_because = row.set_aside;
    result.in_sample = curves.seen(row).seconds;
    const KernelAnswer answer = question.scoring == Scoring::in_sample ? curves.seen(row)
                                : question.leave_out == LeaveOut::gpu  ? curves.other_gpus(row)
                                                                       : curves.unseen(row);
    result.answer(row.seconds, answer.seconds, answer.note);
    report.rows.push_back(std::move(result));
  }
  if (question.describe_curves) add_cards(curves, report);
  return report;
}

}  // namespace orrery::scenarios

#pragma once
// Validates measured kernels: each row is predicted by curves fitted without its own.

#include <vector>

#include "scenarios/fitting/kernels/curve_report.hpp"
#include "scenarios/fitting/kernels/kernel_fit.hpp"
#include "scenarios/fitting/kernels/measured_kernel.hpp"

namespace orrery::scenarios {

/// What is left out of a fit before it predicts a row.
enum class LeaveOut : std::uint8_t { curve, gpu };

/// How rows are validated.
template <class Row>
struct CurveQuestion {
  std::vector<Row> reference;  // the rows that curves are fitted to
  LeaveOut leave_out = LeaveOut::curve;
  Scoring scoring = Scoring::unseen;
  Residual residual = Residual::nearest;  // of kernels
  bool describe_curves = false;           // fill `cards`
};
using KernelQuestion = CurveQuestion<MeasuredKernel>;

/// The report on `rows` by the curves of a question, without cards.
/// classed  the score class and the curve of a row, from it and its answer
template <class Row, class Curves, class Classed>
CurveReport validated(const char* kind, const std::vector<Row>& rows,
                      const CurveQuestion<Row>& question, Curves& curves, Classed classed) {
  CurveReport report{.kind = kind, .scoring = question.scoring, .rows = {}, .cards = {}};
  for (const Row& row : rows) {
    const auto seen = curves.seen(row);
    const auto answer = question.scoring == Scoring::in_sample ? seen
                        : question.leave_out == LeaveOut::gpu  ? curves.other_gpus(row)
                                                               : curves.unseen(row);
    CurveRow& result = report.rows.emplace_back(classed(row, answer));
    result.run = row.id;
    result.not_scored_because = row.set_aside;
    result.in_sample = seen.seconds;
    result.answer(row.seconds, answer.seconds, answer.note);
  }
  return report;
}

/// One result per row, in order. Rows that are set aside are predicted but not scored.
CurveReport validate_kernels(const std::vector<MeasuredKernel>& rows,
                             const KernelQuestion& question);

/// The class in which a row is scored: "gemm, training", "attention prefill, s >= 2048", ...
///   training: GEMMs with m >= 1024 that take 20 us or more
std::string score_class(const MeasuredKernel& row);

}  // namespace orrery::scenarios

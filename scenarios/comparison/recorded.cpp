#include "scenarios/comparison/recorded.hpp"

#include "scenarios/report/result.hpp"

namespace orrery::scenarios {

Comparison compare_recorded(const models::Question& question, const models::Prediction& prediction,
                            const Trace& recorded) {
  const auto detail =
      question.plan.kernels.graphs ? TraceDetail::instructions : TraceDetail::operations;
  return compare(trace_of(prediction, detail), recorded, "the recorded step");
}

}  // namespace orrery::scenarios

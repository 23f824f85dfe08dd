#pragma once
// A step lowered once for many predictions: what a Program says before anything is priced, kept for
// questions that differ only in the cluster's rates, prices and sizes of memory. Left out is all
// that `predict` says about one step besides its figures: breakdown, waterfall, assumptions.

#include <memory>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "models/program/counts.hpp"
#include "models/program/memory.hpp"

namespace orrery::models {

struct LoweredStep {
  std::shared_ptr<const Program> program;
  std::vector<TargetCounts> counts;  // by rank class
  std::vector<MemoryPeak> peaks;     // by rank class

  /// An estimate, from below, of the memory that it occupies.
  std::size_t bytes() const;
};

/// Whether the Program of a question follows from it without prices, and its step is evaluated
/// without shared links.
bool lowers_once(const Question& question);

/// Lowers and checks the Program. Errors  as predict
LoweredStep lower_step(const Question& question);

/// The figures of `predict`, to the last bit: all of StepFigures, `uncertainty`, `memory`,
/// `fullest`, `slowest`, `times`.
/// question  for which `lowers_once` holds; the plan, model and software of `lowered`, on a cluster
///           of the same GPUs, nodes and formats
/// Errors    as predict
Prediction predict(const Question& question, const LoweredStep& lowered);

}  // namespace orrery::models

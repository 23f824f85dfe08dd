#pragma once
// The page of `orrery validate FILE --page FOLDER`: where predictions are accurate and where they
// are not, as a Markdown document and a picture that the command regenerates.

#include <string>
#include <vector>

#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {

/// The columns by which errors are split: stack, GPU, size of the cluster, strategy.
std::vector<Grouping> facets_of(const std::vector<MeasuredRun>& runs);

/// Explains the error of one run: the largest part of its predicted step, the median error of other
/// runs of the same model and stack, the error of the closest run (at most two settings changed),
/// and how many fallback curves it used.
std::string explanation_of(const std::vector<MeasuredRun>& runs,
                           const std::vector<RunResult>& results, std::size_t row);

/// The document (Markdown); `file` is what was validated, `picture` the picture's file name,
/// `left_out` a section on what is left out whole.
std::string page_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                    const Scores& scores, const std::string& file, const std::string& picture,
                    const std::string& left_out = {});

/// Predicted against measured, and the errors of each facet (SVG).
std::string picture_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results);

}  // namespace orrery::scenarios

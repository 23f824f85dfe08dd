#pragma once
// The page of `orrery validate FILE --page FOLDER`: how right predictions are and where they are
// not, as a document and a picture that anyone can make again.

#include <string>
#include <vector>

#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {

/// What errors are distinguished by: stack, GPU, size of the cluster, strategy.
std::vector<Grouping> facets_of(const std::vector<MeasuredRun>& runs);

/// What is known about the error of one run, from the others: whether runs of the same model on the
/// same stack are off alike or its twin with one number changed is not, what takes most of the
/// predicted step, and how many curves were borrowed.
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

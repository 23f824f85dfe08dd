#pragma once
// A finished run as JSON: what `orrery execute --json` prints of it.

#include "executor/session/session.hpp"
#include "sim/input/document.hpp"

namespace orrery::executor {

/// `ranks, fabric, device, resumed_from_step, steps[], skipped_updates, median_step_time_s,
/// predicted_step_time_s, peak_memory_bytes, predicted_peak_memory_bytes, resident_memory_bytes,
/// input{prefetch, background, read_s, decode_s, copy_s, wait_s, predicted}`, with CUDA graphs
/// `cuda_graphs`, of some fabrics `fabric_calls`, and `recorded_step` where one more step was
/// recorded. What is not known without a step is null.
Json to_json(const FinishedRun& run);

/// Median time of the steps after the first, which also warms up; of the first where there is no
/// other; 0 without any.
double median_seconds(const std::vector<MeasuredStep>& steps);

/// Medians of what the batches of the same steps took, and of the waits for them.
InputTimes median_input(const std::vector<MeasuredStep>& steps);

/// Predicted peak of the Program's buffers on the fullest stage, which is what a rank measures.
Bytes predicted_peak(const models::Prediction& prediction);

}  // namespace orrery::executor

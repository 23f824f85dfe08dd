#pragma once
// A predicted step as a file for trace viewers and analysers: with arrows, counters and
// communicators as a Chrome trace, or in the form of PyTorch's profiler.

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/report/result.hpp"
#include "sim/trace/marks.hpp"
#include "sim/words.hpp"

namespace orrery::scenarios {

/// A trace and what viewers show next to it.
///   arrows    messages from send to receive; from the phase that a collective waits for to the
///             collective, and from it to the phase that awaits it
///   counters  memory of the rank (buffers counted in the host's order, all else of its peak as a
///             constant); share of the NIC's rate in use; power of the GPU (models/prediction/
///             power.hpp). By instruction, an instruction shows the mean over its time
struct MarkedTrace {
  Trace trace;
  TraceMarks marks;
};
MarkedTrace marked_trace_of(const models::Question& question, const models::Prediction& prediction,
                            TraceDetail detail);

enum class TraceFormat : std::uint8_t { chrome, kineto };
inline constexpr Words<TraceFormat, 2> trace_format_words{
    {{TraceFormat::chrome, "chrome"}, {TraceFormat::kineto, "kineto"}}};

/// A file that was written.
struct WrittenTrace {
  std::string path;
  std::size_t events = 0;
};

/// Packed if the name ends in .gz. Errors: OutputError
WrittenTrace write_trace_file(const MarkedTrace& marked, const std::string& path);

/// The form of PyTorch's profiler (Kineto), which Holistic Trace Analysis reads: of each rank
/// traced a file of its own, `rank-0.json.gz`, ... in the folder `path`; if only one rank is
/// traced, `path` may also be a file's name. Kernels and collectives are `kernel` events on
/// streams, copies `gpu_memcpy`, launches `cuda_runtime` with the same `correlation`; times are
/// from the step's beginning. CPU operators and grids are not predicted, and left out. Errors  a
/// file's name for several ranks: InputError; OutputError
std::vector<WrittenTrace> write_kineto(const MarkedTrace& marked, const models::Question& question,
                                       const models::Prediction& prediction,
                                       const std::string& path);

}  // namespace orrery::scenarios

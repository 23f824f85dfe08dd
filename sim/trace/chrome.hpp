#pragma once
// A trace as Chrome JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open: one process
// per rank or class and one thread per queue, in the order added to the trace; complete events
// ("ph": "X") sorted by queue, then start, then the order added. Times are in microseconds with six
// decimals, which is a picosecond exactly. `args.id` is the operation's path and `args.class` its
// kind; flops and bytes are there where they are not 0.
// Source  Google, "Trace Event Format" (docs.google.com, document of the Catapult project)

#include <functional>
#include <string>
#include <string_view>

#include "sim/input/document.hpp"
#include "sim/trace/marks.hpp"
#include "sim/trace/trace.hpp"

namespace orrery {

/// The same trace gives the same bytes. Bytes that are not UTF-8 are written as U+FFFD, so what
/// comes out is JSON whatever the names are; `put` takes it piece by piece. The trace's notes are
/// written to `otherData`.
/// Returns how many events were written, without those that name tracks.
std::size_t write_chrome(const Trace& trace, const std::function<void(std::string_view)>& put);
/// The same with arrows as flow events ("ph": "s" and "f"), counters ("C"), and a record's
/// `communicator` and `group_size` in its args.
std::size_t write_chrome(const Trace& trace, const TraceMarks& marks,
                         const std::function<void(std::string_view)>& put);

/// Reads complete events that carry `args.id`, with the names of their processes and threads; other
/// events, which a viewer may have added, are passed over. Times are rounded to a picosecond.
/// Errors  not a Chrome trace, no event with an id, a time that is no number: InputError
Trace read_chrome(const std::string& path);
Trace read_chrome(const Document& document);

}  // namespace orrery

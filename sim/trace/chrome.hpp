#pragma once
// A trace as Chrome JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open: one process
// per rank or class and one thread per queue, in the order added to the trace; complete events
// ("ph": "X") sorted by queue, then start, then the order added. Times are in microseconds with six
// decimals, which is a picosecond exactly. `args.id` is the operation's path and `args.class` its
// kind; flops and bytes are there where they are not 0.
// Source  Google, "Trace Event Format" (docs.google.com, document of the Catapult project)

#include <ostream>

#include "sim/trace/trace.hpp"

namespace orrery {

/// The same trace gives the same bytes. Bytes that are not UTF-8 are written as U+FFFD, so what
/// comes out is JSON whatever the names are. The stream's state tells whether all was written.
void write_chrome(const Trace& trace, std::ostream& out);

}  // namespace orrery

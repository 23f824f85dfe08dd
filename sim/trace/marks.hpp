#pragma once
// What a viewer shows next to the records of a trace: arrows between them, counters over time, and
// the communicator of each. A trace is complete without them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace.hpp"

namespace orrery {

/// From work that ends to work that begins, on any two queues.
struct TraceArrow {
  std::string name{};  // "message", "dp"
  Track from_track{}, to_track{};
  Time from{}, to{};  // inside the work at both ends
};

/// The value of a counter of one process from a time on.
struct TraceCount {
  std::size_t process = 0;  // into Trace::processes
  std::string_view counter{};
  std::string_view unit{};
  Time at{};
  double value = 0;
};

/// The communicator of one record; without one, `ranks` is 0.
struct TraceGroup {
  std::string_view name{};
  std::string_view operation{};  // "all_reduce", "send"
  std::string_view format{};     // of its elements: "bf16"
  std::int64_t ranks = 0;
};

struct TraceMarks {
  std::vector<TraceArrow> arrows;
  std::vector<TraceCount> counts;  // of each counter and process in order of time
  std::vector<TraceGroup> groups;  // by record; records after its end have none
};

}  // namespace orrery

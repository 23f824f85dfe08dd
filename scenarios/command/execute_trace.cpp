#include "scenarios/command/execute_trace.hpp"

#include <algorithm>
#include <limits>

#include "executor/launch/frame.hpp"

namespace orrery::scenarios {

using executor::FrameReader;
using executor::FrameWriter;

namespace {

std::uint64_t as_bits(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

std::int64_t signed_number(FrameReader& reader) {
  return static_cast<std::int64_t>(reader.number(8));
}

constexpr std::int64_t picoseconds_per_nanosecond = 1000;

/// Adds one rank's records, moved to the common time.
void unpack(const std::string& bytes, std::int64_t first_nanosecond, Trace& merged) {
  FrameReader reader{bytes};
  const Time shift{(signed_number(reader) - first_nanosecond) * picoseconds_per_nanosecond};
  std::vector<Track> tracks(reader.number(4));
  for (Track& each : tracks) {
    const std::string process = reader.text();
    each = merged.add_track(process, reader.text());
  }
  const std::uint64_t records = reader.number(8);
  for (std::uint64_t i = 0; i < records; ++i) {
    TraceRecord record;
    record.track = tracks.at(reader.number(4));
    record.start = Time{signed_number(reader)} + shift;
    record.duration = Time{signed_number(reader)};
    record.name = reader.text();
    record.id = reader.text();
    record.kind = reader.text();
    record.flops = Flops{signed_number(reader)};
    record.bytes = Bytes{signed_number(reader)};
    merged.add(std::move(record));
  }
}

}  // namespace

std::string packed(const Trace& trace, executor::Deadline begun) {
  FrameWriter writer;
  const auto since = std::chrono::nanoseconds{begun.time_since_epoch()}.count();
  writer.number(as_bits(since), 8).number(trace.tracks().size(), 4);
  for (const Trace::Queue& each : trace.tracks()) {
    writer.text(trace.processes().at(each.process)).text(each.name);
  }
  writer.number(trace.records().size(), 8);
  for (const TraceRecord& each : trace.records()) {
    writer.number(index(each.track), 4)
        .number(as_bits(each.start.count()), 8)
        .number(as_bits(each.duration.count()), 8)
        .text(each.name)
        .text(each.id)
        .text(each.kind)
        .number(as_bits(static_cast<std::int64_t>(each.flops.count())), 8)
        .number(as_bits(each.bytes.count()), 8);
  }
  return writer.framed().substr(4);
}

Trace merged(const std::vector<std::string>& traces) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const std::string& each : traces) {
    FrameReader reader{each};
    first = std::min(first, signed_number(reader));
  }
  Trace all;
  for (const std::string& each : traces) unpack(each, first, all);
  return all;
}

}  // namespace orrery::scenarios

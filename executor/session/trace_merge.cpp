#include "executor/session/trace_merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>

#include "executor/errors.hpp"
#include "executor/launch/frame.hpp"

namespace orrery::executor {

namespace {

std::uint64_t as_bits(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

std::int64_t signed_number(FrameReader& reader) {
  return static_cast<std::int64_t>(reader.number(8));
}

constexpr std::int64_t picoseconds_per_nanosecond = 1000;
/// 13 days, so no sum of times overflows.
constexpr std::int64_t latest_ns = std::int64_t{1} << 50;

/// When a rank began, on rank 0's clock.
std::int64_t begin_of(FrameReader& reader) {
  return signed_number(reader);
}

[[noreturn]] void unreadable(std::size_t rank) {
  throw RunFailure{Exit::peer_failed,
                   fmt::format("rank {} sent a trace that cannot be read", rank)};
}

/// Reads a time; nullopt where it exceeds `latest_ns`, so that the bytes are no trace.
std::optional<Time> time_of(FrameReader& reader) {
  const std::int64_t picoseconds = signed_number(reader);
  if (std::abs(picoseconds / picoseconds_per_nanosecond) > latest_ns) return std::nullopt;
  return Time{picoseconds};
}

bool unpack_record(FrameReader& reader, const std::vector<Track>& tracks, Time shift,
                   Trace& merged) {
  const std::uint64_t track = reader.number(4);
  const auto start = time_of(reader), duration = time_of(reader);
  TraceRecord record;
  record.name = reader.text();
  record.id = reader.text();
  record.kind = reader.text();
  record.flops = Flops{signed_number(reader)};
  record.bytes = Bytes{signed_number(reader)};
  if (!reader.whole() || track >= tracks.size() || !start || !duration) return false;
  record.track = tracks[track];
  record.start = *start + shift;
  record.duration = *duration;
  merged.add(std::move(record));
  return true;
}

/// Adds one rank's records, shifted to the common time axis.
void unpack(const std::string& bytes, std::size_t rank, std::int64_t first_nanosecond,
            Trace& merged) {
  FrameReader reader{bytes};
  const std::int64_t late = begin_of(reader) - first_nanosecond;
  if (late > latest_ns) unreadable(rank);
  std::vector<Track> tracks;
  for (std::uint64_t left = reader.number(4); left > 0; --left) {
    const std::string process = reader.text(), name = reader.text();
    if (!reader.whole()) unreadable(rank);
    tracks.push_back(merged.add_track(process, name));
  }
  for (std::uint64_t left = reader.number(8); left > 0; --left) {
    if (!unpack_record(reader, tracks, Time{late * picoseconds_per_nanosecond}, merged)) {
      unreadable(rank);
    }
  }
  if (!reader.at_end()) unreadable(rank);
}

}  // namespace

std::string packed(const Trace& trace, Deadline begun) {
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
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    FrameReader reader{traces[rank]};
    const std::int64_t begin = begin_of(reader);
    if (begin < 0) unreadable(rank);
    first = std::min(first, begin);
  }
  Trace all;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) unpack(traces[rank], rank, first, all);
  return all;
}

}  // namespace orrery::executor

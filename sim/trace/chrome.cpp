#include "sim/trace/chrome.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/input/text.hpp"

namespace orrery {
namespace {

constexpr std::size_t flush_at = 1 << 16;
constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      const std::size_t length = character_length(text.substr(i));
      out += length == 0 ? replacement : text.substr(i, length);
      i += std::max<std::size_t>(length, 1);
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(byte));
    } else {
      out += c;
    }
    ++i;
  }
  out += '"';
}

void append_microseconds(std::string& out, Time time) {
  fmt::format_to(std::back_inserter(out), "{}.{:06}", time.count() / 1'000'000,
                 time.count() % 1'000'000);
}

void append_number(std::string& out, std::int64_t number) {
  fmt::format_to(std::back_inserter(out), "{}", number);
}

void append_metadata(std::string& out, std::string_view what, const Trace::Queue& track,
                     std::string_view argument) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, track.process,
                 track.thread, argument);
}

std::string named(std::string_view name) {
  std::string argument = R"("name":)";
  append_string(argument, name);
  return argument;
}

void append_tracks(std::string& out, const Trace& trace) {
  std::string_view separator;
  for (const Trace::Queue& track : trace.tracks()) {
    const auto append = [&](std::string_view what, std::string_view argument) {
      out += separator;
      separator = ",\n";
      append_metadata(out, what, track, argument);
    };
    if (track.thread == 0) {
      append("process_name", named(trace.processes()[track.process]));
      append("process_sort_index", fmt::format(R"("sort_index":{})", track.process));
    }
    append("thread_name", named(track.name));
    append("thread_sort_index", fmt::format(R"("sort_index":{})", track.thread));
  }
}

void append_record(std::string& out, const Trace& trace, const TraceRecord& record,
                   const TraceGroup& group) {
  const Trace::Queue& track = trace.tracks()[index(record.track)];
  out += R"({"ph":"X","name":)";
  append_string(out, record.name);
  out += R"(,"cat":)";
  append_string(out, record.kind);
  fmt::format_to(std::back_inserter(out), R"(,"pid":{},"tid":{},"ts":)", track.process,
                 track.thread);
  append_microseconds(out, record.start);
  out += R"(,"dur":)";
  append_microseconds(out, record.duration);
  out += R"(,"args":{"id":)";
  append_string(out, record.id);
  out += R"(,"class":)";
  append_string(out, record.kind);
  if (record.flops != Flops{}) {
    out += R"(,"flops":)";
    append_number(out, record.flops.count());
  }
  if (record.bytes != Bytes{}) {
    out += R"(,"bytes":)";
    append_number(out, record.bytes.count());
  }
  if (group.ranks > 0) {
    out += R"(,"communicator":)";
    append_string(out, group.name);
    out += R"(,"group_size":)";
    append_number(out, group.ranks);
  }
  out += "}}";
}

void append_end(std::string& out, const Trace& trace, Track track, Time at) {
  const Trace::Queue& queue = trace.tracks()[index(track)];
  fmt::format_to(std::back_inserter(out), R"("pid":{},"tid":{},"ts":)", queue.process,
                 queue.thread);
  append_microseconds(out, at);
  out += '}';
}

void append_arrow(std::string& out, const Trace& trace, const TraceArrow& arrow, std::size_t id) {
  const auto begin = [&](std::string_view phase) {
    fmt::format_to(std::back_inserter(out), R"({{"ph":"{}","cat":"flow","id":{},"name":)", phase,
                   id);
    append_string(out, arrow.name);
    out += ',';
  };
  begin("s");
  append_end(out, trace, arrow.from_track, arrow.from);
  out += ",\n";
  begin(R"(f","bp":"e)");
  append_end(out, trace, arrow.to_track, arrow.to);
}

void append_count(std::string& out, const TraceCount& count) {
  out += R"({"ph":"C","name":)";
  append_string(out, count.counter);
  fmt::format_to(std::back_inserter(out), R"(,"pid":{},"ts":)", count.process);
  append_microseconds(out, count.at);
  fmt::format_to(std::back_inserter(out), R"(,"args":{{"{}":{:.6g}}}}})", count.unit, count.value);
}

void append_notes(std::string& out, const Trace& trace) {
  if (trace.notes().empty()) return;
  out += ",\n\"otherData\":{";
  std::string_view separator;
  for (const auto& [key, figure] : trace.notes()) {
    out += separator;
    separator = ",";
    append_string(out, key);
    fmt::format_to(std::back_inserter(out), ":{}", figure);
  }
  out += "}";
}

/// The records' numbers by process, thread, start; the order added among equals.
std::vector<std::size_t> sorted(const Trace& trace) {
  std::vector<std::size_t> order(trace.records().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&trace](std::size_t i) {
    const TraceRecord& record = trace.records()[i];
    const Trace::Queue& track = trace.tracks()[index(record.track)];
    return std::tuple{track.process, track.thread, record.start};
  };
  std::ranges::stable_sort(order, [&key](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

}  // namespace

std::size_t write_chrome(const Trace& trace, const std::function<void(std::string_view)>& put) {
  return write_chrome(trace, TraceMarks{}, put);
}

std::size_t write_chrome(const Trace& trace, const TraceMarks& marks,
                         const std::function<void(std::string_view)>& put) {
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  append_tracks(text, trace);
  bool first = trace.tracks().empty();
  const auto next = [&] {
    if (!first) text += ",\n";
    first = false;
  };
  const auto flush = [&] {
    if (text.size() < flush_at) return;
    put(text);
    text.clear();
  };
  for (const std::size_t i : sorted(trace)) {
    next();
    append_record(text, trace, trace.records()[i],
                  i < marks.groups.size() ? marks.groups[i] : TraceGroup{});
    flush();
  }
  for (std::size_t i = 0; i < marks.arrows.size(); ++i) {
    next();
    append_arrow(text, trace, marks.arrows[i], i + 1);
    flush();
  }
  for (const TraceCount& each : marks.counts) {
    next();
    append_count(text, each);
    flush();
  }
  text += "\n]";
  append_notes(text, trace);
  text += "}\n";
  put(text);
  return trace.records().size() + 2 * marks.arrows.size() + marks.counts.size();
}

}  // namespace orrery

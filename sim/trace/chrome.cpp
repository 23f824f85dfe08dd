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

void append_record(std::string& out, const Trace& trace, const TraceRecord& record) {
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
  out += "}}";
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

void write_chrome(const Trace& trace, const std::function<void(std::string_view)>& put) {
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  append_tracks(text, trace);
  bool first = trace.tracks().empty();
  for (const std::size_t i : sorted(trace)) {
    if (!first) text += ",\n";
    first = false;
    append_record(text, trace, trace.records()[i]);
    if (text.size() < flush_at) continue;
    put(text);
    text.clear();
  }
  text += "\n]";
  append_notes(text, trace);
  text += "}\n";
  put(text);
}

}  // namespace orrery

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "sim/input/document.hpp"
#include "sim/input/gunzip.hpp"
#include "sim/input/text.hpp"
#include "sim/trace/chrome.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

/// Microseconds as a trace gives them.
Time microseconds(const Node& number) {
  constexpr double longest = 9e12;  // 104 days: what fits 64 bits of picoseconds
  const double value = number.as<double>();
  if (!(value >= 0 && value <= longest)) {
    number.fail_expected("microseconds from 0 to 9e12");
  }
  return Time{std::llround(value * 1e6)};
}

std::int64_t count_of(const Node& arguments, std::string_view key) {
  const auto member = arguments.find(key);
  return member ? member->integer(0, most) : 0;
}

/// `pid` and `tid` are numbers in our traces, and may be words in others'.
std::string key_of(const Node& event, std::string_view key) {
  const auto member = event.find(key);
  return member ? member->json().dump() : std::string{};
}

class ChromeReader {
 public:
  explicit ChromeReader(const Node& root) : events_{root["traceEvents"].elements()} {}

  Trace read() {
    for (const Node& event : events_) name(event);
    for (const Node& event : events_) add(event);
    return std::move(trace_);
  }

 private:
  static bool is(const Node& event, std::string_view phase) {
    const auto ph = event.find("ph");
    return ph && ph->is_string() && ph->json().get_ref<const std::string&>() == phase;
  }

  void name(const Node& event) {
    if (!is(event, "M")) return;
    const auto arguments = event.find("args");
    const auto name = arguments ? arguments->find("name") : std::nullopt;
    if (!name) return;
    const std::string pid = key_of(event, "pid");
    const auto what = event["name"].as<std::string>();
    if (what == "process_name") processes_[pid] = name->as<std::string>();
    if (what == "thread_name") threads_[{pid, key_of(event, "tid")}] = name->as<std::string>();
  }

  void add(const Node& event) {
    if (!is(event, "X")) return;
    const auto arguments = event.find("args");
    const auto id = arguments ? arguments->find("id") : std::nullopt;
    if (!id) return;
    const std::string pid = key_of(event, "pid"), tid = key_of(event, "tid");
    const auto process = processes_.find(pid);
    const auto thread = threads_.find({pid, tid});
    const Track track = trace_.add_track(process == processes_.end() ? pid : process->second,
                                         thread == threads_.end() ? tid : thread->second);
    trace_.add({.track = track,
                .start = microseconds(event["ts"]),
                .duration = microseconds(event["dur"]),
                .name = event["name"].as<std::string>(),
                .id = id->as<std::string>(),
                .kind = arguments->value_or<std::string>("class", ""),
                .flops = Flops{count_of(*arguments, "flops")},
                .bytes = Bytes{count_of(*arguments, "bytes")}});
  }

  std::vector<Node> events_;
  std::map<std::string, std::string> processes_;
  std::map<std::pair<std::string, std::string>, std::string> threads_;
  Trace trace_;
};

}  // namespace

Trace read_chrome(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{256} << 20;
  const std::string bytes = read_file(path, most_bytes);
  return read_chrome(
      Document::parse(is_gzip(bytes) ? gunzipped(bytes, path, most_bytes) : bytes, path));
}

Trace read_chrome(const Document& document) {
  Trace trace = ChromeReader{document.root()}.read();
  if (trace.records().empty()) {
    document.root()["traceEvents"].fail("no event has args.id, by which events are joined");
  }
  if (const auto notes = document.root().find("otherData")) {
    for (const auto& [key, figure] : notes->members()) {
      if (!figure.json().is_number_integer()) continue;
      const bool size = key.ends_with("_bytes");
      trace.note(key, size ? figure.integer(0, most) : figure.as<std::int64_t>());
    }
  }
  return trace;
}

}  // namespace orrery

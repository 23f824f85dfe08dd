#include "sim/trace/trace.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/chrome.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery {
namespace {

using nlohmann::json;

std::string chrome(const Trace& trace) {
  std::string text;
  write_chrome(trace, [&](std::string_view piece) { text += piece; });
  return text;
}

std::vector<json> events(const Trace& trace, const std::string& phase) {
  std::vector<json> found;
  const json document = json::parse(chrome(trace));
  for (const json& event : document.at("traceEvents")) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

TEST_CASE("An empty trace is a JSON document without events") {
  CHECK(json::parse(chrome(Trace{})).at("traceEvents").empty());
}

TEST_CASE("A record is written to the picosecond, with its id, class, flops and bytes") {
  Trace trace;
  const Track compute = trace.add_track("rank 0", "compute");
  trace.add({.track = compute,
             .start = Time{1'234'567'890'123},
             .duration = Time{5},
             .name = "matmul",
             .id = "0/FWD/layer/qkv",
             .kind = "gemm",
             .flops = Flops{9'007'199'254'740'993},
             .bytes = 3_GiB});
  const std::string text = chrome(trace);
  // Six decimals of a microsecond are picoseconds.
  CHECK(text.find(R"("ts":1234567.890123,"dur":0.000005,)") != std::string::npos);
  const json record = events(trace, "X").at(0);
  CHECK(record.at("name") == "matmul");
  CHECK(record.at("args").at("id") == "0/FWD/layer/qkv");
  CHECK(record.at("args").at("class") == "gemm");
  CHECK(record.at("args").at("flops").get<std::int64_t>() == 9'007'199'254'740'993);
  CHECK(record.at("args").at("bytes").get<std::int64_t>() == (std::int64_t{3} << 30));
}

TEST_CASE("What a record does not have is not written") {
  Trace trace;
  const Track host = trace.add_track("rank 0", "host");
  trace.add({.track = host, .duration = 1_us, .name = "launch", .id = "0/launch", .kind = "host"});
  const json arguments = events(trace, "X").at(0).at("args");
  CHECK(arguments == json{{"id", "0/launch"}, {"class", "host"}});
}

TEST_CASE("The queues of one rank are the threads of one process, named and in order") {
  Trace trace;
  const Track first = trace.add_track("rank 0", "host");
  trace.add_track("rank 1", "host");
  const Track last = trace.add_track("rank 0", "compute");
  CHECK(trace.add_track("rank 0", "host") == first);
  trace.add({.track = last, .duration = 1_us, .name = "a", .id = "a", .kind = "gemm"});

  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, std::string> processes;
  for (const json& event : events(trace, "M")) {
    const int process = event.at("pid");
    const int thread = event.at("tid");
    if (event.at("name") == "thread_name") threads[{process, thread}] = event["args"]["name"];
    if (event.at("name") == "process_name") processes[process] = event["args"]["name"];
    if (event.at("name") == "thread_sort_index") CHECK(event["args"]["sort_index"] == thread);
    if (event.at("name") == "process_sort_index") CHECK(event["args"]["sort_index"] == process);
  }
  CHECK(processes == std::map<int, std::string>{{0, "rank 0"}, {1, "rank 1"}});
  CHECK(threads == std::map<std::pair<int, int>, std::string>{
                       {{0, 0}, "host"}, {{0, 1}, "compute"}, {{1, 0}, "host"}});
  const json record = events(trace, "X").at(0);
  CHECK(record.at("pid") == 0);
  CHECK(record.at("tid") == 1);
}

TEST_CASE("Records are written queue by queue, by start, and as added among equals") {
  Trace trace;
  const Track host = trace.add_track("rank 0", "host");
  const Track compute = trace.add_track("rank 0", "compute");
  const auto add = [&](Track track, Time start, const char* name) {
    trace.add({.track = track, .start = start, .duration = 1_us, .name = name, .id = name});
  };
  add(compute, 2_us, "d");
  add(host, 5_us, "c");
  add(host, 1_us, "a");
  add(host, 1_us, "b");
  std::string order;
  for (const json& event : events(trace, "X")) order += event.at("name").get<std::string>();
  CHECK(order == "abcd");
}

TEST_CASE("Any name comes out as valid JSON, and the same where it was text") {
  const std::string text =
      "quote \" backslash \\ line\nbell\x07 \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\x80";
  Trace trace;
  const Track track = trace.add_track(text, text);
  trace.add({.track = track, .name = text, .id = text, .kind = text});
  const json record = events(trace, "X").at(0);
  CHECK(record.at("name") == text);
  CHECK(record.at("args").at("id") == text);
  CHECK(record.at("args").at("class") == text);

  // Not UTF-8: a lone continuation, an overlong slash, a surrogate, a cut sequence.
  const std::vector<std::pair<std::string, std::string>> broken{
      {"\x80", "\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"a\xE2\x82", "a\uFFFD\uFFFD"},
  };
  for (const auto& [given, written] : broken) {
    Trace other;
    other.add({.track = other.add_track("p", "t"), .name = given});
    CHECK(events(other, "X").at(0).at("name") == written);
  }
}

TEST_CASE("A long trace is whole: every record, in pieces or not") {
  Trace trace;
  const Track track = trace.add_track("rank 0", "compute");
  constexpr int records = 5000;
  for (std::int64_t i = 0; i < records; ++i) {
    trace.add({.track = track,
               .start = Time{i * 1'000'003},
               .duration = Time{i},
               .name = "op",
               .id = std::to_string(i)});
  }
  const auto written = events(trace, "X");
  REQUIRE(written.size() == records);
  for (std::int64_t i = 0; i < records; ++i) {
    const json& event = written[static_cast<std::size_t>(i)];
    REQUIRE(event.at("args").at("id") == std::to_string(i));
    // Below 2^53 ps a double holds every microsecond figure to the picosecond.
    REQUIRE(std::llround(event.at("ts").get<double>() * 1e6) == i * 1'000'003);
    REQUIRE(std::llround(event.at("dur").get<double>() * 1e6) == i);
  }
}

TEST_CASE("What was written is read again: records, tracks and figures") {
  Trace trace;
  const Track compute = trace.add_track("rank 3 (stage 1)", "compute");
  const Track sends = trace.add_track("rank 3 (stage 1)", "comm:pp");
  trace.add({.track = sends, .start = 7_us, .duration = 1_ns, .name = "send", .id = "3/1"});
  trace.add({.track = compute,
             .start = Time{1'234'567},
             .duration = Time{5},
             .name = "qkv",
             .id = "3/0/layer.forward.0/qkv",
             .kind = "gemm",
             .flops = Flops{12},
             .bytes = 34_B});
  trace.note("peak_memory_bytes", 56);
  const std::string path = "trace_test.read_again.json";
  std::ofstream{path} << chrome(trace);
  const Trace again = read_chrome(path);
  std::remove(path.c_str());
  CHECK(chrome(again) == chrome(trace));
  CHECK(again.notes().at("peak_memory_bytes") == 56);
}

TEST_CASE("A file without an operation's id is no trace to join") {
  const std::string path = "trace_test.no_ids.json";
  std::ofstream{path} << R"({"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"pid":0}]})";
  CHECK_THROWS_WITH(read_chrome(path),
                    path + ":/traceEvents: no event has args.id, by which events are joined");
  std::ofstream{path} << R"({"traceEvents":[{"ph":"X","name":"a","ts":-1,"dur":1,"pid":0,)"
                      << R"("args":{"id":"0/0"}}]})";
  CHECK_THROWS_WITH(read_chrome(path),
                    path + ":/traceEvents/0/ts: expected microseconds from 0 to 9e12, found -1");
  std::remove(path.c_str());
}

TEST_CASE("Sizes below zero in a trace are refused where they stand") {
  const auto refused = [](const char* notes, const char* bytes) {
    const Document document = Document::parse(
        std::string{R"({"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"pid":0,)"} +
            R"("args":{"id":"0/0","bytes":)" + bytes + R"(}}],"otherData":{)" + notes + "}}",
        "t.json");
    return refusal([&] { read_chrome(document); });
  };
  CHECK(refused(R"("peak_memory_bytes":-9223372036854775808)", "1") ==
        "t.json:/otherData/peak_memory_bytes: expected an integer of at least 0, found "
        "-9223372036854775808");
  CHECK(refused("", "-1") ==
        "t.json:/traceEvents/0/args/bytes: expected an integer of at least 0, found -1");
  CHECK(refused(R"("balance":-1)", "1") == "nothing was refused");
}

TEST_CASE("Records of no track, or of negative time, are refused") {
  Trace trace;
  CHECK(refusal([&] { trace.add({.name = "a"}); }) ==
        "a record names a track that the trace has not");
  const Track track = trace.add_track("rank 0", "host");
  CHECK(refusal([&] { trace.add({.track = track, .duration = Time{-1}}); }) ==
        "a record starts at 0 ps or later and lasts no less than 0 ps");
}

}  // namespace
}  // namespace orrery

// What a cluster's measured decoding and storage fill in of a step's data, and what they leave.

#include <catch2/catch.hpp>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

std::string on_measured(const std::string& members) {
  return "simulate --model gpt2-medium --cluster dgx-h100 --plan "
         "zero=1,micro_batch=4,global_batch=256 "
         "--set '/cluster/decoding=[{\"format\": \"jpeg-q90\", \"per_core\": 500}]' "
         "--set '/cluster/storage={\"random_read\": \"100 us\"}' "
         "--set '/data={\"format\": \"jpeg-q90\", " +
         members + "}' ";
}

/// The assumption about a pointer; empty: there is none.
std::string assumed(const Json& answer, const std::string& pointer) {
  for (const Json& each : answer.at("assumptions")) {
    const auto text = each.get<std::string>();
    if (text.starts_with(pointer + ": ")) return text;
  }
  return {};
}

}  // namespace

TEST_CASE("Measured rates fill what a scenario's data leave open") {
  const Json open = parsed(orrery(on_measured("\"decode\": {\"cores\": 4}") + "--json").out);
  CHECK(assumed(open, "/data/decode/per_core").find("500 samples a second") != std::string::npos);
  CHECK(assumed(open, "/data/store/latency") ==
        "/data/store/latency: 100 us as measured (/cluster/storage/random_read), 4 reads at a "
        "time, as many as cores decode");
  const Json stated = parsed(
      orrery(on_measured("\"decode\": {\"cores\": 4}, \"store\": {\"in_flight\": 7}") + "--json")
          .out);
  CHECK(assumed(stated, "/data/store/latency") ==
        "/data/store/latency: 100 us as measured (/cluster/storage/random_read)");
  for (const char* store : {"\"of_node\": \"2 GB/s\"", "\"requests_per_second\": 1000",
                            "\"bandwidth\": \"2 GB/s\"", "\"latency\": \"0 s\""}) {
    INFO(store);
    const Json other = parsed(
        orrery(on_measured("\"decode\": {\"cores\": 4}, \"store\": {" + std::string{store} + "}") +
               "--json")
            .out);
    CHECK(assumed(other, "/data/store/latency").empty());
  }
}

TEST_CASE("What is no object is refused where data are measured, too") {
  CHECK(refused_line(on_measured("\"decode\": 16")) ==
        "command line:/data/decode: expected an object, found 16");
  CHECK(refused_line(on_measured("\"decode\": {\"cores\": 4}, \"store\": \"x\"")) ==
        "command line:/data/store: expected an object, found \"x\"");
  CHECK(refused_line(on_measured("\"decode\": {\"cores\": 1e300}")) ==
        "command line:/data/decode/cores: expected a number from 0.01 to 100000, found 1e+300");
}

TEST_CASE("A cluster states a format's decoding once") {
  CHECK(refused_line("simulate --model gpt2-medium --cluster dgx-h100 --set "
                     "'/cluster/decoding=[{\"format\": \"jpeg-q90\", \"per_core\": 500}, "
                     "{\"format\": \"jpeg-q90\", \"per_core\": 600}]'")
            .find("/cluster/decoding/1/format: 'jpeg-q90' is stated twice") != std::string::npos);
}

}  // namespace orrery::scenarios

#include "executor/session/trace_merge.hpp"

#include <catch2/catch.hpp>

#include "executor/errors.hpp"

namespace orrery::executor {

namespace {

using namespace std::chrono_literals;

/// One record of 2 us at 1 us in the rank's own time.
Trace of_rank(const std::string& name) {
  Trace trace;
  trace.add({.track = trace.add_track(name, "compute"),
             .start = 1_us,
             .duration = 2_us,
             .name = "gemm",
             .id = name + "/0",
             .kind = "gemm",
             .flops = Flops{8},
             .bytes = 16_B});
  return trace;
}

}  // namespace

TEST_CASE("Merged traces share the time of the rank that began first") {
  // The second rank began 5 us after the first, so its record at 1 us is at 6 us.
  const Deadline begun{};
  const Trace all = merged(
      {packed(of_rank("rank 0"), begun + 1ms), packed(of_rank("rank 1"), begun + 1ms + 5us)});
  REQUIRE(all.records().size() == 2);
  CHECK(all.records()[0].start == 1_us);
  CHECK(all.records()[1].start == 6_us);
  CHECK(all.records()[1].id == "rank 1/0");
  CHECK(all.processes() == std::vector<std::string>{"rank 0", "rank 1"});
}

TEST_CASE("A trace that is cut short names the rank that sent it") {
  const std::string whole = packed(of_rank("rank 0"), Deadline{} + 1ms);
  for (const std::size_t size : {std::size_t{0}, std::size_t{9}, whole.size() - 1}) {
    CHECK_THROWS_WITH(merged({whole, whole.substr(0, size)}),
                      "rank 1 sent a trace that cannot be read");
  }
}

}  // namespace orrery::executor

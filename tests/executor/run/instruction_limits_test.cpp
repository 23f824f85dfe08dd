#include "executor/run/blocks/instruction_limits.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "models/evaluation/priced.hpp"

namespace orrery::executor {

namespace {

using namespace std::chrono_literals;

/// One rank: a phase of two layers of 3 s and a launch of 1 s each, then a collective of 100 s.
struct Priced {
  Priced() {
    program.mesh = {1, 1, 1};
    program.phases.push_back({.name = "fwd", .invocations = {{.block = 0, .count = 2}}});
    program.classes.resize(1);
    program.classes[0].instructions = {{.op = models::Opcode::forward, .target = 0},
                                       {.op = models::Opcode::reduce_gradient, .target = 0}};
    priced.program = &program;
    priced.blocks = {{{.launch = seconds(1), .duration = seconds(3)}}};
    priced.collectives = {{.launch = seconds(1), .duration = seconds(90), .lead = seconds(10)}};
  }
  static Time seconds(std::int64_t count) { return Time{count * 1'000'000'000'000}; }
  models::Program program;
  models::PricedProgram priced;
};

}  // namespace

TEST_CASE("A rank may stand twenty times as long as predicted, and a minute at least") {
  const Priced of;
  CHECK(predicted_work(of.priced, 0) ==
        std::vector<Time>{Priced::seconds(8), Priced::seconds(100)});
  InstructionLimits limits{of.priced, 0, Priced::seconds(108), {.least = 60s, .first = 600s}};
  const Progress computes{.instruction = 0, .waits_for = "", .text = "", .works = true};
  const Progress reduces{.instruction = 1, .waits_for = "", .text = "", .works = true};
  const Progress waits{.instruction = 0, .waits_for = "rank 1", .text = "", .works = false};
  // The first step touches memory and builds kernels.
  CHECK(limits.at(computes) == 600s);
  CHECK(limits.at(reduces) == 2000s);
  limits.measured(Priced::seconds(54));  // faster than predicted: no reason to be stricter
  CHECK(limits.at(computes) == 160s);
  // Who waits, waits for anything that the step holds.
  CHECK(limits.at(waits) == 20 * 108s);
  limits.measured(Priced::seconds(1080));  // ten times slower
  CHECK(limits.at(computes) == 1600s);
  CHECK(limits.at(reduces) == 20000s);
  InstructionLimits strict{of.priced, 0, Priced::seconds(108), {.least = 200s, .first = 200s}};
  strict.measured(Priced::seconds(108));
  CHECK(strict.at(computes) == 200s);
}

}  // namespace orrery::executor

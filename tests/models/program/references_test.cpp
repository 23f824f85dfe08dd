// Parts of a Program that name others by index: those that do not exist are refused before they are
// read.
#include <catch2/catch.hpp>

#include "tests/models/questions.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery::models {
namespace {

/// Two stages of two layers each, two replicas, two micro-batches, 1F1B.
Program staged_program() {
  Plan plan;
  plan.pipeline = 2;
  plan.data = 2;
  plan.batch.global = 4;
  plan.overlap.gradients = false;
  return tiny_program(plan, 4);
}

/// What `check` says after `plant` has broken the Program.
template <class Plant>
std::string misnamed(Plant plant) {
  Program program = staged_program();
  plant(program);
  return refusal([&] { check(program); });
}

}  // namespace

TEST_CASE("The parts of a Program name parts that exist") {
  // Two chunks of two phases each and two of the optimizer, two classes, 4 layers, 5 kinds at most.
  const Program whole = staged_program();
  const auto phases = std::to_string(whole.phases.size());
  const auto units = std::to_string(whole.units.size());
  CHECK(misnamed([](Program& program) { program.chunks[0].forward = 77; }) ==
        "c0 runs phase 77, there are " + phases);
  CHECK(misnamed([](Program& program) { program.chunks[1].backward = 78; }) ==
        "c1 runs phase 78, there are " + phases);
  CHECK(misnamed([](Program& program) { program.chunks[1].weight_gradient = 79; }) ==
        "c1 runs phase 79, there are " + phases);
  CHECK(misnamed([](Program& program) { program.chunks[1].layers = 3; }) ==
        "c1 has layer 4, there are 4");
  CHECK(misnamed([](Program& program) { program.chunks[1].place = 7; }) ==
        "stage 1 i0 receive c1 mb0: the chunk is not of this stage");
  CHECK(misnamed([](Program& program) { program.channels[0].from = 2; }) ==
        "channel 0 joins rank class 2, there are 2");
  CHECK(misnamed([](Program& program) { program.channels[1].to = 9; }) ==
        "channel 1 joins rank class 9, there are 2");
  CHECK(misnamed([](Program& program) { program.channels[1].communicator = 99; }) ==
        "channel 1 has communicator 99, there are " + std::to_string(whole.communicators.size()));
  CHECK(misnamed([](Program& program) {
          program.collectives[3].classes = {0, 5};
        }) == "collective 'gradient norm' joins rank class 5, there are 2");
  CHECK(misnamed([](Program& program) { program.collectives[0].units = 50; }) ==
        "collective 'gradients.c0' has unit 49, there are " + units);
  CHECK(misnamed([](Program& program) {
          program.collectives[0].first_unit = 60;
          program.collectives[0].units = 0;
        }) == "collective 'gradients.c0' has unit 60, there are " + units);
  CHECK(misnamed([](Program& program) { program.units[0].kinds = {33}; }) ==
        "unit '" + whole.units[0].name + "' is of kind 33, there are " +
            std::to_string(whole.kinds.size()));
  CHECK(misnamed([](Program& program) { program.kind_of_layer[2] = 34; }) ==
        "a layer is of kind 34, there are " + std::to_string(whole.kinds.size()));
  CHECK(misnamed([&](Program& program) {
          program.phases[whole.chunks[0].backward].invocations[0].first_layer = 8;
        }) == "phase backward.c0 runs layer 8, there are 4");
  CHECK(misnamed([&](Program& program) {
          program.phases[whole.chunks[0].backward].invocations[0].count = 3;
        }) == "phase backward.c0 runs layer -1, there are 4");
  CHECK(misnamed([](Program& program) { program.classes[0].chunks = {6}; }) ==
        "stage 0 holds chunk 6, there are 2");
}

}  // namespace orrery::models

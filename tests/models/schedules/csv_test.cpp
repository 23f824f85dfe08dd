#include "models/schedules/csv.hpp"

#include <catch2/catch.hpp>

#include "tests/models/questions.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery::models {
namespace {

std::string csv_fault(const std::string& text) {
  return refusal([&] { parse_schedule(text, "s.csv"); });
}

}  // namespace

TEST_CASE("A schedule goes out as PyTorch's CSV and comes back equal") {
  for (const auto& [name, schedule] : builtin_schedules()) {
    CAPTURE(name);
    const bool one = schedule.chunks == ChunksPerStage::one;
    if (schedule.copies() > 1) continue;  // PyTorch has one
    const PipelineShape shape{3, one ? 1 : 2, 6};
    const std::string text = to_csv(slots_of(schedule, shape));
    const ScheduleTable table = parse_schedule(text, "s.csv");
    CHECK(to_csv(table.slots) == text);
    CHECK(table.chunks == shape.chunks());
    CHECK(table.micro_batches == 6);
    CHECK(table.stages() == stages_of_chunks(schedule, shape));
    CHECK(table.splits_backward() == schedule.splits_backward());
  }
  CHECK(to_csv(slots_of(builtin_schedules().at("1f1b"), {2, 1, 2})) ==
        "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST_CASE(
    "Bubbles are empty cells, a whole backward among split ones is both, a pair takes turns") {
  const ScheduleTable table = parse_schedule(
      "0F0,0F1,,,0B0,0I1,0W1\r\n,1F0,\"1I0\",(1F1;1W0)OVERLAP_F_B,1B1\r\n\r\n", "s.csv");
  CHECK(to_csv(table.slots) == "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1W0,1I1,1W1\n");
}

TEST_CASE("A schedule that is not whole is refused with its line") {
  CHECK(csv_fault("") == "s.csv: expected a line of slots for each rank, found none");
  CHECK(csv_fault("0F0,0B0,0SEND_F0\n") ==
        "s.csv:line 1: expected a chunk, one of F B I W and a micro-batch, as in 0F3, found "
        "\"0SEND_F0\"; leave transfers and gathers out");
  CHECK(csv_fault("0F0,0B0\n0F1,0B1\n") ==
        "s.csv:line 2: chunk 0 is on line 1, too; a chunk must be on one rank");
  CHECK(csv_fault("0F0,0B0,0F0\n") == "s.csv:line 1: 0F0 is given twice");
  CHECK(csv_fault("0B0,0F0\n") ==
        "s.csv:line 1: 0B0 comes before the forward of its chunk and micro-batch");
  CHECK(csv_fault("0F0,0W0,0I0\n") ==
        "s.csv:line 1: 0W0 comes before the backward of its chunk and micro-batch");
  CHECK(csv_fault("0F0,0I0\n1F0,1I0,1W0\n") ==
        "s.csv:line 1: the weight gradient of chunk 0 and micro-batch 0 is missing");
  CHECK(csv_fault("0F0,0B0\n2F0,2B0\n") == "s.csv: chunk 1 is missing: there are slots of chunk 2");
  CHECK(csv_fault("0F0,0F1,0B0,0B1\n1F0,1B0\n") ==
        "s.csv:line 2: the forward of chunk 1 and micro-batch 1 is missing");
  CHECK(csv_fault("0F0,0B0,2F0,2B0\n1F0,1B0\n") ==
        "s.csv: deadlock: ranks wait for each other's slots");
  CHECK(csv_fault("99999999999999999999F0\n").find("expected a chunk") != std::string::npos);
}

TEST_CASE("A plan runs a schedule from a file like the one of the table that it writes out") {
  Question asked = question("gpt2", "dgx-a100-80gb",
                            "pipeline=4,data=2,global_batch=16,micro_batch=1,schedule=zb-h1");
  const Time expected = predict(asked).step;
  const std::vector<Slots> slots = slots_of(builtin_schedules().at("zb-h1"), asked.plan.shape());
  asked.plan.stages.schedule = "own.csv";
  asked.plan.stages.table = parse_schedule(to_csv(slots), "own.csv");
  CHECK(predict(asked).step == expected);
  asked.plan.batch.global = 32;
  CHECK(refusal([&] { predict(asked); }) ==
        "/plan/global_batch: own.csv has 8 micro-batches, the plan has 16");
}

}  // namespace orrery::models

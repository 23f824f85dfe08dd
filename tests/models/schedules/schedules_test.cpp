#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "models/schedules/schedule.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

std::vector<ScheduleSlot> slots_of(decltype(Schedule::slots) schedule, const PipelineShape& shape,
                                   std::int64_t stage) {
  std::vector<ScheduleSlot> slots;
  schedule(shape, stage, slots);
  return slots;
}

/// "F0.1 F0.2 B0.1": direction, virtual stage, micro-batch counted from 1 as papers do.
std::string text_of(const std::vector<ScheduleSlot>& slots, std::int64_t stages) {
  std::string text;
  for (const ScheduleSlot& each : slots) {
    if (!text.empty()) text += ' ';
    text += word_of(slot_letters, each.kind);
    text += std::to_string(each.chunk / stages) + "." + std::to_string(each.micro_batch + 1);
  }
  return text;
}

/// Most micro-batches of all chunks that are alive at once: forward done, backward not.
std::int64_t most_alive(const std::vector<ScheduleSlot>& slots) {
  std::int64_t alive = 0, most = 0;
  for (const ScheduleSlot& each : slots) {
    alive += each.kind == SlotKind::forward ? 1 : -1;
    most = std::max(most, alive);
  }
  return most;
}

std::int64_t warm_up(const std::vector<ScheduleSlot>& slots) {
  std::int64_t count = 0;
  while (slots[static_cast<std::size_t>(count)].kind == SlotKind::forward) ++count;
  return count;
}

/// Does a stage run every chunk and micro-batch once with each kind of the schedule, in that order?
bool runs_all_in_order(const Schedule& schedule, const PipelineShape& shape, std::int64_t stage) {
  std::map<std::pair<int, std::uint32_t>, std::size_t> seen;
  for (const ScheduleSlot& each : slots_of(schedule.slots, shape, stage)) {
    std::size_t& done = seen[{each.chunk, each.micro_batch}];
    if (each.chunk % shape.stages != stage || done == schedule.kinds.size()) return false;
    if (each.kind != schedule.kinds[done]) return false;
    ++done;
  }
  const bool all = std::all_of(seen.begin(), seen.end(), [&](const auto& each) {
    return each.second == schedule.kinds.size();
  });
  return all && seen.size() == static_cast<std::size_t>(shape.virtual_stages * shape.micro_batches);
}

/// Laws of any schedule that a table has.
void check_laws(const Registry<Schedule>& table) {
  for (const auto& [name, schedule] : table) {
    const bool several = schedule.chunks == ChunksPerStage::several;
    for (const std::int64_t stages : {2, 3, 4, 8}) {
      for (const std::int64_t rounds : {1, 2, 5}) {
        const PipelineShape shape{stages, several ? 3 : 1, rounds * stages};
        CAPTURE(name, stages, rounds);
        CHECK((!schedule.lacks || schedule.lacks(shape).empty()));
        for (std::int64_t stage = 0; stage < stages; ++stage) {
          CAPTURE(stage);
          CHECK(runs_all_in_order(schedule, shape, stage));
        }
      }
    }
  }
}

/// Of another house: all forwards, then backwards in the same order.
void first_in_first_out(const PipelineShape& shape, std::int64_t stage,
                        std::vector<ScheduleSlot>& slots) {
  for (const SlotKind kind : {SlotKind::forward, SlotKind::backward}) {
    for (std::int64_t mb = 0; mb < shape.micro_batches; ++mb) {
      slots.push_back(slot_of(kind, shape, stage, 0, mb));
    }
  }
}

}  // namespace

TEST_CASE("Every schedule runs each chunk and micro-batch forward once, then backward once") {
  check_laws(builtin_schedules());
}

TEST_CASE("Every schedule has a paper, and a plan that names none has one") {
  for (const auto& [name, schedule] : builtin_schedules()) CHECK(!schedule.paper.empty());
  CHECK(usual_schedule(1) == "1f1b");
  CHECK(usual_schedule(4) == "interleaved-1f1b");
}

TEST_CASE("A schedule from outside is one function and one row: it is simulated like the others") {
  Registry<Schedule> table = builtin_schedules();
  table.add("first-in-first-out", {.slots = first_in_first_out, .paper = "none"});
  check_laws(table);

  Question asked = question("gpt2", "dgx-a100-80gb",
                            "pipeline=4,data=2,micro_batch=1,global_batch=16,schedule=gpipe");
  const Time gpipe_step = predict(asked).step;
  asked.plan.schedule = "first-in-first-out";
  CHECK_THROWS_WITH(predict(asked), Catch::Contains("unknown schedule 'first-in-first-out'; known: "
                                                    "naive gpipe 1f1b interleaved-1f1b"));
  asked.schedules = &table;
  // As many micro-batches in the pipeline, in both directions: only the order of backward differs.
  const Prediction found = predict(asked);
  CHECK(ratio(found.step, gpipe_step) == Approx(1).epsilon(0.02));
  CHECK(found.program->classes.front().instructions.size() > 16);
}

TEST_CASE("1F1B warms up with the stages below it and keeps no more alive than those and itself") {
  const PipelineShape shape{4, 1, 8};
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const std::vector<ScheduleSlot> slots = slots_of(one_f_one_b, shape, stage);
    CHECK(warm_up(slots) == 4 - stage);  // the first of the steady forwards included
    CHECK(most_alive(slots) == 4 - stage);
  }
  // Fewer micro-batches than stages: all of them at most.
  CHECK(most_alive(slots_of(one_f_one_b, {4, 1, 2}, 0)) == 2);
  CHECK(text_of(slots_of(one_f_one_b, {2, 1, 3}, 0), 2) == "F0.1 F0.2 B0.1 F0.3 B0.2 B0.3");
  CHECK(text_of(slots_of(one_f_one_b, {2, 1, 3}, 1), 2) == "F0.1 B0.1 F0.2 B0.2 F0.3 B0.3");
}

TEST_CASE("GPipe keeps all micro-batches and undoes the last one first") {
  CHECK(text_of(slots_of(gpipe, {2, 1, 3}, 0), 2) == "F0.1 F0.2 F0.3 B0.3 B0.2 B0.1");
  CHECK(most_alive(slots_of(gpipe, {4, 1, 8}, 3)) == 8);
}

TEST_CASE("Without a pipeline schedule one micro-batch is alive") {
  CHECK(text_of(slots_of(naive, {2, 1, 2}, 1), 2) == "F0.1 B0.1 F0.2 B0.2");
  CHECK(most_alive(slots_of(naive, {4, 1, 8}, 0)) == 1);
}

TEST_CASE("The interleaved order of 4 stages, 2 chunks each and 8 micro-batches is Megatron's") {
  // Stage 0 warms up with 2 (4 - 0 - 1) + (2 - 1) 4 = 10 forwards, stage 3 with 4: micro-batches in
  // groups of 4, each through both chunks; backwards likewise, chunks reversed.
  CHECK(text_of(slots_of(interleaved, {4, 2, 8}, 0), 4) ==
        "F0.1 F0.2 F0.3 F0.4 F1.1 F1.2 F1.3 F1.4 F0.5 F0.6 "
        "F0.7 B1.1 F0.8 B1.2 F1.5 B1.3 F1.6 B1.4 F1.7 B0.1 F1.8 B0.2 "
        "B0.3 B0.4 B1.5 B1.6 B1.7 B1.8 B0.5 B0.6 B0.7 B0.8");
  CHECK(text_of(slots_of(interleaved, {4, 2, 8}, 3), 4) ==
        "F0.1 F0.2 F0.3 F0.4 "
        "F1.1 B1.1 F1.2 B1.2 F1.3 B1.3 F1.4 B1.4 F0.5 B0.1 F0.6 B0.2 F0.7 B0.3 F0.8 B0.4 "
        "F1.5 B1.5 F1.6 B1.6 F1.7 B1.7 F1.8 B1.8 "
        "B0.5 B0.6 B0.7 B0.8");
  // Alive on stage 0: the warm-up and the forward after it.
  CHECK(most_alive(slots_of(interleaved, {4, 2, 8}, 0)) == 11);
  CHECK(most_alive(slots_of(interleaved, {4, 2, 8}, 3)) == 5);
}

TEST_CASE("With as many micro-batches as stages, interleaving does all forwards first") {
  CHECK(warm_up(slots_of(interleaved, {4, 2, 4}, 3)) == 8);
}

}  // namespace orrery::models

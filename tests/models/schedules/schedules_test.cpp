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
  const std::vector<std::int64_t> stages = stages_of_chunks(schedule, shape);
  const std::vector<Slots> all = slots_of(schedule, shape);
  for (const ScheduleSlot& each : all[static_cast<std::size_t>(stage)]) {
    std::size_t& done = seen[{each.chunk, each.micro_batch}];
    if (stages[each.chunk] != stage || done == schedule.kinds.size()) return false;
    if (each.kind != schedule.kinds[done]) return false;
    ++done;
  }
  const bool whole = std::all_of(seen.begin(), seen.end(), [&](const auto& each) {
    return each.second == schedule.kinds.size();
  });
  return whole &&
         seen.size() == static_cast<std::size_t>(shape.virtual_stages * shape.micro_batches);
}

/// Laws of any schedule that a table has.
void check_laws(const Registry<Schedule>& table) {
  for (const auto& [name, schedule] : table) {
    const bool several = schedule.chunks == ChunksPerStage::several;
    for (const std::int64_t stages : {2, 3, 4, 8}) {
      for (const std::int64_t rounds : {1, 2, 5}) {
        const bool vee = schedule.placement == Placement::vee;
        PipelineShape shape{stages, vee ? 2 : several ? 3 : 1, rounds * stages};
        shape.copies = schedule.copies();
        CAPTURE(name, stages, rounds);
        const bool runs = !schedule.unmet || schedule.unmet(shape).empty();
        const bool even = stages % 2 == 0 && rounds == 2;
        CHECK((runs || (schedule.placement != Placement::round && !even)));
        if (!runs) continue;
        CHECK(duration_of(slots_of(schedule, shape), shape) < 1e9);  // no deadlock
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
  CHECK(default_schedule(1) == "1f1b");
  CHECK(default_schedule(4) == "interleaved-1f1b");
}

TEST_CASE("A schedule from outside is one function and one row: it is simulated like the others") {
  Registry<Schedule> table = builtin_schedules();
  table.add("first-in-first-out", {.slots = first_in_first_out, .paper = "none"});
  check_laws(table);

  Question asked = question("gpt2", "dgx-a100-80gb",
                            "pipeline=4,data=2,micro_batch=1,global_batch=16,schedule=gpipe");
  const Time gpipe_step = predict(asked).step;
  asked.plan.stages.schedule = "first-in-first-out";
  CHECK_THROWS_WITH(predict(asked), Catch::Contains("unknown schedule 'first-in-first-out'; known: "
                                                    "naive gpipe 1f1b interleaved-1f1b zb-h1"));
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

/// Time of all slots beyond those of one stage, whose chunks are all alike.
double bubble(const std::string& name, const PipelineShape& shape, const SlotCosts& costs) {
  PipelineShape priced = shape;
  priced.costs.assign(static_cast<std::size_t>(shape.chunks()), costs);
  const double one = costs.forward + costs.backward + costs.weight_gradient;
  const double busy = one * static_cast<double>(shape.micro_batches * shape.virtual_stages);
  return duration_of(slots_of(builtin_schedules().at(name), priced), priced) - busy;
}

TEST_CASE("Zero-bubble H1 stands idle for (p-1)(F+B-W): a third of 1F1B's where all are equal") {
  for (const double stages : {2., 4., 8.}) {
    const PipelineShape shape{static_cast<std::int64_t>(stages), 1,
                              2 * static_cast<std::int64_t>(stages)};
    CHECK(bubble("1f1b", shape, {1, 1, 1}) == (stages - 1) * 3);
    CHECK(bubble("zb-h1", shape, {1, 1, 1}) == stages - 1);
    CHECK(bubble("zb-h1", shape, {10, 12, 9}) == (stages - 1) * (10 + 12 - 9));
    // H2 from a stage's first slot to its last (p-1)(F+B-2W); its last stage begins (p-1) F late.
    CHECK(bubble("zb-h2", shape, {1, 1, 1}) == (stages - 1) * 1);
    CHECK(bubble("zb-h2", shape, {4, 6, 5}) == (stages - 1) * (4 + 4 + 6 - 2 * 5));
    // By a list, at least as good; 1p cannot be shorter than its fill and drain.
    CHECK(bubble("zb-1p", shape, {10, 12, 9}) <= bubble("zb-h1", shape, {10, 12, 9}));
    CHECK(bubble("zb-2p", shape, {10, 12, 9}) <= bubble("zb-h2", shape, {10, 12, 9}));
    CHECK(bubble("zb-1p", shape, {10, 12, 9}) >= (stages - 1) * 10);
  }
}

TEST_CASE("DualPipe in turns stands idle for (p/2-1)(F+B-W), on two stages not at all") {
  for (const double stages : {2., 4., 8.}) {
    const auto count = static_cast<std::int64_t>(stages);
    PipelineShape shape{count, 1, 4 * count};
    shape.copies = 2;
    shape.costs.assign(static_cast<std::size_t>(shape.chunks()), {10, 12, 9});
    const std::vector<Slots> slots = slots_of(builtin_schedules().at("dualpipe"), shape);
    CHECK(duration_of(slots, shape) - 31 * 4 * stages == (stages / 2 - 1) * (10 + 12 - 9));
  }
}

TEST_CASE(
    "A V of two chunks to a stage waits for its first forward alone; DualPipe's pair by turns") {
  for (const double stages : {2., 4., 8.}) {
    const PipelineShape shape{static_cast<std::int64_t>(stages), 2,
                              2 * static_cast<std::int64_t>(stages)};
    // With equal times no stage stands idle once it has begun: the last one begins (p-1) F late.
    CHECK(bubble("zb-v", shape, {1, 1, 1}) == stages - 1);
    // (p-1)(F&B + B' - 3W) of the report, B' = B + W, has pairs that end as one, F&B = F + B + W.
    // In turns the next stage goes on (p-1) B earlier: (p-1)(F + B - W), where F = B = W the half.
    CHECK(bubble("dualpipev", shape, {1, 1, 1}) == stages - 1);
    CHECK(bubble("dualpipev", shape, {4, 5, 3}) <= (stages - 1) * (4 + 5 + 3 + 5 + 3 - 3 * 3));
  }
  CHECK(bubble("dualpipev", {4, 2, 16}, {4, 5, 3}) == 3 * (4 + 5 - 3));
}

/// Most activations held: 1 from a forward on, `kept` between backward and weight gradient.
double most_held(const Slots& slots, double kept) {
  double held = 0, most = 0;
  for (const ScheduleSlot& each : slots) {
    held += each.kind == SlotKind::forward ? 1 : each.kind == SlotKind::backward ? kept - 1 : -kept;
    most = std::max(most, held);
  }
  return most;
}

TEST_CASE("H1 and 1p hold no more than 1F1B's first stage, H2 and 2p twice that") {
  PipelineShape shape{4, 1, 16};
  shape.costs.assign(4, {10, 12, 9, 0.9});
  const auto held = [&](const std::string& name, std::size_t stage) {
    const double kept = name == "1f1b" ? 0 : 0.9;
    return most_held(slots_of(builtin_schedules().at(name), shape)[stage], kept);
  };
  CHECK(held("1f1b", 0) == Approx(4));
  for (std::size_t stage = 0; stage < 4; ++stage) {
    CAPTURE(stage);
    CHECK(held("zb-h1", stage) <= 4 + 1e-9);
    CHECK(held("zb-1p", stage) <= 4 + 1e-9);
    CHECK(held("zb-h2", stage) <= 7 + 1e-9);  // 2 p - 1
    CHECK(held("zb-2p", stage) <= 8 + 1e-9);
  }
  // On stage i of H1: p - i whole ones and what i weight gradients wait for.
  CHECK(held("zb-h1", 3) == Approx(1 + 3 * 0.9));
}

TEST_CASE("The first schedules with weight gradients of their own, slot by slot") {
  const auto text = [](const char* name, const PipelineShape& shape, std::size_t stage) {
    return text_of(slots_of(builtin_schedules().at(name), shape)[stage], shape.stages);
  };
  CHECK(text("zb-h1", {2, 1, 3}, 0) == "F0.1 F0.2 B0.1 W0.1 F0.3 B0.2 W0.2 B0.3 W0.3");
  CHECK(text("zb-h1", {2, 1, 3}, 1) == "F0.1 B0.1 F0.2 B0.2 W0.1 F0.3 B0.3 W0.2 W0.3");
  CHECK(text("zb-h2", {2, 1, 4}, 0) ==
        "F0.1 F0.2 F0.3 B0.1 W0.1 F0.4 B0.2 W0.2 B0.3 W0.3 B0.4 W0.4");
  // Chunks 0 and 3 are stage 0's, 1 and 2 stage 1's.
  CHECK(
      text("zb-v", {2, 2, 3}, 1) ==
      "F0.1 F1.1 F0.2 F1.2 B1.1 W1.1 F0.3 B0.1 W0.1 F1.3 B1.2 W1.2 B0.2 B1.3 B0.3 W0.2 W1.3 W0.3");
}

}  // namespace orrery::models

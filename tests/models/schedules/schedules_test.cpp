#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "models/schedules/schedule.hpp"

namespace orrery::models {
namespace {

std::vector<Instruction> slots_of(Schedule schedule, const PipelineShape& shape,
                                  std::int64_t stage) {
  std::vector<Instruction> slots;
  schedule(shape, stage, slots);
  return slots;
}

/// "F0.1 F0.2 B0.1": direction, virtual stage, micro-batch counted from 1 as papers do.
std::string text_of(const std::vector<Instruction>& slots, std::int64_t stages) {
  std::string text;
  for (const Instruction& each : slots) {
    if (!text.empty()) text += ' ';
    text += each.op == Opcode::forward ? 'F' : 'B';
    text += std::to_string(each.chunk / stages) + "." + std::to_string(each.micro_batch + 1);
  }
  return text;
}

/// Most micro-batches of all chunks that are alive at once: forward done, backward not.
std::int64_t most_alive(const std::vector<Instruction>& slots) {
  std::int64_t alive = 0, most = 0;
  for (const Instruction& each : slots) {
    alive += each.op == Opcode::forward ? 1 : -1;
    most = std::max(most, alive);
  }
  return most;
}

std::int64_t warm_up(const std::vector<Instruction>& slots) {
  std::int64_t count = 0;
  while (slots[static_cast<std::size_t>(count)].op == Opcode::forward) ++count;
  return count;
}

}  // namespace

TEST_CASE("Every schedule runs each chunk and micro-batch forward once, then backward once") {
  const Registry<Schedule> known = builtin_schedules();
  for (const char* name : {"naive", "gpipe", "1f1b", "interleaved-1f1b"}) {
    for (const std::int64_t stages : {2, 3, 4, 8}) {
      for (const std::int64_t rounds : {1, 2, 5}) {
        PipelineShape shape{stages, 1, rounds * stages};
        if (std::string{name} == "interleaved-1f1b") shape.virtual_stages = 3;
        for (std::int64_t stage = 0; stage < stages; ++stage) {
          CAPTURE(name, stages, rounds, stage);
          std::map<std::pair<int, std::uint32_t>, int> seen;
          bool orderly = true;
          for (const Instruction& each : slots_of(known.at(name), shape, stage)) {
            int& state = seen[{each.chunk, each.micro_batch}];
            orderly = orderly && each.chunk % stages == stage &&
                      state == (each.op == Opcode::forward ? 0 : 1);
            ++state;
          }
          CHECK(orderly);
          CHECK(seen.size() ==
                static_cast<std::size_t>(shape.virtual_stages * shape.micro_batches));
          for (const auto& [slot, state] : seen) orderly = orderly && state == 2;
          CHECK(orderly);
        }
      }
    }
  }
}

TEST_CASE("1F1B warms up with the stages below it and keeps no more alive than those and itself") {
  const PipelineShape shape{4, 1, 8};
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const std::vector<Instruction> slots = slots_of(one_f_one_b, shape, stage);
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
  // Alive on stage 0: the warm-up and the forward behind it.
  CHECK(most_alive(slots_of(interleaved, {4, 2, 8}, 0)) == 11);
  CHECK(most_alive(slots_of(interleaved, {4, 2, 8}, 3)) == 5);
}

TEST_CASE("With as many micro-batches as stages, interleaving does all forwards first") {
  CHECK(warm_up(slots_of(interleaved, {4, 2, 4}, 3)) == 8);
}

}  // namespace orrery::models

#include <catch2/catch.hpp>

#include "tests/models/questions.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery::models {
namespace {

/// Two stages of two layers each, two replicas, two micro-batches, 1F1B.
///   stage 0  FWD0 SEND FWD1 SEND RECV BWD0 RECV BWD1 REDUCE SUM OPT NORM OPT
///   stage 1  RECV FWD0 BWD0 SEND RECV FWD1 BWD1 SEND REDUCE SUM OPT NORM OPT
Program two_stage_program() {
  Plan plan;
  plan.pipeline = 2;
  plan.data = 2;
  plan.batch.global = 4;
  plan.overlap.gradients = false;
  return tiny_program(plan, 4);
}

/// What `check` says after `plant` has broken the Program.
template <class Plant>
std::string fault_of_check(Plant plant) {
  Program program = two_stage_program();
  plant(program);
  return refusal([&] { check(program); });
}

std::vector<Instruction>& list(Program& program, std::size_t stage) {
  return program.classes[stage].instructions;
}

/// What was made at `from` or later is made `by` places later.
void move_tokens(std::vector<Instruction>& list, Token from, int by) {
  for (Instruction& each : list) {
    for (Token* token : {&each.input, &each.awaits}) {
      if (*token != no_token && *token >= from) *token += static_cast<Token>(by);
    }
  }
}

void drop(std::vector<Instruction>& list, Token i) {
  list.erase(list.begin() + i);
  for (Instruction& each : list) {
    if (each.input == i) each.input = no_token;
  }
  move_tokens(list, i + 1, -1);
}

void insert(std::vector<Instruction>& list, Token i, const Instruction& each) {
  move_tokens(list, i, 1);
  list.insert(list.begin() + i, each);
}

}  // namespace

TEST_CASE("Whatever the lowering makes passes its own checks") {
  const Software plain = plain_software();
  Software overlapped = plain;
  overlapped.overlap.bucket = Bytes{1};  // a bucket per layer
  for (const Software& software : {plain, overlapped}) {
    for (const auto& [schedule, row] : builtin_schedules()) {
      for (const std::int64_t pipeline : {1, 2, 4}) {
        for (const Zero zero : {Zero::none, Zero::one}) {
          for (const Recompute recompute :
               {Recompute::none, Recompute::selective, Recompute::full}) {
            Plan plan;
            plan.stages.schedule = schedule;
            plan.pipeline = pipeline;
            plan.stages.virtual_stages = row.chunks == ChunksPerStage::several ? 2 : 1;
            plan.data = 2;
            plan.tensor = 2;
            plan.sequence_parallel = recompute != Recompute::none;
            plan.sharding.zero = zero;
            plan.recompute.kind = recompute;
            plan.batch.global = 16;
            if (row.unmet && !row.unmet(plan.shape()).empty()) continue;
            CHECK_NOTHROW(check(tiny_program(plan, 8, software)));
          }
        }
      }
    }
  }
}

TEST_CASE("Two receives in the wrong order are found with both their ends") {
  CHECK(fault_of_check([](Program& program) {
          list(program, 0)[4].micro_batch = list(program, 0)[5].micro_batch = 1;
          list(program, 0)[6].micro_batch = list(program, 0)[7].micro_batch = 0;
          std::swap(list(program, 0)[5].bindings, list(program, 0)[7].bindings);
        }) ==
        "stage 0 i4 receive c0 mb1: receives transfer 0 of its channel, which is sent by stage 1 "
        "i3 send c1 mb0");
}

TEST_CASE("A transfer that its peer lacks is found") {
  CHECK(fault_of_check([](Program& program) { drop(list(program, 1), 3); }) ==
        "stage 1 i5 backward c1 mb1: gradient_out.c1[0] is still held by mb0");
  CHECK(fault_of_check([](Program& program) {
          Instruction& gone = list(program, 1)[7];
          list(program, 1)[6].frees |= bit(slot_out);
          gone.op = Opcode::optimizer;
          gone.target = list(program, 1).back().target;
          gone.frees = 0;
          gone.input = no_token;
        }) == "stage 0 i6 receive c0 mb1: stage 1 sends only 1 transfers");
  CHECK(fault_of_check([](Program& program) {
          Instruction extra = list(program, 0)[3];
          extra.frees = 0;
          insert(list(program, 0), 3, extra);
        }) == "stage 0 i4 send c0 mb1: stage 1 receives only 2 transfers");
}

TEST_CASE("A send on a channel of other stages is refused") {
  CHECK(fault_of_check([](Program& program) {
          program.channels[0] = {1, 0, true, program.channels[0].bytes};
        }) == "stage 0 i1 send c0 mb0: its channel is from stage 1 to stage 0");
}

TEST_CASE("A channel carries what the buffers at its ends hold") {
  // A boundary is 8 tokens of 8 values in bf16: 128 bytes.
  CHECK(fault_of_check([](Program& program) { program.channels[0].bytes = Bytes{64}; }) ==
        "stage 0 i1 send c0 mb0: out.c0 holds 128 bytes, its channel to stage 1 carries 64");
  CHECK(fault_of_check([](Program& program) { program.channels[3].bytes = Bytes{64}; }) ==
        "stage 0 i4 receive c0 mb0: gradient_in.c0 holds 128 bytes, its channel from stage 1 "
        "carries 64");
}

TEST_CASE("A buffer that is never freed is found where it was bound") {
  CHECK(fault_of_check([](Program& program) { list(program, 0)[7].frees = bit(slot_in); }) ==
        "stage 0 i2 forward c0 mb1: binds saved.c0[1], which is never freed");
}

TEST_CASE("A buffer freed twice is found where it was freed first") {
  CHECK(fault_of_check([](Program& program) { list(program, 0)[2].frees = bit(slot_out); }) ==
        "stage 0 i3 send c0 mb1: out.c0[0] was freed at stage 0 i2 forward c0 mb1");
}

TEST_CASE("A buffer is bound before it is used and by the same micro-batch") {
  CHECK(fault_of_check([](Program& program) { list(program, 0)[5].bindings[slot_saved] = 1; }) ==
        "stage 0 i5 backward c0 mb0: saved.c0[1] is held by mb1");
  CHECK(fault_of_check([](Program& program) { list(program, 0)[2].bindings[slot_saved] = 0; }) ==
        "stage 0 i2 forward c0 mb1: saved.c0[0] is still held by mb0");
  CHECK(fault_of_check([](Program& program) { list(program, 0)[5].bindings[slot_in] = 1; }) ==
        "stage 0 i5 backward c0 mb0: gradient_in.c0[1] is used before it is bound");
  CHECK(fault_of_check([](Program& program) {
          list(program, 0)[0].bindings[slot_saved] = no_binding;
        }) == "stage 0 i0 forward c0 mb0: binds no saved.c0");
}

TEST_CASE("A joint collective is reached once by each of its members") {
  // Collectives: two reductions, the tie, the norm.
  CHECK(fault_of_check([](Program& program) { program.collectives[3].classes = {0}; }) ==
        "stage 1 i11 norm 'gradient norm': is not one of its members");
  CHECK(fault_of_check([](Program& program) { drop(list(program, 1), 9); }) ==
        "collective 'tied embedding': stage 1 never calls it");
  CHECK(fault_of_check([](Program& program) {
          insert(list(program, 0), 9, Instruction{list(program, 0)[9]});
        }) == "stage 0 i10 tie 'tied embedding': is called a second time");
}

TEST_CASE("Members meet their collectives in one order") {
  CHECK(fault_of_check([](Program& program) {
          std::swap(list(program, 1)[9], list(program, 1)[11]);
          list(program, 1)[9].input = 6;
        }) ==
        "deadlock: stage 0 i9 tie 'tied embedding' waits for stage 1; stage 1 i9 norm 'gradient "
        "norm' waits for stage 0");
}

TEST_CASE("What an instruction awaits is made earlier, by the right kind of instruction") {
  CHECK(fault_of_check([](Program& program) { list(program, 1)[1].input = 4; }) ==
        "stage 1 i1 forward c1 mb0: awaits an instruction that is not earlier in its list");
  CHECK(fault_of_check([](Program& program) { list(program, 1)[5].input = 0; }) ==
        "stage 1 i5 forward c1 mb1: input is of another chunk or micro-batch");
  CHECK(fault_of_check([](Program& program) { list(program, 1)[5].input = no_token; }) ==
        "stage 1 i4 receive c1 mb1: no instruction uses what it receives");
  CHECK(fault_of_check([](Program& program) { list(program, 1)[6].input = 4; }) ==
        "stage 1 i6 backward c1 mb1: input was already consumed by stage 1 i5 forward c1 mb1");
  CHECK(fault_of_check([](Program& program) { list(program, 1)[7].input = 2; }) ==
        "stage 1 i7 send c1 mb1: sends the output of another chunk or micro-batch");
  CHECK(fault_of_check([](Program& program) { list(program, 1)[8].input = 7; }) ==
        "stage 1 i8 reduce_gradient 'gradients.c1': waits for an instruction that runs no phase");
}

TEST_CASE("Every gradient is reduced once, over the replicas, when it is complete") {
  CHECK(fault_of_check([](Program& program) { drop(list(program, 0), 8); }) ==
        "collective 'gradients.c0': stage 0 never calls it");
  CHECK(fault_of_check([](Program& program) {
          drop(list(program, 0), 8);
          program.collectives[0].classes.clear();
        }) == "stage 0: gradients of layer 0 are never reduced");
  CHECK(fault_of_check([](Program& program) {
          program.collectives.push_back(program.collectives[0]);
          Instruction again = list(program, 0)[8];
          again.target = static_cast<std::uint32_t>(program.collectives.size() - 1);
          insert(list(program, 0), 9, again);
        }) == "stage 0 i9 reduce_gradient 'gradients.c0': layer 0 is reduced twice");
  CHECK(fault_of_check([](Program& program) {
          std::swap(list(program, 0)[7], list(program, 0)[8]);
          list(program, 0)[7].input = 5;
          list(program, 0)[9].input = 8;
        }) ==
        "stage 0 i7 reduce_gradient 'gradients.c0': layer 0 gets another gradient at stage 0 i8 "
        "backward c0 mb1");
  CHECK(
      fault_of_check([](Program& program) { program.collectives[0].communicator = model_group; }) ==
      "stage 0 i8 reduce_gradient 'gradients.c0': communicator model does not span data-parallel "
      "replicas");
  // Stage 0: tables (16 + 8) 8 = 192; two layers of 192 + 24 + 64 + 8 + 256 + 32 + 256 + 8 and two
  // norms of 16: 872 each. 1936 parameters in fp32.
  CHECK(fault_of_check([](Program& program) { program.collectives[0].bytes = Bytes{7740}; }) ==
        "stage 0 i8 reduce_gradient 'gradients.c0': 7740 bytes for 1936 gradients, which have "
        "7744");
}

TEST_CASE("Each chunk runs forward once, then backward once") {
  CHECK(fault_of_check([](Program& program) { list(program, 0)[2].micro_batch = 0; }) ==
        "stage 0 i2 forward c0 mb0: runs forward a second time");
  CHECK(fault_of_check([](Program& program) { list(program, 0)[7].micro_batch = 0; }) ==
        "stage 0 i7 backward c0 mb0: runs backward a second time");
  CHECK(fault_of_check([](Program& program) {
          std::swap(list(program, 1)[1], list(program, 1)[2]);
        }) == "stage 1 i1 backward c1 mb0: runs backward before forward");
  CHECK(fault_of_check([](Program& program) { drop(list(program, 1), 6); }) ==
        "stage 1: c1 mb1 never runs all of backward");
  CHECK(fault_of_check([](Program& program) { list(program, 1)[1].target = forward_phase(0); }) ==
        "stage 1 i1 forward c1 mb0: runs another chunk's phase");
  CHECK(fault_of_check([](Program& program) { list(program, 1)[1].micro_batch = 2; }) ==
        "stage 1 i1 forward c1 mb2: there is no such micro-batch");
}

TEST_CASE("Chunks cover the model's layers") {
  CHECK(fault_of_check([](Program& program) {
          program.phases[forward_phase(1)].invocations.front().first_layer = 3;
        }) == "c1 begins at layer 3, the chunk before ends at 2");
  CHECK(fault_of_check([](Program& program) { program.kind_of_layer.resize(5); }) ==
        "the chunks run 4 layers, the model has 5");
}

TEST_CASE("Targets exist and chunks are at home") {
  CHECK(fault_of_check([](Program& program) { list(program, 0)[1].target = 99; }) ==
        "stage 0 i1 send c0 mb0: there is no target 99");
  CHECK(fault_of_check([](Program& program) { list(program, 0)[0].chunk = 1; }) ==
        "stage 0 i0 forward c1 mb0: the chunk is not of this stage");
  CHECK(fault_of_check([](Program& program) { program.phases[0].invocations[0].block = 77; }) ==
        "phase forward.c0 runs block 77, there are " +
            std::to_string(two_stage_program().blocks.size()));
}

TEST_CASE("Stages that wait for each other are named in a circle") {
  // Stage 0 wants the gradient of micro-batch 0 before it has sent its activation.
  CHECK(fault_of_check([](Program& program) {
          Instruction send = list(program, 0)[1];
          drop(list(program, 0), 1);  // FWD0 FWD1 SEND1 RECV ...
          insert(list(program, 0), 4, send);
          // ... and so that only the order is wrong, micro-batch 1 goes out after micro-batch 0.
          Instruction late = list(program, 0)[2];
          drop(list(program, 0), 2);
          insert(list(program, 0), 4, late);
          list(program, 0)[1].bindings[slot_out] = 1;
          list(program, 0)[4].bindings[slot_out] = 1;
        }) ==
        "deadlock: stage 0 i2 receive c0 mb0 waits for stage 1; stage 1 i0 "
        "receive c1 mb0 waits for stage 0");
}

TEST_CASE("A block's operations wait for earlier ones and read what is written") {
  CHECK(fault_of_check([](Program& program) {
          program.blocks[layer_forward].operations[1].after.push_back(1);
        }) == "block layer.forward operation qkv waits for operation 1, which is not earlier");
  CHECK(fault_of_check([](Program& program) {
          Block& block = program.blocks[layer_forward];
          std::swap(block.operations[2], block.operations[3]);
          for (Operation& op : block.operations) op.after.clear();
        }) == "block layer.forward operation softmax reads scores before it is written");
  CHECK(fault_of_check([](Program& program) {
          program.blocks[layer_forward].operations[0].reads[0] = 999;
        }) == "block layer.forward operation norm1 uses operand 999, there are " +
                  std::to_string(two_stage_program().blocks[layer_forward].operands.size()));
}

TEST_CASE("Backward finds saved what forward has kept, in its shape") {
  const auto saved = [](Program& program) -> Operand& {
    Block& forward = program.blocks[layer_forward];
    return forward.operands[*forward.find("norm2.out")];
  };
  CHECK(fault_of_check([&](Program& program) { saved(program).role = Role::temporary; }) ==
        "block layer.backward: saved norm2.out is not saved by layer.forward");
  CHECK(fault_of_check([&](Program& program) { saved(program).name = "else"; }) ==
        "block layer.backward: saved norm2.out is unknown to layer.forward");
  CHECK(fault_of_check([&](Program& program) { saved(program).shape[1] = 4; }) ==
        "block layer.backward: saved norm2.out has another shape in layer.forward");
}

/// Two stages, two micro-batches, ZB-H1.
///   stage 0  FWD0 SEND FWD1 SEND RECV BWD0 WGRAD0 RECV BWD1 WGRAD1 SUM OPT NORM OPT
///   stage 1  RECV FWD0 BWD0 SEND RECV FWD1 BWD1 SEND WGRAD0 WGRAD1 SUM OPT NORM OPT
TEST_CASE("Weight gradients that are missing, early, twice or of another micro-batch are refused") {
  Plan plan;
  plan.pipeline = 2;
  plan.batch.global = 2;
  plan.stages.schedule = "zb-h1";
  const Program program = tiny_program(plan, 4);
  const auto planted = [&](auto plant) {
    Program broken = program;
    plant(broken);
    return refusal([&] { check(broken); });
  };
  CHECK(planted([](Program&) {}) == "nothing was refused");
  REQUIRE(program.classes[1].instructions[8].op == Opcode::weight_gradient);
  CHECK(planted([](Program& p) { drop(list(p, 1), 9); }) ==
        "stage 1: c1 mb1 never runs all weight gradients");
  CHECK(planted([](Program& p) { std::swap(list(p, 1)[2], list(p, 1)[8]); }) ==
        "stage 1 i2 weight_gradient c1 mb0: runs weight gradients before backward");
  CHECK(planted([](Program& p) { list(p, 1)[9] = list(p, 1)[8]; }) ==
        "stage 1 i9 weight_gradient c1 mb0: runs weight gradients a second time");
  CHECK(planted([](Program& p) {
          list(p, 1)[8].bindings[slot_saved] = list(p, 1)[9].bindings[slot_saved];
        }) == "stage 1 i8 weight_gradient c1 mb0: kept.c1[1] is held by mb1");
  // The optimizer with a gradient short: a stale weight in the next step.
  CHECK(planted([](Program& p) {
          const Instruction late = list(p, 1)[9];
          list(p, 1).erase(list(p, 1).begin() + 9);
          list(p, 1).push_back(late);
        }) ==
        "stage 1 i13 weight_gradient c1 mb1: runs after the optimizer, which reads all "
        "gradients");
}

}  // namespace orrery::models

#include <catch2/catch.hpp>

#include <algorithm>

#include "models/evaluation/events.hpp"
#include "models/prediction/prediction.hpp"
#include "models/program/memory.hpp"
#include "tests/models/evaluation/operations.hpp"
#include "tests/models/lowering/outline.hpp"
#include "tests/models/questions.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery::models {
namespace {

/// The tiny model with embedding and head apart, on four replicas.
///   embedding 16 x 8 and 8 positions: 192; a layer: 872; head 16 x 8 and a final norm: 144
Program sharded(Zero zero, std::int64_t layers, std::int64_t micro_batches, bool tied = false,
                bool overlap = true) {
  Plan plan;
  plan.sharding.zero = zero;
  plan.data = 4;
  plan.batch.global = 4 * micro_batches;
  plan.batch.seq_len = 8;
  plan.sharding.bucket = Bytes{1};  // one for each layer and end
  plan.overlap.gradients = overlap;
  Model model = tiny_gpt(layers);
  model.embedding.tied = tied;
  return lower(BlockInputs{model, plan, plain_software()});
}

Bytes bytes_held(const Program& program, const std::string& name) {
  for (const PersistentBuffer& each : program.classes[0].persistent) {
    if (each.name == name) return each.bytes;
  }
  return Bytes{};
}

/// Prices: 1 s for a gather and for a layer's forward, 2 s for its backward, nothing else.
Time step_of_seconds(const Program& program) {
  PricedProgram priced;
  priced.program = &program;
  for (const Block& block : program.blocks) {
    std::vector<PricedOperation>& prices = priced.blocks.emplace_back(block.operations.size());
    for (std::size_t i = 0; i < prices.size(); ++i) {
      if (block.operations[i].name == "qkv") prices[i].duration = 1_s;
      if (block.operations[i].name == "qkv.dgrad") prices[i].duration = 2_s;
    }
  }
  for (const JointCollective& each : program.collectives) {
    priced.collectives.push_back({{}, each.kind == Collective::all_gather ? 1_s : Time{}});
  }
  return evaluate_operations(priced).step;
}

template <class Plant>
std::string fault(Plant plant) {
  Program program = sharded(Zero::three, 1, 1);
  plant(program.classes[0].instructions);
  return refusal([&] { check(program); });
}

}  // namespace

TEST_CASE("ZeRO-2 reduces after every backward and a part awaits the bucket that it fills") {
  // Head, layer and embedding take turns in two buckets, and in one without overlap.
  CHECK(outline(sharded(Zero::two, 1, 2)) == "F B R B R B<2 R F B<4 R B<6 R B<9 R O N O G");
  CHECK(outline(sharded(Zero::two, 1, 2, false, false)) ==
        "F B R B<2 R B<4 R F B<6 R B<9 R B<11 R O N O G");
}

TEST_CASE("A tied head adds to the embedding's bucket, which no other gradient shares") {
  // In turn: the final norm (i2), the layer (i4), the norm again; it waits for the embedding (i6).
  const Program program = sharded(Zero::two, 1, 2, true);
  CHECK(outline(program) == "F B R B R B R F B<6 R B<4 R B<6 R O N O G");
  CHECK(bytes_held(program, "bucket0").count() == 4 * 872);
  CHECK(bytes_held(program, "bucket.embedding").count() == 4 * 192);
}

TEST_CASE("ZeRO-2 reduces unit by unit where neither plan nor software states a bucket") {
  // 192 + 872 + 144 gradients are kept in quarters, two buckets hold a layer's 872 in four bytes.
  Plan plan;
  plan.sharding.zero = Zero::two;
  plan.data = 4;
  plan.batch.global = 4;
  plan.batch.seq_len = 8;
  Model model = tiny_gpt(1);
  model.embedding.tied = false;
  const Program program = lower(BlockInputs{model, plan, plain_software()});
  CHECK(outline(program) == outline(sharded(Zero::two, 1, 1)));
  CHECK(bytes_held(program, "gradients").count() == 4 * (192 + 872 + 144) / 4);
  CHECK(bytes_held(program, "bucket0").count() == 4 * 872);
}

TEST_CASE("ZeRO-3 gathers each unit one ahead of its run and frees it after") {
  CHECK(outline(sharded(Zero::three, 1, 1)) ==
        "U U F<0* U F<1* F<3 U B<3* R U B<6* R B<9* R O N O");
  // What runs twice in a row is gathered once: the head, and the embedding between micro-batches.
  CHECK(outline(sharded(Zero::three, 1, 2, false, false)) ==
        "U F<0* U F<2* U F<4 B<4* R U B<8* R U B<11 R "
        "F<11* U F<15* U F<17 B<17* R U B<21* R U B<24* R O N O");
}

TEST_CASE("A tied embedding and head are one unit, gathered once for the whole step") {
  CHECK(outline(sharded(Zero::three, 1, 2, true)) ==
        "U U F<0 F<1* F<0 U B<0 B<5* R B<0 R "
        "U F<0 F<11* F<0 U B<0 B<15* R B<0* R O N O");
}

TEST_CASE("Gathers and reductions carry a unit's weights and gradients") {
  // bf16 gathered, fp32 reduced; the piece of 218 is read and added (3 x 4 bytes each) and the
  // bucket of 872 cleared.
  const Program program = sharded(Zero::three, 1, 1);
  const std::vector<std::int64_t> gathered{2 * 192, 2 * 872, 2 * 144, 2 * 872, 2 * 192};
  std::vector<std::int64_t> found;
  for (const std::size_t i : {0, 1, 3, 6, 9}) {
    CHECK(joint_at(program, i).kind == Collective::all_gather);
    found.push_back(joint_at(program, i).bytes.count());
  }
  CHECK(found == gathered);
  const JointCollective& layer = joint_at(program, 11);
  CHECK(layer.kind == Collective::reduce_scatter);
  CHECK(layer.bytes.count() == 4 * 872);
  CHECK(layer.accumulate_traffic.count() == 4 * (3 * 218 + 872));
  CHECK(joint_at(program, 1).name == "layer 0");
  CHECK(program.holds(joint_at(program, 0), ModelPart::embedding));
  CHECK_FALSE(program.holds(joint_at(program, 0), ModelPart::head));
}

TEST_CASE("A rank holds its shards, two buckets and the weights of two units") {
  // 1208 parameters; pieces of 48, 218 and 36: 302.
  const Program three = sharded(Zero::three, 1, 1);
  CHECK(three.classes[0].parameters == 1208);
  CHECK(three.classes[0].owned == 302);
  CHECK(bytes_held(three, "parameters").count() == 2 * 302);
  CHECK(bytes_held(three, "gradients").count() == 4 * 302);
  CHECK(bytes_held(three, "optimizer").count() == 12 * 302);
  CHECK(bytes_held(three, "bucket0").count() == 4 * 872);
  CHECK(bytes_held(three, "bucket1").count() == 4 * 872);
  const Program two = sharded(Zero::two, 1, 1);
  CHECK(bytes_held(two, "parameters").count() == 2 * 1208);
  CHECK(bytes_held(two, "gradients").count() == 4 * 302);
  CHECK(bytes_held(sharded(Zero::two, 1, 1, false, false), "bucket1").count() == 0);
  // Of eight layers two are whole at once; their pieces and those of the ends make up the rest.
  const Program deep = sharded(Zero::three, 8, 1);
  CHECK(memory_peaks(deep)[0].by_kind[static_cast<std::size_t>(BufferKind::parameter)].count() ==
        2 * (48 + 8 * 218 + 36) + 2 * 2 * 872);
}

TEST_CASE("A run waits for its own gather and not for the one ahead") {
  // Ahead: embedding 0-1, layer 1-2, head 2-3 next to the layer's forward; layer 3-4, its backward
  // 4-6 next to the embedding's gather. Otherwise all in turn: 5 gathers, 1 + 2 s of work.
  CHECK(step_of_seconds(sharded(Zero::three, 1, 1)) == 6_s);
  CHECK(step_of_seconds(sharded(Zero::three, 1, 1, false, false)) == 8_s);
}

TEST_CASE("Whatever is sharded passes the checks") {
  for (const Zero zero : {Zero::two, Zero::three}) {
    for (const bool tied : {false, true}) {
      for (const bool overlap : {false, true}) {
        for (const std::int64_t layers : {1, 2, 5}) {
          CHECK_NOTHROW(check(sharded(zero, layers, 3, tied, overlap)));
        }
      }
    }
  }
}

TEST_CASE("A layer that runs without its gathered weights is found") {
  CHECK(fault([](auto& list) { list[4].awaits = no_token; }) ==
        "stage 0 i4 forward c0 mb0: layer 0 runs without its weights");
  CHECK(fault([](auto& list) { list[4].awaits = list[2].awaits; }) ==
        "stage 0 i4 forward c0 mb0: layer 0 runs without its weights");
  CHECK(fault([](auto& list) { list[7].awaits = list[4].awaits; }) ==
        "stage 0 i7 backward c0 mb0: head.backward runs without its weights");
  CHECK(fault([](auto& list) { std::swap(list[6], list[10]); }) ==
        "stage 0 i6 backward c0 mb0: awaits a collective that is not earlier in its list");
  CHECK(fault([](auto& list) { list[2].awaits = 9; }) ==
        "stage 0 i2 forward c0 mb0: awaits a collective that is not earlier in its list");
}

TEST_CASE("Gathered weights are freed exactly once") {
  CHECK(fault([](auto& list) { list[7].frees = list[7].frees & ~bit(slot_weights); }) ==
        "stage 0 i3 unshard 'head': binds weights.head[0], which is never freed");
  CHECK(fault([](auto& list) { list[5].frees |= bit(slot_weights); }) ==
        "stage 0 i7 backward c0 mb0: head.backward runs without its weights");
  CHECK(fault([](auto& list) { list[6].bindings[slot_filled] = no_binding; }) ==
        "stage 0 i6 unshard 'layer 0': fills no buffer");
  Program deep = sharded(Zero::three, 2, 1);
  deep.classes[0].instructions[3].bindings[slot_filled] = 0;
  CHECK(refusal([&] { check(deep); }) ==
        "stage 0 i3 unshard 'layer 1': weights.layer[0] still holds 'layer 0'");
}

TEST_CASE("Every micro-batch's gradients are reduced") {
  // The first bucket: the head's 8 x 16 and its norm's 16 gradients, in fp32.
  Program program = sharded(Zero::two, 1, 2);
  program.collectives[0].bytes = Bytes{4};
  CHECK(refusal([&] { check(program); }) ==
        "stage 0 i2 reduce_gradient 'gradients.c0.0': 4 bytes for 144 gradients, which have 576");
}

TEST_CASE("Weights that are not resharded are gathered once for forward and backward") {
  Plan plan;
  plan.sharding.zero = Zero::three;
  plan.data = 4;
  plan.batch.global = 8;
  plan.batch.seq_len = 8;
  plan.sharding.reshard = false;
  Model model = tiny_gpt(3);
  model.embedding.tied = false;
  const Program program = lower(BlockInputs{model, plan, plain_software()});
  CHECK_NOTHROW(check(program));
  // Three layers, the embedding twice and the head once, for each of two micro-batches; the
  // embedding once less, as backward leaves it to the next forward.
  const auto& list = program.classes[0].instructions;
  CHECK(std::count_if(list.begin(), list.end(), [](const Instruction& each) {
          return each.op == Opcode::unshard;
        }) == 2 * (3 + 2 + 1) - 1);
  // All layers are whole at once when the head's weights are freed.
  CHECK(memory_peaks(program)[0].by_kind[static_cast<std::size_t>(BufferKind::parameter)].count() ==
        2 * (48 + 3 * 218 + 36) + 2 * 3 * 872);
}

TEST_CASE("As many units are whole at once as are gathered ahead, and the one that runs") {
  Plan plan;
  plan.sharding.zero = Zero::three;
  plan.data = 4;
  plan.batch.global = 4;
  plan.batch.seq_len = 8;
  plan.sharding.bucket = Bytes{1};
  Model model = tiny_gpt(8);
  model.embedding.tied = false;
  for (const std::int64_t ahead : {0, 1, 3}) {
    plan.sharding.prefetch = ahead;
    const Program program = lower(BlockInputs{model, plan, plain_software()});
    CHECK_NOTHROW(check(program));
    CHECK(
        memory_peaks(program)[0].by_kind[static_cast<std::size_t>(BufferKind::parameter)].count() ==
        2 * (48 + 8 * 218 + 36) + 2 * (1 + ahead) * 872);
  }
}

TEST_CASE("State in shards with copies: memory, and reductions inside a copy and between copies") {
  // 1208 parameters on 4 replicas, in shards of 2: 96, 436 and 72. bf16 weights, fp32 sums, and 12
  // bytes of state for each.
  Plan plan;
  plan.sharding.zero = Zero::three;
  plan.data = 4;
  plan.sharding.ranks = 2;
  plan.batch.global = 4;
  plan.batch.seq_len = 8;
  Model model = tiny_gpt(1);
  model.embedding.tied = false;
  const Program program = lower(BlockInputs{model, plan, plain_software()});
  CHECK_NOTHROW(check(program));
  CHECK(program.classes[0].owned == 96 + 436 + 72);
  CHECK(bytes_held(program, "parameters").count() == 2 * 604);
  CHECK(bytes_held(program, "gradients").count() == 4 * 604);
  CHECK(bytes_held(program, "optimizer").count() == 12 * 604);
  std::vector<std::int64_t> inside, between;
  for (const JointCollective& each : program.collectives) {
    const AxisSet over = program.communicators[each.communicator].axes;
    if (over == MeshAxis::data && each.kind == Collective::reduce_scatter) {
      inside.push_back(each.bytes.count());
    }
    if (over == MeshAxis::replica) {
      CHECK(each.kind == Collective::all_reduce);
      between.push_back(each.bytes.count());
    }
  }
  CHECK(inside == std::vector<std::int64_t>{4 * 144, 4 * 872, 4 * 192});
  CHECK(between == std::vector<std::int64_t>{4 * 72, 4 * 436, 4 * 96});
}

TEST_CASE("A pipeline's gradients are whole until the last micro-batch, and reduced once") {
  for (const Zero zero : {Zero::two, Zero::three}) {
    Plan plan;
    plan.sharding.zero = zero;
    plan.data = plan.pipeline = 2;
    plan.batch.global = 16;
    plan.batch.seq_len = 8;
    Model model = tiny_gpt(4);
    model.embedding.tied = false;
    const Program program = lower(BlockInputs{model, plan, plain_software()});
    const RankClass& last = program.classes[1];
    std::int64_t reduced = 0;
    for (const Instruction& each : last.instructions) {
      if (each.op != Opcode::reduce_gradient) continue;
      if (zero == Zero::three) CHECK(each.micro_batch == 7);  // a bucket of ZeRO-2 names none
      reduced += program.collectives[each.target].elements;
    }
    CHECK(reduced == last.parameters);
    for (const PersistentBuffer& each : last.persistent) {
      if (each.name == "gradients") CHECK(each.bytes.count() == 4 * last.parameters);
    }
  }
}

TEST_CASE("What the host keeps is no device memory, and comes and goes over its link") {
  Plan plan;
  plan.sharding.zero = Zero::three;
  plan.data = 4;
  plan.batch.global = 4;
  plan.batch.seq_len = 8;
  plan.offload.state = Offload::parameters;
  Model model = tiny_gpt(1);
  model.embedding.tied = false;
  const Program program = lower(BlockInputs{model, plan, plain_software()});
  CHECK_NOTHROW(check(program));
  CHECK(bytes_held(program, "parameters").count() == 0);
  CHECK(bytes_held(program, "optimizer").count() == 0);
  CHECK(bytes_held(program, "gradients").count() == 4 * 302);
  // A layer's 872 parameters in 4 pieces of 218, each of 2 bytes.
  CHECK(joint_at(program, 1).from_host.count() == 2 * 218);
  // Gradients of 4 bytes there, weights of 2 back.
  std::vector<std::int64_t> copied;
  for (const Operation& op : program.blocks.back().operations) {
    if (op.kind == OpKind::copy) copied.push_back(op.bytes.count());
  }
  CHECK(copied == std::vector<std::int64_t>{4 * 302, 2 * 302});
}

TEST_CASE("What lies in files is read before the host's Adam and written after it") {
  Plan plan;
  plan.sharding.zero = Zero::three;
  plan.data = 4;
  plan.batch.global = 4;
  plan.batch.seq_len = 8;
  plan.offload.state = Offload::parameters;
  plan.offload.device = OffloadDevice::nvme;
  Model model = tiny_gpt(1);
  model.embedding.tied = false;
  const Program program = lower(BlockInputs{model, plan, plain_software()});
  CHECK_NOTHROW(check(program));
  CHECK(program.sharding.in_files);
  CHECK(bytes_held(program, "parameters").count() == 0);
  // 302 parameters: master weights and moments of 4 bytes there and back, 2 bytes of new weights.
  std::vector<std::int64_t> read, written;
  for (const Operation& op : program.blocks.back().operations) {
    if (op.files() == FileUse::read) read.push_back(op.bytes.count());
    if (op.files() == FileUse::write) written.push_back(op.bytes.count());
    if (op.files() != FileUse::none) CHECK(op.queue == Lane::host);
  }
  CHECK(read == std::vector<std::int64_t>{12 * 302});
  CHECK(written == std::vector<std::int64_t>{12 * 302, 2 * 302});
}

TEST_CASE(
    "A node's ranks share its drives, and pieces go as fast as the slower of drives and link") {
  const auto priced = [](const std::string& plan, double read, double write) {
    Question asked = question("llama3-8b", "dgx-h100 x 1",
                              "data=8,zero=3,seq_len=4096,global_batch=8," + plan, "deepspeed");
    asked.cluster.storage = {Bandwidth{read}, Bandwidth{write}, {}};
    return predict(asked);
  };
  const auto time_of = [](const Prediction& found, std::string_view name) {
    const Program& program = *found.program;
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      for (std::size_t i = 0; i < program.blocks[b].operations.size(); ++i) {
        if (program.blocks[b].operations[i].name == name) return found.priced.blocks[b][i].duration;
      }
    }
    return Time{};
  };
  const std::string offload = "offload=parameters,offload_device=nvme";
  const Prediction slow = priced(offload, 25e9, 20e9);
  // 8,030,261,248 parameters at 12 bytes, over 8 ranks that share the drives: as of one.
  const auto owned = static_cast<double>(slow.program->classes[0].owned);
  CHECK(seconds(time_of(slow, "state.from_files")) == Approx(8 * 12 * owned / 25e9));
  CHECK(seconds(time_of(slow, "state.to_files")) == Approx(8 * 12 * owned / 20e9));
  CHECK(seconds(time_of(slow, "parameters.to_files")) == Approx(8 * 2 * owned / 20e9));
  CHECK(priced(offload, 50e9, 20e9).step < slow.step);
  CHECK(priced(offload, 25e9, 40e9).step < slow.step);
  // Drives beyond the link's rate are no faster than the host's memory.
  const std::string layers = "offload_layers=4,offload_device=nvme";
  CHECK(priced(layers, 1e15, 1e15).step == priced("offload_layers=4", 1, 1).step);
  CHECK(priced(layers, 1e9, 1e9).step > priced(layers, 1e15, 1e15).step);
}

TEST_CASE("Sharded gradients and weights need no case of their own in a pipeline") {
  for (const Zero zero : {Zero::two, Zero::three}) {
    for (const char* schedule : {"gpipe", "1f1b", "interleaved-1f1b"}) {
      for (const bool overlap : {true, false}) {
        Plan plan;
        plan.sharding.zero = zero;
        plan.data = plan.pipeline = 2;
        plan.stages.schedule = schedule;
        plan.stages.virtual_stages = plan.stages.schedule == "interleaved-1f1b" ? 2 : 1;
        plan.batch.global = 16;
        plan.batch.seq_len = 8;
        plan.sharding.bucket = Bytes{1};
        plan.overlap.gradients = overlap;
        Model model = tiny_gpt(4);
        model.embedding.tied = false;
        CAPTURE(schedule, overlap, zero == Zero::three);
        CHECK_NOTHROW(check(lower(BlockInputs{model, plan, plain_software()})));
        plan.sharding.prefetch = zero == Zero::three ? 3 : 1;
        CHECK_NOTHROW(check(lower(BlockInputs{model, plan, plain_software()})));
        plan.sharding.reshard = zero != Zero::three;
        plan.sharding.ranks = 1;
        plan.context = 2;
        Software fused = plain_software();
        fused.kernels.attention["default"] = "flash-2";
        CHECK_NOTHROW(check(lower(BlockInputs{model, plan, fused})));
      }
    }
  }
}

}  // namespace orrery::models

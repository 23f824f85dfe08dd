#include <algorithm>
#include <catch2/catch.hpp>

#include "models/program/memory.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

struct Lowered {
  Model model;
  Plan plan;
  Software software;

  BlockInputs inputs() const { return {model, plan, software, "other"}; }
};

/// GPT-3 175B in fp16 with dropout and unfused attention, as in Korthikanti et al. 2022.
///   s = 2048, b = 1, h = 12288, a = 96
Lowered gpt3(std::int64_t tensor, bool sequence_parallel, Recompute recompute) {
  Lowered made{catalogue_model("gpt3-175b"), {}, plain_software()};
  made.software.kernels.dropout = true;
  made.plan.batch.seq_len = 2048;
  made.plan.tensor = tensor;
  made.plan.sequence_parallel = sequence_parallel;
  made.plan.recompute.kind = recompute;
  made.plan.formats.precision = Precision::fp16;
  return made;
}

Program recomputed(const Lowered& made) {
  return insert_recompute(schedule_slots(made.inputs()), made.plan);
}

std::int64_t saved_of_layer(const Lowered& made) {
  return recomputed(made).blocks[layer_backward].bytes(Role::saved).count();
}

constexpr std::int64_t sbh = std::int64_t{2048} * 12288;
constexpr std::int64_t ass = std::int64_t{96} * 2048 * 2048;

std::vector<std::string> names_of(const Block& block, Pass pass) {
  std::vector<std::string> names;
  for (const Operation& op : block.operations) {
    if (op.pass == pass) names.push_back(op.name);
  }
  return names;
}

std::size_t count(const Block& block, Collective kind, Bytes bytes) {
  std::size_t found = 0;
  for (const Operation& op : block.operations) {
    const bool same = op.kind == OpKind::collective && op.collective() == kind && op.bytes == bytes;
    found += same ? 1 : 0;
  }
  return found;
}

std::size_t collectives_in(const Block& block) {
  std::size_t found = 0;
  for (const Operation& op : block.operations) found += op.kind == OpKind::collective ? 1 : 0;
  return found;
}

std::size_t count(const Program& program, Opcode op) {
  std::size_t found = 0;
  for (const RankClass& ranks : program.classes) {
    for (const Instruction& each : ranks.instructions) found += each.op == op ? 1 : 0;
  }
  return found;
}

const Operation& operation(const Block& block, const std::string& name) {
  for (const Operation& op : block.operations) {
    if (op.name == name) return op;
  }
  throw ContractError{"no operation " + name};
}

Plan pipeline_of(std::int64_t stages, std::int64_t micro_batches,
                 const std::string& schedule = "1f1b", std::int64_t virtual_stages = 1) {
  Plan plan;
  plan.pipeline = stages;
  plan.stages.virtual_stages = virtual_stages;
  plan.batch.global = micro_batches;
  plan.stages.schedule = schedule;
  return plan;
}

/// How many buffers of a chunk's saved activations a stage holds at most.
std::uint32_t saved_buffers(const Program& program, std::size_t stage) {
  std::uint32_t most = 0;
  for (const Instruction& each : program.classes[stage].instructions) {
    if (each.op == Opcode::forward) most = std::max(most, each.bindings[slot_saved] + 1);
  }
  return most;
}

}  // namespace

TEST_CASE("A layer keeps the activations that Korthikanti et al. 2022 count") {
  // arXiv 2205.05198, table 2, bytes per layer in 16 bits:
  //   none                  s b h (34 + 5 a s / h)
  //   tensor t              s b h (10 + 24 / t + 5 a s / (h t))
  //   tensor and sequence   s b h (34 / t + 5 a s / (h t))
  CHECK(saved_of_layer(gpt3(1, false, Recompute::none)) == 34 * sbh + 5 * ass);
  CHECK(saved_of_layer(gpt3(8, false, Recompute::none)) == 10 * sbh + (24 * sbh + 5 * ass) / 8);
  CHECK(saved_of_layer(gpt3(8, true, Recompute::none)) == (34 * sbh + 5 * ass) / 8);
  Lowered four = gpt3(8, true, Recompute::none);
  four.plan.batch.micro = 4;
  CHECK(saved_of_layer(four) == 4 * (34 * sbh + 5 * ass) / 8);
}

TEST_CASE("Selective recomputation keeps all but the attention's square") {
  CHECK(saved_of_layer(gpt3(1, false, Recompute::selective)) == 34 * sbh);
  CHECK(saved_of_layer(gpt3(8, false, Recompute::selective)) == 10 * sbh + 24 * sbh / 8);
  CHECK(saved_of_layer(gpt3(8, true, Recompute::selective)) == 34 * sbh / 8);
  const Program program = recomputed(gpt3(1, false, Recompute::selective));
  CHECK(names_of(program.blocks[layer_backward], Pass::recompute) ==
        std::vector<std::string>{"scores.again", "softmax.again", "attention.dropout.again",
                                 "context.again"});
}

TEST_CASE("Full recomputation keeps a layer's input and runs its forward again") {
  CHECK(saved_of_layer(gpt3(1, false, Recompute::full)) == 2 * sbh);
  CHECK(saved_of_layer(gpt3(8, true, Recompute::full)) == 2 * sbh / 8);
  const Program program = recomputed(gpt3(1, false, Recompute::full));
  Flops again{};
  for (const Operation& op : program.blocks[layer_backward].operations) {
    if (op.pass == Pass::recompute) again += op.flops;
  }
  CHECK(again == program.blocks[layer_forward].flops());
  CHECK(names_of(program.blocks[layer_backward], Pass::recompute).size() ==
        program.blocks[layer_forward].operations.size());
  CHECK(program.blocks[layer_forward].bytes(Role::saved).count() == 0);
}

TEST_CASE("Without recomputation nothing runs twice") {
  const Program program = recomputed(gpt3(1, false, Recompute::none));
  CHECK(names_of(program.blocks[layer_backward], Pass::recompute).empty());
}

TEST_CASE("Recomputation begins when the gradient arrives, not before") {
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    const Program program = recomputed(gpt3(1, false, recompute));
    CHECK(program.blocks[layer_backward].operations[0].after == std::vector<OpId>{block_input});
  }
}

TEST_CASE("A tensor group sums twice per layer forward and twice backward") {
  // Each all-reduce carries [T, h] in fp16.
  const Bytes whole{2 * sbh};
  const Program program = insert_collectives(recomputed(gpt3(8, false, {})), true);
  for (const std::uint32_t block : {layer_forward, layer_backward}) {
    CHECK(collectives_in(program.blocks[block]) == 2);
    CHECK(count(program.blocks[block], Collective::all_reduce, whole) == 2);
  }
  // Embedding sums its rows; the loss gathers three fp32 per token of each; the head sums [T, h]
  // back.
  CHECK(count(program.blocks[embedding_forward], Collective::all_reduce, whole) == 1);
  CHECK(count(program.blocks[head_forward], Collective::all_gather, Bytes{8 * 12 * 2048}) == 1);
  CHECK(count(program.blocks[head_backward], Collective::all_reduce, whole) == 1);
  CHECK(collectives_in(program.blocks[embedding_backward]) == 0);
}

TEST_CASE("Shards of a loss keep everyone's statistics and not only their own") {
  const Program program = insert_collectives(recomputed(gpt3(8, false, {})), true);
  for (const std::uint32_t id : {head_forward, head_backward}) {
    const Block& block = program.blocks[id];
    const auto all = block.find("loss.statistics");
    REQUIRE(all);
    CHECK(block.operands[*all].role == Role::saved);
    CHECK(block.operands[*all].shape == std::array<std::int64_t, 3>{8, 2048, 3});
  }
  const Block& backward = program.blocks[head_backward];
  CHECK(operation(backward, "loss.backward").reads[2] == *backward.find("loss.statistics"));
}

TEST_CASE("With sequence parallelism the sums become scatters, and gathers bring whole rows") {
  // Forward gathers both norms' outputs; backward gathers two gradients and both inputs again.
  const Bytes whole{2 * sbh};
  const Program program = insert_collectives(recomputed(gpt3(8, true, {})), true);
  const Block& forward = program.blocks[layer_forward];
  CHECK(collectives_in(forward) == 4);
  CHECK(count(forward, Collective::all_gather, whole) == 2);
  CHECK(count(forward, Collective::reduce_scatter, whole) == 2);
  const Block& backward = program.blocks[layer_backward];
  CHECK(collectives_in(backward) == 6);
  CHECK(count(backward, Collective::all_gather, whole) == 4);
  CHECK(count(backward, Collective::reduce_scatter, whole) == 2);
  CHECK(count(program.blocks[embedding_forward], Collective::reduce_scatter, whole) == 1);
  CHECK(count(program.blocks[embedding_backward], Collective::all_gather, whole) == 1);
}

TEST_CASE("Recomputation gathers for itself, and backward gathers again") {
  const Program program = insert_collectives(recomputed(gpt3(8, true, Recompute::full)), true);
  CHECK(count(program.blocks[layer_backward], Collective::all_gather, Bytes{2 * sbh}) == 6);
  CHECK(count(program.blocks[layer_backward], Collective::reduce_scatter, Bytes{2 * sbh}) == 4);
}

TEST_CASE("A product that reads gathered rows moves them all, sequence parallel or not") {
  const Program sums = insert_collectives(recomputed(gpt3(8, false, {})), true);
  const Program scatters = insert_collectives(recomputed(gpt3(8, true, {})), true);
  for (const std::uint32_t block : {layer_forward, layer_backward}) {
    for (const Operation& op : sums.blocks[block].operations) {
      if (op.kind != OpKind::gemm) continue;
      CAPTURE(op.name);
      CHECK(operation(scatters.blocks[block], op.name).bytes == op.bytes);
    }
  }
}

TEST_CASE(
    "A weight gradient waits for the input gradient's sum only in stacks that do not overlap") {
  const auto waits = [](bool overlap) {
    const Program program = insert_collectives(recomputed(gpt3(8, false, {})), overlap);
    const Block& block = program.blocks[layer_backward];
    for (const OpId id : operation(block, "up.wgrad").after) {
      if (id != block_input && block.operations[id].name == "up.dgrad.sum") return true;
    }
    return false;
  };
  CHECK(waits(false));
  CHECK_FALSE(waits(true));
}

TEST_CASE("One rank alone has no tensor collectives") {
  const Program program = insert_collectives(recomputed(gpt3(1, false, {})), true);
  for (const Block& block : program.blocks) CHECK(collectives_in(block) == 0);
}

TEST_CASE("Every boundary between chunks is crossed twice per micro-batch") {
  // p v - 1 boundaries, m micro-batches, down and up.
  for (const auto& [stages, chunks] : {std::pair{4, 1}, std::pair{4, 2}, std::pair{2, 2}}) {
    const Program program =
        tiny_program(pipeline_of(stages, 8, chunks > 1 ? "interleaved-1f1b" : "1f1b", chunks), 8);
    const auto crossings = static_cast<std::size_t>(2 * 8 * (stages * chunks - 1));
    CHECK(count(program, Opcode::send) == crossings);
    CHECK(count(program, Opcode::receive) == crossings);
    // 8 tokens of 8 values in bf16.
    for (const Channel& each : program.channels) CHECK(each.bytes.count() == 128);
  }
  CHECK(count(tiny_program(pipeline_of(1, 8), 8), Opcode::send) == 0);
}

TEST_CASE("Sequence parallelism sends only the shard of each rank") {
  Plan plan = pipeline_of(2, 4);
  plan.tensor = 2;
  plan.sequence_parallel = true;
  for (const Channel& each : tiny_program(plan, 4).channels) CHECK(each.bytes.count() == 64);
}

TEST_CASE("Buckets close at the layer that fills them and stand after its backward") {
  // One bucket per block: stage 0 has two layers and the embedding, stage 1 the head and two.
  Plan plan = pipeline_of(2, 2);
  plan.data = 2;
  plan.batch.global = 4;
  plan.sharding.bucket = Bytes{1};
  const Program program = tiny_program(plan, 4);
  for (const RankClass& ranks : program.classes) {
    std::vector<std::string> units;
    Bytes sum{};
    for (std::size_t i = 0; i < ranks.instructions.size(); ++i) {
      if (ranks.instructions[i].op != Opcode::reduce_gradient) continue;
      const JointCollective& bucket = program.collectives[ranks.instructions[i].target];
      CHECK(ranks.instructions[i - 1].op == Opcode::backward);
      CHECK(bucket.kind == Collective::all_reduce);
      REQUIRE(bucket.units == 1);
      units.push_back(program.units[bucket.first_unit].name);
      sum += bucket.bytes;
    }
    CHECK(sum.count() == 4 * ranks.parameters);
    CHECK(units == (ranks.stage == 0 ? std::vector<std::string>{"layer 1", "layer 0", "embedding"}
                                     : std::vector<std::string>{"head", "layer 3", "layer 2"}));
  }
  plan.overlap.gradients = false;
  plan.sharding.bucket = Bytes{1 << 20};
  CHECK(count(tiny_program(plan, 4), Opcode::reduce_gradient) == 2);
  plan.data = 1;
  CHECK(count(tiny_program(plan, 4), Opcode::reduce_gradient) == 0);
}

TEST_CASE("ZeRO-1 scatters gradients, updates a shard and gathers parameters") {
  Plan plan = pipeline_of(1, 1);
  plan.data = 4;
  plan.batch.global = 4;
  plan.sharding.zero = Zero::one;
  const Program program = tiny_program(plan, 2);
  const RankClass& ranks = program.classes[0];
  // Tables 192, two layers of 872 and a final norm of 16: 1952 parameters, 488 on each replica.
  CHECK(ranks.parameters == 1952);
  const std::vector<Instruction>& list = ranks.instructions;
  const Instruction& gather = list.back();
  REQUIRE(gather.op == Opcode::gather);
  CHECK(program.collectives[gather.target].kind == Collective::all_gather);
  CHECK(program.collectives[gather.target].bytes.count() == 2 * 1952);
  const Phase& adam = program.phases[list[list.size() - 2].target];
  CHECK(program.blocks[adam.invocations[0].block].operands[1].elements() == 488);
  const JointCollective& norm = program.collectives[list[list.size() - 3].target];
  CHECK(program.communicators[norm.communicator].name == "world");
  // Held: bf16 weights, fp32 gradients, 12 bytes of master and moments of the shard.
  CHECK(ranks.persistent[0].bytes.count() == 2 * 1952);
  CHECK(ranks.persistent[1].bytes.count() == 4 * 1952);
  CHECK(ranks.persistent[2].bytes.count() == 12 * 488);
}

TEST_CASE("Only a tied model cut into stages sums its two embeddings") {
  const Program cut = tiny_program(pipeline_of(2, 2), 4);
  CHECK(count(cut, Opcode::sum_replicas) == 2);
  for (const JointCollective& each : cut.collectives) {
    if (each.name != "tied embedding") continue;
    CHECK(each.bytes.count() == 4 * 16 * 8);
    CHECK(each.classes == std::vector<std::uint32_t>{0, 1});
  }
  CHECK(count(tiny_program(pipeline_of(1, 2), 4), Opcode::sum_replicas) == 0);
}

TEST_CASE("Of a tied table each rank sums its piece, where gradients are already sharded") {
  // 16 x 8 numbers of 4 bytes; halves, where two replicas own one each.
  const auto summed = [](Zero zero) {
    Plan plan = pipeline_of(2, 4);
    plan.data = 2;
    plan.batch.global *= 2;
    plan.sharding.zero = zero;
    const Program program = tiny_program(plan, 4);
    const auto tie =
        std::ranges::find(program.collectives, "tied embedding", &JointCollective::name);
    REQUIRE(tie != program.collectives.end());
    return tie->bytes.count();
  };
  CHECK(summed(Zero::none) == 4 * 16 * 8);
  CHECK(summed(Zero::two) == 4 * 16 * 8);  // in a pipeline gradients are reduced once, at the end
  CHECK(summed(Zero::three) == 4 * 16 * 8 / 2);
}

TEST_CASE("1F1B keeps as many activations as there are stages from here on") {
  // min(p - stage, m)
  for (const std::int64_t micro_batches : {2, 4, 16}) {
    const Program program = tiny_program(pipeline_of(4, micro_batches), 4);
    for (std::size_t stage = 0; stage < 4; ++stage) {
      const auto alive =
          std::min<std::int64_t>(4 - static_cast<std::int64_t>(stage), micro_batches);
      CHECK(saved_buffers(program, stage) == alive);
      const Bytes each = program.classes[stage].types[0].bytes;
      const MemoryPeak peak = memory_peaks(program)[static_cast<std::uint32_t>(stage)];
      CHECK(peak.by_kind[static_cast<std::size_t>(BufferKind::activation)] == each * alive);
    }
  }
}

TEST_CASE("GPipe keeps every micro-batch, no pipelining one") {
  CHECK(saved_buffers(tiny_program(pipeline_of(4, 16, "gpipe"), 4), 0) == 16);
  CHECK(saved_buffers(tiny_program(pipeline_of(4, 16, "naive"), 4), 0) == 1);
}

TEST_CASE("Interleaving keeps its warm-up and one more") {
  // Stage 0 of 4 with 2 chunks: 2 (4 - 1) + 4 + 1 = 11 chunks' activations (equal layers each; the
  // first chunk has no norm or head next to its layer). Stage 3: 5, its second chunk with the head.
  const Program program = tiny_program(pipeline_of(4, 8, "interleaved-1f1b", 2), 8);
  const Bytes layer = program.blocks[layer_backward].bytes(Role::saved);
  const MemoryPeak first = memory_peaks(program)[0];
  CHECK(first.by_kind[static_cast<std::size_t>(BufferKind::activation)] == layer * 11);
  const Bytes head = program.blocks[head_backward].bytes(Role::saved);
  const MemoryPeak last = memory_peaks(program)[3];
  CHECK(last.by_kind[static_cast<std::size_t>(BufferKind::activation)] == layer * 5 + head);
}

TEST_CASE("Stages together hold the model, and a tied embedding's copy") {
  for (const char* name : {"gpt2", "llama3-8b", "bloom-176b"}) {
    for (const std::int64_t stages : {1, 2}) {
      CAPTURE(name, stages);
      Lowered made{catalogue_model(name), pipeline_of(stages, 2), plain_software()};
      made.plan.batch.seq_len = 128;
      std::int64_t sum = 0;
      for (const RankClass& each : lower(made.inputs()).classes) sum += each.parameters;
      const bool copied = made.model.embedding.tied && stages > 1;
      CHECK(sum ==
            made.model.parameters + (copied ? made.model.embedding.vocab * made.model.hidden : 0));
    }
  }
}

}  // namespace orrery::models

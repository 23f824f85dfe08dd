#include <algorithm>
#include <catch2/catch.hpp>

#include "models/evaluation/replay.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/program/opcodes.hpp"
#include "tests/models/ledger.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// A small model over 16 GPUs, cut in several ways.
std::vector<Question> several() {
  std::vector<Question> questions;
  for (const char* plan :
       {"tensor=1,pipeline=1,global_batch=32,seq_len=512",
        "tensor=1,pipeline=1,zero=1,global_batch=32,seq_len=512,bucket=25 MB",
        "tensor=1,pipeline=1,zero=2,micro_batch=1,global_batch=32,seq_len=512,bucket=25 MB",
        "tensor=2,pipeline=1,zero=3,sequence=true,global_batch=16,seq_len=512",
        "tensor=1,compression=fp16,global_batch=32,seq_len=512,bucket=25 MB",
        "tensor=2,pipeline=2,compression=top-k,global_batch=32,seq_len=512",
        "tensor=2,pipeline=2,compression=power-sgd,global_batch=32,seq_len=512",
        "tensor=2,pipeline=2,global_batch=32,seq_len=512",
        "tensor=4,pipeline=4,sequence=true,recompute=full,global_batch=16,seq_len=512",
        "tensor=2,pipeline=4,virtual_stages=3,recompute=selective,global_batch=32,seq_len=512"}) {
    questions.push_back(question("gpt2", "dgx-a100-80gb x 2", plan));
  }
  return questions;
}

Time part(const Prediction& prediction, TimeClass which) {
  return prediction.breakdown[static_cast<std::size_t>(which)];
}

/// What a replay of one class counts.
Ledger counted(const Prediction& prediction, std::uint32_t rank_class) {
  const Program& program = *prediction.program;
  Ledger sum;
  ReplayObserver observer;
  observer.operation = [&](const OperationRecord& record) {
    const Operation& op = program.blocks[record.block].operations[record.operation];
    sum.flops += op.flops;
    (op.kind == OpKind::collective ? sum.collective_bytes : sum.kernel_bytes) += op.bytes;
  };
  observer.instruction = [&](const InstructionRecord& record) {
    const Instruction& each = *record.instruction;
    if (each.op == Opcode::send) sum.transfer_bytes += program.channels[each.target].bytes;
    if (!is_joint(each)) return;
    sum.collective_bytes += program.collectives[each.target].bytes;
    sum.kernel_bytes += program.collectives[each.target].accumulate_traffic;
  };
  replay(prediction.priced, prediction.times, rank_class, observer);
  return sum;
}

/// Prices: 1 s for a layer's first forward operation, 2 s for its first backward one, a repeated
/// forward 1 s more; everything else takes no time.
Time step_of_repeats(const Program& program) {
  PricedProgram priced;
  priced.program = &program;
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    std::vector<PricedOperation> prices(block.operations.size());
    for (std::size_t i = 0; i < block.operations.size(); ++i) {
      const Operation& op = block.operations[i];
      if (op.name == "qkv" || op.name == "qkv.again") prices[i].duration = 1_s;
      if (op.name == "qkv.dgrad") prices[i].duration = 2_s;
    }
    priced.blocks.push_back(std::move(prices));
  }
  priced.channels.resize(program.channels.size());
  priced.collectives.resize(program.collectives.size());
  return evaluate_maps(priced).step;
}

Plan pipeline_with(std::int64_t stages, std::int64_t micro_batches, const std::string& schedule,
                   std::int64_t virtual_stages = 1) {
  Plan plan;
  plan.pipeline = stages;
  plan.stages.virtual_stages = virtual_stages;
  plan.batch.global = micro_batches;
  plan.stages.schedule = schedule;
  return plan;
}

}  // namespace

TEST_CASE("What the Program counts is what a replay runs, to the last FLOP and byte") {
  for (const Question& asked : several()) {
    const Prediction prediction = predict(asked);
    for (std::uint32_t c = 0; c < prediction.program->classes.size(); ++c) {
      const Ledger ledger = ledger_of(*prediction.program, c);
      CHECK(counted(prediction, c) == ledger);
      CHECK(ledger.flops.count() > 0);
    }
  }
}

TEST_CASE("Transfers that leave a stage's neighbours are those that the channels carry") {
  for (const Question& asked : several()) {
    const Prediction prediction = predict(asked);
    Bytes sent{}, carried{};
    for (std::uint32_t c = 0; c < prediction.program->classes.size(); ++c) {
      sent += ledger_of(*prediction.program, c).transfer_bytes;
    }
    for (std::size_t id = 0; id < prediction.program->channels.size(); ++id) {
      carried += prediction.program->channels[id].bytes *
                 static_cast<std::int64_t>(prediction.times.transfers[id].size());
    }
    CHECK(sent == carried);
  }
}

TEST_CASE("The parts of a step, and of its waterfall, add up to it exactly") {
  for (const Question& asked : several()) {
    const Prediction prediction = predict(asked);
    Time parts{}, steps{};
    for (const Time each : prediction.breakdown) parts += each;
    for (const WaterfallPart& each : prediction.waterfall) steps += each.time;
    CHECK(parts == prediction.step);
    CHECK(steps == prediction.step);
    for (const Time each : prediction.breakdown) CHECK(each >= Time{});
  }
}

TEST_CASE("One rank of an axis communicates nothing along it") {
  const Prediction data = predict(question("gpt2", "dgx-a100-80gb", "global_batch=32,seq_len=512"));
  CHECK(part(data, TimeClass::tp) == Time{});
  CHECK(part(data, TimeClass::pp) == Time{});
  CHECK(part(data, TimeClass::dp) > Time{});
  const Prediction tensor =
      predict(question("gpt2", "dgx-a100-80gb", "tensor=4,pipeline=2,global_batch=8,seq_len=512"));
  CHECK(part(tensor, TimeClass::dp) == Time{});
  CHECK(part(tensor, TimeClass::tp) > Time{});
}

TEST_CASE("Experts' all-to-alls are a part of the step of their own") {
  Question asked = question("qwen3-30b-a3b", "dgx-h100 x 2",
                            "expert=16,zero=1,micro_batch=1,global_batch=16,seq_len=4096", "nemo");
  const Prediction usual = predict(asked);
  CHECK(part(usual, TimeClass::ep) > Time{});
  CHECK(part(usual, TimeClass::other_comm) * 100 < part(usual, TimeClass::ep));  // the norm
  Time parts{};
  for (const Time each : usual.breakdown) parts += each;
  CHECK(parts == usual.step);
  const auto row =
      std::ranges::find(usual.waterfall, "expert-parallel communication", &WaterfallPart::name);
  REQUIRE(row != usual.waterfall.end());
  CHECK(row->time == part(usual, TimeClass::ep));
  // 16 ranks on a network of a hundredth: the all-to-alls decide.
  asked.cluster.fabric.bandwidth = asked.cluster.nic_bandwidth() * 0.01;
  CHECK(predict(asked).bottleneck() == TimeClass::ep);
}

TEST_CASE("A faster network never slows a plan without a pipeline") {
  for (const char* plan : {"global_batch=64,seq_len=512", "zero=1,global_batch=64,seq_len=512",
                           "tensor=8,global_batch=64,seq_len=512"}) {
    Question asked = question("gpt2-medium", "dgx-a100-80gb x 4", plan);
    Time before = predict(asked).step;
    for (int i = 0; i < 4; ++i) {
      asked.cluster.fabric.bandwidth = asked.cluster.nic_bandwidth() * 2.0;
      const Time after = predict(asked).step;
      CHECK(after <= before);
      before = after;
    }
  }
}

TEST_CASE("A faster GPU never slows a plan without a pipeline") {
  Question asked = question("gpt2-xl", "dgx-a100-80gb", "global_batch=64,seq_len=512");
  Time before = predict(asked).step;
  for (int i = 0; i < 4; ++i) {
    hardware::Gpu& gpu = asked.cluster.node.gpu;
    for (std::optional<FlopRate>& each : gpu.dense_peak) {
      if (each) each = *each * 1.5;
    }
    gpu.memory_bandwidth = gpu.memory_bandwidth * 1.5;
    const Time after = predict(asked).step;
    CHECK(after <= before);
    before = after;
  }
}

TEST_CASE("The same question has the same answer, bit for bit") {
  for (const Question& asked : several()) {
    const Prediction a = predict(asked), b = predict(asked);
    CHECK(a.step == b.step);
    CHECK(a.breakdown == b.breakdown);
    CHECK(a.times.ranks == b.times.ranks);
    CHECK(a.times.transfers == b.times.transfers);
    CHECK(a.mfu == b.mfu);
    CHECK(text_of(*a.program) == text_of(*b.program));
  }
}

TEST_CASE("1F1B and GPipe take m + p - 1 turns of a forward and a backward") {
  // One layer per stage: 1 s forward, 2 s backward; p = 4, m = 8: 11 turns of 3 s, 9 s of bubble.
  CHECK(step_of_repeats(tiny_program(pipeline_with(4, 8, "1f1b"), 4)) == 33_s);
  CHECK(step_of_repeats(tiny_program(pipeline_with(4, 8, "gpipe"), 4)) == 33_s);
  // One at a time: every micro-batch goes down and up all stages, 8 * 4 * 3 s.
  CHECK(step_of_repeats(tiny_program(pipeline_with(4, 8, "naive"), 4)) == 96_s);
}

TEST_CASE("Interleaving divides the bubble by the chunks of a stage") {
  // Two layers per stage, as one chunk and as two; the work is 8 * 6 s, the bubble (p - 1) times a
  // stage's 6 s, or half of it (Narayanan et al. 2021).
  CHECK(step_of_repeats(tiny_program(pipeline_with(4, 8, "1f1b"), 8)) == 66_s);
  CHECK(step_of_repeats(tiny_program(pipeline_with(4, 8, "interleaved-1f1b", 2), 8)) == 57_s);
}

TEST_CASE("Recomputation is part of backward, in the bubble too") {
  // 1 s forward, 1 + 2 s backward: 11 turns of 4 s.
  Plan plan = pipeline_with(4, 8, "1f1b");
  plan.recompute.kind = Recompute::full;
  CHECK(step_of_repeats(tiny_program(plan, 4)) == 44_s);
}

TEST_CASE("A long pipeline's predicted bubble is near (p - 1) / (m + p - 1)") {
  // 8 equal stages of 3 layers, 24 micro-batches: 7 / 31 = 22.6 % of the stages' own time. Uneven
  // ends, transfers and the optimizer move it by a few points.
  Question asked =
      question("gpt-18b", "dgx-a100-80gb x 8", "tensor=8,pipeline=8,global_batch=24,seq_len=2048");
  asked.software.host = {};
  CHECK(predict(asked).bubble_fraction() == Approx(7.0 / 31).margin(0.05));
}

}  // namespace orrery::models

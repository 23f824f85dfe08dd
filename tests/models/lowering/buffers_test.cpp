// What a rank holds besides the blocks' operands.

#include <catch2/catch.hpp>

#include "models/lowering/lower.hpp"
#include "models/program/memory.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Question in_precision(const std::string& precision) {
  Question asked = question("gpt3-175b", "dgx-a100-80gb x 2",
                            "tensor=8,pipeline=2,data=1,micro_batch=1,global_batch=4,"
                            "seq_len=2048,recompute=full,precision=" +
                                precision);
  asked.software.accumulation = Accumulation::separate;
  asked.software.gradient = hardware::DType::fp32;
  asked.software.gradient_of_fp16 = hardware::DType::fp16;
  return asked;
}

std::int64_t gradient_bytes(const Program& program) {
  Bytes sum{};
  for (const PersistentBuffer& each : program.classes.front().persistent) {
    if (each.kind == BufferKind::gradient) sum += each.bytes;
  }
  return sum.count();
}

TEST_CASE("Gradients added to wider sums stay next to them, those as wide are added one by one") {
  // bf16: sums of 4 bytes and gradients of 2; fp16: sums of 2 alone.
  const Program bf16 = lower(in_precision("bf16"));
  const Program fp16 = lower(in_precision("fp16"));
  const std::int64_t parameters = bf16.classes.front().parameters;
  CHECK(gradient_bytes(bf16) == 6 * parameters);
  CHECK(gradient_bytes(fp16) == 2 * parameters);
}

TEST_CASE("FSDP shards master weights alone, which are cast when they are gathered") {
  // 2 bytes of a copy and 4 of a master, or 4 of the master alone.
  Question asked = question("llama2-7b", "dgx-a100-80gb",
                            "data=8,zero=3,micro_batch=1,global_batch=8,seq_len=2048");
  const auto state = [&] {
    Bytes sum{};
    const Program program = lower(asked);
    for (const PersistentBuffer& each : program.classes.front().persistent) {
      if (each.kind != BufferKind::gradient) sum += each.bytes;
    }
    return sum;
  };
  const std::int64_t owned = lower(asked).classes.front().owned;
  CHECK(state() == Bytes{(2 + 4 + 8) * owned});
  asked.software.memory.masters_alone = true;
  CHECK(state() == Bytes{(4 + 8) * owned});
}

TEST_CASE("A stage that keeps what it sent holds one output more for each micro-batch under way") {
  // The first of two stages has two micro-batches under way, each with an output of 2048 x 12288
  // in two bytes. The last one sends no activations.
  Question asked = in_precision("bf16");
  const Program without = lower(asked);
  asked.software.memory.sent_kept = true;
  const Program with = lower(asked);
  const auto more = [&](std::uint32_t rank_class) {
    const auto of = [&](const Program& program) {
      return memory_peaks(program)[rank_class].by_kind[static_cast<int>(BufferKind::activation)];
    };
    return (of(with) - of(without)).count();
  };
  CHECK(more(0) == 2 * std::int64_t{2048} * 12288 * 2);
  CHECK(more(1) == 0);
}

}  // namespace
}  // namespace orrery::models

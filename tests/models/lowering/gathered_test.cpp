#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "models/lowering/lower.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

Program lowered(Gathered gathered) {
  Question asked = question("gpt3-175b", "dgx-a100-80gb x 1",
                            "tensor=8,sequence=true,pipeline=1,data=1,micro_batch=1,"
                            "global_batch=1,seq_len=2048,recompute=none");
  asked.software.gathered = gathered;
  return lower(asked);
}

int gathers(const Block& block) {
  int count = 0;
  for (const Operation& op : block.operations) {
    count += op.kind == OpKind::collective && op.collective() == Collective::all_gather ? 1 : 0;
  }
  return count;
}

TEST_CASE("Inputs that are kept whole are not gathered again, and take their memory") {
  // Two linears of a layer read gathered inputs, [2048, 12288] in two bytes; a shard is an eighth.
  const Program again = lowered(Gathered::in_backward);
  const Program kept = lowered(Gathered::kept);
  const Block& one = again.blocks[layer_backward];
  const Block& other = kept.blocks[layer_backward];
  CHECK(gathers(again.blocks[layer_forward]) == 2);
  CHECK(gathers(kept.blocks[layer_forward]) == 2);
  CHECK(gathers(one) - gathers(other) == 2);
  const std::int64_t whole = std::int64_t{2048} * 12288 * 2;
  for (const BlockIndex index : {layer_forward, layer_backward}) {
    const Bytes more = kept.blocks[index].bytes(Role::saved);
    const Bytes fewer = again.blocks[index].bytes(Role::saved);
    CHECK((more - fewer).count() == 2 * (whole - whole / 8));
  }
}

TEST_CASE("Hosts that meet at tensor collectives wait in forward and recomputation only") {
  Question asked = question("gpt3-175b", "dgx-a100-80gb x 1",
                            "tensor=8,pipeline=1,data=1,micro_batch=1,global_batch=1,"
                            "seq_len=2048,recompute=full");
  const auto waits = [](const Program& program) {
    std::vector<Pass> passes;
    for (const BlockIndex index : {layer_forward, layer_backward}) {
      for (const Operation& op : program.blocks[index].operations) {
        if (op.host_waits) passes.push_back(op.pass);
      }
    }
    return passes;
  };
  asked.software.host.waits_for_tensor = false;
  CHECK(waits(lower(asked)).empty());
  asked.software.host.waits_for_tensor = true;
  CHECK(waits(lower(asked)) ==
        std::vector<Pass>{Pass::forward, Pass::forward, Pass::recompute, Pass::recompute});
}

/// The operation before each rank sends rows to experts, in the passes where the host waits for it.
std::vector<std::pair<OpKind, Pass>> awaited(const Program& program) {
  std::vector<std::pair<OpKind, Pass>> found;
  for (const Block& block : program.blocks) {
    for (std::size_t i = 0; i + 1 < block.operations.size(); ++i) {
      const Operation& op = block.operations[i];
      if (op.host_waits) found.emplace_back(block.operations[i + 1].kind, op.pass);
    }
  }
  return found;
}

TEST_CASE("The host waits for the numbers of rows before they are sent, not in backward") {
  Question asked = question("mixtral-8x7b", "dgx-h100 x 1",
                            "expert=4,data=8,micro_batch=1,global_batch=8,seq_len=4096,"
                            "recompute=full");
  asked.software.host.waits_for_tensor = false;
  asked.software.host.expert_layer = Time{};
  CHECK(awaited(lower(asked)).empty());
  asked.software.host.expert_layer = 1_ms;
  // Backward runs the forward again.
  CHECK(awaited(lower(asked)) ==
        std::vector<std::pair<OpKind, Pass>>{{OpKind::permute, Pass::forward},
                                             {OpKind::permute, Pass::recompute}});
  // Nobody need ask where every expert has as many rows, and a graph cannot wait.
  asked.plan.kernels.graphs = true;
  CHECK(awaited(lower(asked)).empty());
  asked.plan.kernels.graphs = false;
  asked.plan.experts.capacity = 1;
  asked.plan.experts.pad_to_capacity = true;
  CHECK(awaited(lower(asked)).empty());
}

Bytes replicated_sum(const std::string& plan) {
  const Program program = lower(question("gpt3-175b", "dgx-a100-80gb x 1", plan));
  Bytes sum{};
  for (const Instruction& each : program.classes[0].instructions) {
    if (each.op != Opcode::sum_replicas) continue;
    const JointCollective& joint = program.collectives[each.target];
    CHECK(joint.communicator == tensor_group);
    sum += joint.bytes;
  }
  return sum;
}

TEST_CASE("Gradients that each rank made from its own rows are summed over the tensor group") {
  // A layer: two norms of weight and bias, two row biases = 6 vectors of 12288; 96 layers, the
  // final norm's 2, and 2048 rows of positions: (576 + 2 + 2048) x 12288 fp32.
  const std::string plan =
      "tensor=8,pipeline=1,data=1,micro_batch=1,global_batch=1,seq_len=2048,recompute=none";
  CHECK(replicated_sum(plan + ",sequence=true") == Bytes{std::int64_t{2626} * 12288 * 4});
  CHECK(replicated_sum(plan + ",sequence=false") == Bytes{0});
}

}  // namespace
}  // namespace orrery::models

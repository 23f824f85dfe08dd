// Muon by hand: what it multiplies, holds and sends, and which matrices fall to a rank.

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/lowering/matrices.hpp"
#include "models/plan/conflicts.hpp"
#include "models/program/opcodes.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// Parameters of a layer's matrices in Llama 3 8B: queries, keys and values 4,096 x 6,144,
/// projection 4,096 x 4,096, gate and up 4,096 x 28,672, down 14,336 x 4,096.
constexpr std::int64_t layer_widths = 6144 + 4096 + 28672 + 14336;
constexpr std::int64_t parameters_of_8b = 8'030'261'248;
constexpr std::int64_t in_matrices = 32 * 4096 * layer_widths;

Question step_question(const std::string& plan, const std::string& model = "llama3-8b") {
  return question(model, "dgx-h100 x 1", "global_batch=8,micro_batch=1,seq_len=1024," + plan,
                  "generic");
}
Question muon_question(const std::string& plan, const std::string& model = "llama3-8b") {
  return step_question("optimizer=muon," + plan, model);
}

/// FLOPs of GEMMs that the first class runs in the optimizer's step.
double step_flops(const Program& program) {
  double sum = 0;
  for (const Instruction& each : program.classes.front().instructions) {
    if (each.op != Opcode::optimizer) continue;
    for (const Invocation& run : program.phases[each.target].invocations) {
      for (const Operation& op : program.blocks[run.block].operations) {
        sum += op.flops.count() * static_cast<double>(run.count);
      }
    }
  }
  return sum;
}

Bytes state_of(const Program& program) {
  const auto& held = program.classes.front().persistent;
  return std::ranges::find(held, BufferKind::optimizer, &PersistentBuffer::kind)->bytes;
}

TEST_CASE("Muon runs fifteen GEMMs on each matrix of the layers") {
  // Five times 2 m^2 n + 2 m^3 + 2 m^2 n with m = 4,096 of every matrix of 32 layers.
  const double m = 4096, widths = layer_widths;
  const double layer = 5 * (4 * m * m * widths + 4 * 2 * m * m * m);
  CHECK(step_flops(lower(muon_question("data=8,zero=0"))) == Approx(32 * layer));
  CHECK(step_flops(lower(step_question("data=8,zero=0"))) == 0);
}

TEST_CASE("Tensor-parallel ranks iterate on their own part of a matrix") {
  // Halves: 4,096 x 3,072, 2,048 x 4,096, 4,096 x 14,336 and 7,168 x 4,096.
  double layer = 0;
  for (const auto& [m, n] : {std::pair{3072.0, 4096.0}, std::pair{2048.0, 4096.0},
                             std::pair{4096.0, 14336.0}, std::pair{4096.0, 7168.0}}) {
    layer += 5 * (4 * m * m * n + 2 * m * m * m);
  }
  CHECK(step_flops(lower(muon_question("tensor=2,data=4,zero=0"))) == Approx(32 * layer));
}

TEST_CASE("Muon holds one momentum for matrices, Adam two moments for the rest") {
  CHECK(state_of(lower(muon_question("data=8,zero=0"))).count() ==
        12 * parameters_of_8b - 4 * in_matrices);
  CHECK(state_of(lower(muon_question("data=8,zero=1"))).count() ==
        (12 * parameters_of_8b - 4 * in_matrices) / 8);
}

TEST_CASE("Replicas that update whole matrices reduce gradients to every rank") {
  const auto kinds = [](const Question& asked) {
    std::vector<Collective> sent;
    for (const JointCollective& each : lower(asked).collectives) {
      if (each.name.starts_with("gradients.")) sent.push_back(each.kind);
    }
    return sent;
  };
  const std::vector<Collective> whole = kinds(muon_question("data=8,zero=1"));
  REQUIRE_FALSE(whole.empty());
  CHECK(std::ranges::all_of(whole, [](Collective k) { return k == Collective::all_reduce; }));
  const std::vector<Collective> cut = kinds(step_question("data=8,zero=1"));
  CHECK(std::ranges::all_of(cut, [](Collective k) { return k == Collective::reduce_scatter; }));
}

TEST_CASE("Whole matrices are dealt out by size, forth and back") {
  const std::vector<EqualMatrices> all{{.rows = 8, .columns = 8, .count = 2},
                                       {.rows = 8, .columns = 64, .count = 3}};
  // Two small ones to ranks 0 and 1; the large ones to 1, 0 and 0.
  const std::vector<EqualMatrices> most = of_busiest(all, 2);
  REQUIRE(most.size() == 2);
  CHECK(most[0].count == 1);
  CHECK(most[1].count == 2);
  CHECK(of_busiest(all, 1).back().count == 3);
  const std::vector<EqualMatrices> alone = of_busiest(all, 8);
  REQUIRE(alone.size() == 1);
  CHECK(alone.front().columns == 64);
  CHECK(alone.front().count == 1);
}

TEST_CASE("Experts' matrices are dealt out among their own replicas") {
  // Mixtral 8x7B, experts over all 8 ranks: each holds one of a layer and updates it itself;
  // 14,336 x 4,096 down, 4,096 x 28,672 gate and up.
  const Program program = lower(muon_question(
      "data=8,zero=1,expert=8,expert_tensor=1,dispatcher=alltoall,imbalance=1", "mixtral-8x7b"));
  const LayerMatrices held = matrices_of(program, program.classes.front(), 32000);
  REQUIRE(held.experts.size() == 2);
  for (const EqualMatrices& each : held.experts) CHECK(each.count == 32);
  CHECK(elements_of(held.experts) == 32 * 3 * 4096LL * 14336);
  const double m = 4096;
  CHECK(step_flops(program) > 32 * 5 * (4 * m * m * (28672 + 14336) + 2 * 2 * m * m * m));
}

TEST_CASE("What Muon cannot be simulated with is refused by name") {
  const auto refusal = [](const std::string& plan) {
    const std::vector<Conflict> found = conflicts(muon_question(plan));
    return found.empty() ? "" : found.front().pointer + ": " + found.front().problem;
  };
  CHECK(refusal("data=8,zero=1").empty());
  CHECK(refusal("data=8,zero=3") ==
        "/plan/optimizer: muon is not simulated with zero 3, which cuts matrices; accepted: 0, 1");
  CHECK(refusal("data=8,zero=1,offload=optimizer") ==
        "/plan/optimizer: muon is not simulated with offload");
  CHECK(refusal("data=8,zero=1,moments=int8") ==
        "/plan/optimizer: muon is not simulated with moments int8");
  CHECK(refusal("data=8,zero=0,compression=fp16") ==
        "/plan/optimizer: muon is not simulated with compressed gradients");
}

}  // namespace
}  // namespace orrery::models

#include <catch2/catch.hpp>

#include "tests/models/lowering/outline.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// The tiny model of one layer, a bucket for each layer and end, on four replicas.
///   In backward's order: final norm 16, the layer 872, tables 192: 1080 parameters
Program compressed(Compression compression, double share = 0.01, bool overlap = true) {
  Plan plan;
  plan.data = 4;
  plan.global_batch = 4;
  plan.bucket = Bytes{1};
  plan.compression = compression;
  plan.compression_share = share;
  plan.overlap_gradients = overlap;
  return tiny_program(plan, 1);
}

const Operation& operation_at(const Program& program, std::size_t i) {
  const Phase& phase = program.phases[program.classes[0].instructions[i].target];
  return program.blocks[phase.invocations[0].block].operations[0];
}

Bytes held(const Program& program, const std::string& name) {
  for (const PersistentBuffer& each : program.classes[0].persistent) {
    if (each.name == name) return each.bytes;
  }
  return Bytes{};
}

}  // namespace

TEST_CASE("Half-width gradients are cast before their reduction and back after all of them") {
  const Program program = compressed(Compression::fp16);
  CHECK(outline(program) == "F B C R B C R B C R C<3 C<6 C<9 O N O");
  CHECK(outline(compressed(Compression::fp16, 0.01, false)) == "F B C R C R C R C<3 C<5 C<7 O N O");
  const JointCollective& layer = joint_at(program, 6);
  CHECK(layer.kind == Collective::all_reduce);
  CHECK(layer.dtype == DType::fp16);
  CHECK(layer.bytes.count() == 2 * 872);
  // 4 bytes read and 2 written, and back.
  CHECK(operation_at(program, 5).kind == OpKind::cast);
  CHECK(operation_at(program, 5).bytes.count() == 6 * 872);
  CHECK(operation_at(program, 11).bytes.count() == 6 * 872);
  CHECK(held(program, "narrow").count() == 2 * 1080);
  CHECK_NOTHROW(check(program));
}

TEST_CASE("Top-k gathers the largest values and their places and adds up everyone's") {
  // A tenth of 872 is 87 of each of four replicas, of 16 one, of 192 nineteen.
  const Program program = compressed(Compression::top_k, 0.1);
  CHECK(outline(program) == "F B C R R B C R R B C R R C<4 C<8 C<12 O N O");
  const JointCollective& values = joint_at(program, 7);
  CHECK(values.kind == Collective::all_gather);
  CHECK(values.dtype == DType::fp32);
  CHECK(values.bytes.count() == 4 * 4 * 87);
  const JointCollective& places = joint_at(program, 8);
  CHECK(places.kind == Collective::all_gather);
  CHECK(places.dtype == DType::int32);
  CHECK(places.bytes.count() == 4 * 4 * 87);
  CHECK(joint_at(program, 3).bytes.count() == 4 * 4 * 1);
  // Gradients and residual read, the residual and 87 values and places written.
  const Operation& pick = operation_at(program, 6);
  CHECK(pick.kind == OpKind::top_k);
  CHECK(pick.bytes.count() == 3 * 4 * 872 + 8 * 87);
  // Values and places of all read, the bucket cleared, each value's place read and written.
  const Operation& sum = operation_at(program, 14);
  CHECK(sum.kind == OpKind::scatter_add);
  CHECK(sum.bytes.count() == 8 * 4 * 87 + 4 * 872 + 8 * 4 * 87);
  CHECK(held(program, "residual").count() == 4 * 1080);
  CHECK(held(program, "values").count() == 4 * (1 + 87 + 19));
  CHECK(held(program, "indices.all").count() == 4 * 4 * (1 + 87 + 19));
  CHECK_NOTHROW(check(program));
}

TEST_CASE("Top-k sends one gradient at the least and no fraction of one") {
  Plan plan;
  plan.compression_share = 0.01;
  CHECK(kept_by_top_k(plan, 99) == 1);
  CHECK(kept_by_top_k(plan, 199) == 1);
  CHECK(kept_by_top_k(plan, 200) == 2);
  plan.compression_share = 1;
  CHECK(kept_by_top_k(plan, 200) == 200);
}

TEST_CASE("A compressed gradient that is left out is found") {
  Program program = compressed(Compression::top_k);
  program.collectives[0].elements = 15;
  std::string refusal;
  try {
    check(program);
  } catch (const ContractError& error) {
    refusal = error.what();
  }
  CHECK(refusal == "stage 0: 1079 gradients are reduced, it has 1080");
}

}  // namespace orrery::models

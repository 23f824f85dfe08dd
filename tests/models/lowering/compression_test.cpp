#include <catch2/catch.hpp>

#include "models/plan/compression.hpp"
#include "tests/models/lowering/outline.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// The tiny model of one layer, a bucket for each layer and end, on four replicas.
///   In backward's order: final norm 16, the layer 872, tables 192: 1080 parameters
Program compressed(Compression compression, double share = 0.01, bool overlap = true) {
  Plan plan;
  plan.data = 4;
  plan.batch.global = 4;
  plan.sharding.bucket = Bytes{1};
  plan.compression.kind = compression;
  plan.compression.share = share;
  plan.overlap.gradients = overlap;
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

TEST_CASE("PowerSGD sums one factor of each bucket, and the other after the next bucket") {
  // 872 elements are 30 rows of 30, 192 are 14 of 14, 16 are 4 of 4; 4 bytes each, rank 4.
  const Program program = compressed(Compression::power_sgd);
  CHECK(outline(program) == "F B C R B C<3 R C R B C<8 R C R C<13 R C<6 C<11 C<15 O N O");
  CHECK(outline(compressed(Compression::power_sgd, 0.01, false)) ==
        "F B C R C R C R C<3 R C<5 R C<7 R C<9 C<11 C<13 O N O");
  const JointCollective& p = joint_at(program, 8);
  CHECK(p.kind == Collective::all_reduce);
  CHECK(p.elements == 872);
  CHECK(p.bytes.count() == 4 * 30 * 4);
  const JointCollective& q = joint_at(program, 11);
  CHECK(q.elements == 0);
  CHECK(q.bytes.count() == 4 * 30 * 4);
  CHECK(held(program, "residual").count() == 4 * (900 + 196 + 16));
  CHECK(held(program, "q").count() == 4 * 4 * (30 + 14 + 4));
  CHECK(held(program, "p").count() == 4 * 4 * (30 + 14 + 4));
  CHECK(held(program, "matrix").count() == 4 * 900);
  CHECK_NOTHROW(check(program));

  // Gradients and residual read, the residual written; then 2 x 30 x 30 x 4 FLOPs.
  const auto operations = [&](std::size_t i) {
    const Phase& phase = program.phases[program.classes[0].instructions[i].target];
    return program.blocks[phase.invocations[0].block].operations;
  };
  const std::vector<Operation> first = operations(7), second = operations(10);
  CHECK(first[0].bytes.count() == 4 * (872 + 2 * 900));
  CHECK(first[1].flops.count() == 2 * 900 * 4);
  // Ten passes over a column of 30: 1 + 2 + 3 + 4, three times 4 bytes each.
  CHECK(second[0].kind == OpKind::orthogonalise);
  CHECK(second[0].bytes.count() == 10 * 30 * 12);
  CHECK(second[1].gemm().transpose_a);
  CHECK(second[2].gemm().subtract);
}

TEST_CASE("In 8 bits every replica adds up its share, between an all-to-all and an all-gather") {
  // 872 elements are four shares of 218, 192 of 48, 16 of 4; each with 8 bytes of range.
  const Program program = compressed(Compression::int8);
  CHECK(outline(program) == "F B C R B C<3 R C R B C<8 R C R C<13 R C<6 C<11 C<15 O N O");
  const JointCollective& shares = joint_at(program, 8);
  CHECK(shares.kind == Collective::all_to_all);
  CHECK(shares.elements == 872);
  CHECK(shares.bytes.count() == 4 * (218 + 8));
  const JointCollective& sums = joint_at(program, 11);
  CHECK(sums.kind == Collective::all_gather);
  CHECK(sums.elements == 0);
  CHECK(sums.bytes.count() == 4 * (218 + 8));
  const auto traffic = [&](std::size_t i) {
    const Phase& phase = program.phases[program.classes[0].instructions[i].target];
    Bytes all{};
    for (const Operation& op : program.blocks[phase.invocations[0].block].operations) {
      all += op.bytes;
    }
    return all.count();
  };
  // 4 bytes read twice, for the range (two numbers of each share) and the bytes.
  CHECK(traffic(7) == 2 * 4 * 872 + 4 * 2 * 4 + 4 * (218 + 8));
  // Four shares read and their sum of 218 written, which is read twice, too.
  CHECK(traffic(10) == 4 * (218 + 8) + 3 * 4 * 218 + 2 * 4 + 218 + 8);
  CHECK(traffic(16 + 1) == 4 * (218 + 8) + 4 * 872);
  CHECK(held(program, "residual").count() == 0);
  CHECK(held(program, "sum").count() == 4 * 218);
  CHECK(held(program, "bytes").count() == 4 * (218 + 48 + 4 + 3 * 8));
  CHECK_NOTHROW(check(program));
}

TEST_CASE("A bucket is factored as the smallest square that holds it") {
  Plan plan;
  for (const std::int64_t n : {1, 2, 3, 16, 17, 872, 1'000'003}) {
    const auto [rows, columns, rank] = low_rank_shape(plan, n);
    CHECK(rows * columns >= n);
    CHECK((rows - 1) * columns < n);
    CHECK(rank == std::min<std::int64_t>({4, rows, columns}));
  }
  CHECK(low_rank_shape(plan, 872).columns == 30);
}

TEST_CASE("Top-k sends one gradient at the least and no fraction of one") {
  Plan plan;
  plan.compression.share = 0.01;
  CHECK(kept_by_top_k(plan, 99) == 1);
  CHECK(kept_by_top_k(plan, 199) == 1);
  CHECK(kept_by_top_k(plan, 200) == 2);
  plan.compression.share = 1;
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

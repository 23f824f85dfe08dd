#include "models/program/operation.hpp"

#include <catch2/catch.hpp>

#include "sim/errors.hpp"

namespace orrery::models {

TEST_CASE("A reader of another work's attributes sees defaults, and begins no work") {
  Operation op;
  CHECK(op.gemm().m == 0);
  CHECK(op.pieces() == 1);
  CHECK(op.moves() == RowMove::none);
  CHECK(op.is<std::monostate>());
  op.mutable_vocabulary() = 50'257;
  CHECK(op.vocabulary() == 50'257);
  CHECK(op.attention().seq == 0);
  CHECK(op.is<LossWork>());
}

TEST_CASE("A writer begins the work of an attribute, and may not write another's") {
  Operation op;
  op.mutable_gemm() = {.m = 2, .n = 3, .k = 4};
  CHECK_THROWS_AS(op.mutable_communicator(), ContractError);
  CHECK_THROWS_AS(op.mutable_vocabulary(), ContractError);
  CHECK(op.gemm().n == 3);
}

TEST_CASE("Attributes of several works are those of the work that was begun") {
  Operation scores, fused, loss, dispatch, head_norm;
  scores.mutable_gemm() = {.m = 1, .n = 1, .k = 1};
  scores.mutable_attention().heads = 8;
  scores.mutable_pieces() = 4;
  CHECK(scores.is<ProductWork>());
  CHECK(scores.attention().heads == 8);
  fused.mutable_attention().heads = 8;
  fused.mutable_sequence().merges = true;
  CHECK(fused.is<AttentionWork>());
  loss.mutable_pieces() = 4;
  CHECK(loss.is<LossWork>());
  dispatch.mutable_moves() = RowMove::dispatch;
  dispatch.mutable_exchange().overlaps_micro_batch = true;
  CHECK(dispatch.exchange().overlaps_micro_batch);
  CHECK(dispatch.is<RowWork>());
  head_norm.kind = OpKind::norm;
  head_norm.mutable_heads() = {.queries = 4, .keys = 2, .dim = 64};
  CHECK(head_norm.is<NormWork>());
  CHECK(head_norm.heads().keys == 2);
}

}  // namespace orrery::models

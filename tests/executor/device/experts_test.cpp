// Routing and rows of experts on the CPU, against sums by hand.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "executor/device/cpu/cpu_device.hpp"

namespace orrery::executor {
namespace {

using models::DType;
using models::Operation;
using models::OpKind;
using models::RowMove;
using Doubles = std::vector<double>;
using Integers = std::vector<std::int32_t>;

View view(Doubles& numbers, std::array<std::int64_t, 3> shape) {
  return {reinterpret_cast<std::byte*>(numbers.data()), DType::fp64, shape};
}
View view(Integers& numbers, std::array<std::int64_t, 3> shape) {
  return {reinterpret_cast<std::byte*>(numbers.data()), DType::int32, shape};
}

void run_alone(const Operation& op, std::vector<View> reads, std::vector<View> writes) {
  CpuDevice device;
  device.run({.operation = &op, .reads = reads, .writes = writes, .place = {}, .adam = {}});
}

Operation moving(OpKind kind, RowMove move) {
  Operation op;
  op.kind = kind;
  op.mutable_moves() = move;
  return op;
}

}  // namespace

// exp(ln 3) / (exp(ln 3) + exp(0)) = 3/4; of two equal logits the lower expert comes first.
TEST_CASE("A token meets the experts with the largest logits, with weights that add up to 1") {
  Doubles logits{0, std::log(3.0), -5, /**/ 1, 4, 4}, weights(4);
  Integers chosen(4);
  Operation op;
  op.kind = OpKind::route;
  run_alone(op, {view(logits, {1, 2, 3})}, {view(weights, {1, 2, 2}), view(chosen, {1, 2, 2})});
  CHECK(chosen == Integers{1, 0, 1, 2});
  CHECK(weights[0] == Approx(0.75));
  CHECK(weights[1] == Approx(0.25));
  CHECK(weights[2] == Approx(0.5));
}

// Sigmoids 0.9, 0.1, 0.8, 0.75 of ln 9, -ln 9, ln 4, ln 3, in two groups. With the biases they
// compare as 0.9, 0.6, 0.8, 0.8: the second group's best two add up to most, 1.6 against 1.5, and
// of its equals the lower comes first. Weights are those without biases: 0.8 and 0.75 of 1.55.
TEST_CASE("Groups are compared by their two best sigmoids with biases, weights have no biases") {
  Doubles logits{std::log(9.0), -std::log(9.0), std::log(4.0), std::log(3.0)};
  Doubles biases{0, 0.5, 0, 0.05}, weights(2);
  Integers chosen(2);
  Operation op;
  op.kind = OpKind::route;
  op.mutable_routing() = {.score = models::Routing::Score::sigmoid,
                          .corrected = true,
                          .groups = 2,
                          .groups_kept = 1,
                          .best_of_group = 2,
                          .scale = 2.5};
  run_alone(op, {view(logits, {1, 1, 4}), view(biases, {1, 1, 4})},
            {view(weights, {1, 1, 2}), view(chosen, {1, 1, 2})});
  CHECK(chosen == Integers{2, 3});
  CHECK(weights[0] == Approx(2.5 * 0.8 / 1.55));
  CHECK(weights[1] == Approx(2.5 * 0.75 / 1.55));
}

// Softmaxes 0.1, 0.4, 0.3, 0.2: the first group's best is largest, and of it both are met.
TEST_CASE("Softmaxes over all experts weigh as they are, times the scale, within the best group") {
  Doubles logits{0, std::log(4.0), std::log(3.0), std::log(2.0)}, weights(2);
  Integers chosen(2);
  Operation op;
  op.kind = OpKind::route;
  op.mutable_routing() = {.normalised = false, .groups = 2, .groups_kept = 1, .scale = 16};
  run_alone(op, {view(logits, {1, 1, 4})}, {view(weights, {1, 1, 2}), view(chosen, {1, 1, 2})});
  CHECK(chosen == Integers{1, 0});
  CHECK(weights[0] == Approx(6.4));
  CHECK(weights[1] == Approx(1.6));
}

// Three tokens for expert 1 with two slots: the third is dropped, and expert 0 has a row of zeros.
TEST_CASE("With a capacity tokens beyond an expert's slots are dropped, slots beyond them zero") {
  Doubles tokens{1, 2, 3, 4, 5, 6}, slots(8, -1), kept(8, -1), sums(6, -1);
  Integers chosen{1, 1, 1};
  Operation dispatch = moving(OpKind::permute, RowMove::dispatch);
  dispatch.mutable_drops() = true;
  run_alone(dispatch, {view(tokens, {1, 3, 2}), view(chosen, {1, 3, 1})}, {view(slots, {2, 2, 2})});
  CHECK(slots == Doubles{0, 0, 0, 0, 1, 2, 3, 4});
  Doubles weights{10, 100, 1000};
  run_alone(moving(OpKind::unpermute, RowMove::combine),
            {view(slots, {2, 2, 2}), view(weights, {1, 3, 1}), view(chosen, {1, 3, 1})},
            {view(sums, {1, 3, 2}), view(kept, {2, 2, 2})});
  CHECK(sums == Doubles{10, 20, 300, 400, 0, 0});
  CHECK(kept == Doubles{-1, -1, -1, -1, 1, 2, 3, 4});
}

// Of two ranks, two experts and one slot each: rows come by rank and are put by expert.
TEST_CASE("Rows that arrive by rank are put by expert, and back") {
  Doubles by_rank{1, 2, 3, 4}, by_expert(4), again(4);
  Operation op = moving(OpKind::permute, RowMove::by_expert);
  op.mutable_source_ranks() = 2;
  run_alone(op, {view(by_rank, {2, 2, 1})}, {view(by_expert, {2, 2, 1})});
  CHECK(by_expert == Doubles{1, 3, 2, 4});
  op.mutable_moves() = RowMove::by_rank;
  run_alone(op, {view(by_expert, {2, 2, 1})}, {view(again, {2, 2, 1})});
  CHECK(again == by_rank);
}

// Two experts with two rows each, of which some are zero, and a bias that these get, too.
TEST_CASE("A grouped GEMM leaves out rows of zeros, and adds each expert's bias") {
  Doubles x{0, 2, 3, 0}, w{10, 100}, bias{1, 2}, y(4, -1);
  Operation op;
  op.kind = OpKind::grouped_gemm;
  op.mutable_gemm() = {.m = 4, .n = 1, .k = 1, .batch = 2};
  op.mutable_group_rows() = {2, 2};
  run_alone(op, {view(x, {2, 2, 1}), view(w, {2, 1, 1}), view(bias, {2, 1, 1})},
            {view(y, {2, 2, 1})});
  CHECK(y == Doubles{1, 21, 302, 2});
  Doubles dw{5, 5}, dbias{7, 7};
  op.mutable_gemm() = {.m = 1, .n = 1, .k = 4, .batch = 2, .transpose_a = true, .accumulate = true};
  run_alone(op, {view(x, {2, 2, 1}), view(y, {2, 2, 1})},
            {view(dw, {2, 1, 1}), view(dbias, {2, 1, 1})});
  CHECK(dw == Doubles{5 + 2 * 21, 5 + 3 * 302});
  CHECK(dbias == Doubles{7 + 1 + 21, 7 + 302 + 2});
}

}  // namespace orrery::executor

// Routing and moves of rows, each with the processor's numbers.

#include <catch2/catch.hpp>

#include "tests/executor/device/cuda/trial.hpp"

namespace orrery::executor::cuda {
namespace {

using models::RowMove;

constexpr std::int64_t tokens = 37, experts = 5, k = 2;

DType weights_of(DType rows) {
  return rows == DType::fp64 ? DType::fp64 : DType::fp32;
}

/// Choices of each token differ; expert 3 is every token's that is a multiple of 3.
double chosen(std::int64_t i) {
  const std::int64_t token = i / k;
  const std::int64_t first = token % 3 == 0 ? 3 : token % experts;
  return static_cast<double>(i % k == 0 ? first : (first + 1 + token % 3) % experts);
}

Trial moving(OpKind kind, RowMove move) {
  Trial trial{kind};
  trial.operation.mutable_moves() = move;
  trial.operation.mutable_source_ranks() = 2;
  return trial;
}

TEST_CASE("A GPU routes tokens as the processor does") {
  for_each_format([](DType type) {
    Trial trial{OpKind::route};
    trial.read(type, {1, tokens, experts}, normal(1));
    trial.write(weights_of(type), {1, tokens, k}).write(DType::int32, {1, tokens, k}).check();
    Trial equal{OpKind::route};  // of equal logits the lower expert comes first
    equal.read(type, {1, tokens, experts}, [](std::int64_t i) { return i % 5 == 1 ? 1.0 : 2.0; });
    equal.write(weights_of(type), {1, tokens, k}).write(DType::int32, {1, tokens, k}).check();
    Trial back{OpKind::route_backward};
    back.read(type, {1, tokens, experts}, normal(1))
        .read(weights_of(type), {1, tokens, k}, normal(2));
    back.read(DType::int32, {1, tokens, k}, chosen)
        .read(weights_of(type), {1, tokens, k}, normal(3));
    back.write(type, {1, tokens, experts}).check();
  });
}

std::vector<models::Routing> routings() {
  using Score = models::Routing::Score;
  const models::Routing groups{.normalised = false, .groups = 3, .groups_kept = 2, .scale = 1.5};
  models::Routing best = groups;
  best.score = Score::sigmoid;
  best.normalised = best.corrected = true;
  best.best_of_group = 2;
  return {{.normalised = false}, {.score = Score::sigmoid, .scale = 2.5}, groups, best};
}

TEST_CASE("A GPU compares groups of experts, softmaxes and sigmoids as the processor does") {
  constexpr std::int64_t all = 9, met = 3;
  for (const models::Routing& routing : routings()) {
    for_each_format([&](DType type) {
      Trial trial{OpKind::route};
      trial.operation.mutable_routing() = routing;
      trial.read(type, {1, tokens, all}, normal(1));
      if (routing.corrected) trial.read(type, {1, 1, all}, normal(4));
      trial.write(weights_of(type), {1, tokens, met}).write(DType::int32, {1, tokens, met});
      trial.check();
      Trial back{OpKind::route_backward};
      back.operation.mutable_routing() = routing;
      back.read(type, {1, tokens, all}, normal(1));
      back.read(weights_of(type), {1, tokens, met}, normal(2));
      back.read(DType::int32, {1, tokens, met},
                [](std::int64_t i) { return static_cast<double>(i % 3 * 3 + i / 3 % 3); });
      back.read(weights_of(type), {1, tokens, met}, normal(3));
      back.write(type, {1, tokens, all}).check();
    });
  }
}

// 74 choices; expert 3 has most: some are beyond 11 slots, all find one among 40.
TEST_CASE("A GPU puts rows into slots and takes them out as the processor does") {
  for (const std::int64_t room : {11, 40}) {
    for (const std::int64_t n : {3, 16, 40}) {
      for_each_format([&](DType type) {
        INFO("room " << room << ", " << n << " columns");
        const Shape rows{1, tokens, n}, slots{experts, room, n}, choices{1, tokens, k};
        Trial dispatch = moving(OpKind::permute, RowMove::dispatch);
        dispatch.read(type, rows, normal(1)).read(DType::int32, choices, chosen);
        dispatch.write(type, slots).check();
        Trial combine = moving(OpKind::unpermute, RowMove::combine);
        combine.read(type, slots, normal(2)).read(weights_of(type), choices, normal(3));
        combine.read(DType::int32, choices, chosen);
        combine.write(type, rows).write(type, slots, constant(0)).check();
        Trial spread = moving(OpKind::permute, RowMove::combine_backward);
        spread.read(type, rows, normal(4)).read(weights_of(type), choices, normal(3));
        spread.read(DType::int32, choices, chosen).read(type, slots, normal(2));
        spread.write(type, slots).write(weights_of(type), choices).check();
        Trial sum = moving(OpKind::unpermute, RowMove::dispatch_backward);
        sum.read(type, slots, normal(5)).read(DType::int32, choices, chosen);
        sum.write(type, rows).check();
      });
    }
  }
}

TEST_CASE("A GPU puts rows in the order of experts, and back") {
  for_each_format([](DType type) {
    for (const RowMove move : {RowMove::by_expert, RowMove::by_rank}) {
      Trial trial = moving(OpKind::permute, move);
      trial.read(type, {3, 8, 5}, normal(1)).write(type, {3, 8, 5}).check();
    }
  });
}

}  // namespace
}  // namespace orrery::executor::cuda

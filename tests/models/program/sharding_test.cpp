#include "models/program/sharding.hpp"

#include <catch2/catch.hpp>

using namespace orrery::models;

namespace {

/// tensor 4, data 2, pipeline 3, context 2
const Mesh mesh{4, 2, 3, 2};

}  // namespace

TEST_CASE("A rank holds what the axes that cut an operand leave of it") {
  CHECK(local_shape({1, 12, 8}, {}, mesh) == Shape{1, 12, 8});
  CHECK(local_shape({1, 12, 8}, {MeshAxis::tensor, Dimension::rows}, mesh) == Shape{1, 3, 8});
  CHECK(local_shape({1, 12, 8}, {MeshAxis::tensor, Dimension::columns}, mesh) == Shape{1, 12, 2});
  CHECK(local_shape({8, 12, 8}, {MeshAxis::context, Dimension::matrices}, mesh) == Shape{4, 12, 8});
}

TEST_CASE("A partial sum is as large as the whole") {
  Sharding partial;
  partial.partial = MeshAxis::tensor;
  CHECK(local_shape({1, 12, 8}, partial, mesh) == Shape{1, 12, 8});
}

TEST_CASE("Two axes cut one dimension, the later one first") {
  Sharding both{MeshAxis::tensor, Dimension::rows};
  both.cut(MeshAxis::context) = Cut{Dimension::rows};
  CHECK(local_shape({1, 16, 8}, both, mesh) == Shape{1, 2, 8});
  // Rank 5 is tensor 1 of context 1: of eight shards the sixth.
  CHECK(shard_of(5, both, Dimension::rows, mesh) == 5);
  CHECK(shard_of(5, both, Dimension::columns, mesh) == 0);
}

TEST_CASE("Shards are whole units, the last ones padded") {
  // 1000 words in units of 128 are 8 units, 2 for each of 4 ranks; 1100 are 9, and so 3 for each.
  const Sharding words{MeshAxis::tensor, Dimension::rows, 128};
  CHECK(local_shape({1, 1000, 8}, words, mesh) == Shape{1, 256, 8});
  CHECK(local_shape({1, 1100, 8}, words, mesh) == Shape{1, 384, 8});
}

TEST_CASE("A rank has a shard of each group of columns") {
  // 8 heads of queries and 4 of keys and of values, each 16 wide.
  Sharding heads{MeshAxis::tensor, Dimension::columns, 16};
  heads.column_groups = {8 * 16, 4 * 16, 4 * 16};
  CHECK(local_shape({1, 4, 16 * 16}, heads, mesh) == Shape{1, 4, 4 * 16});
  // 2 heads of keys on 4 ranks: each has one.
  heads.column_groups = {8 * 16, 2 * 16, 2 * 16};
  CHECK(local_shape({1, 4, 12 * 16}, heads, mesh) == Shape{1, 4, 4 * 16});
}

TEST_CASE("An axis of one rank does not cut") {
  Sharding layout{MeshAxis::expert, Dimension::rows};
  layout.partial = MeshAxis::tensor;
  Sharding here;
  here.partial = MeshAxis::tensor;
  CHECK(layout.on(mesh) == here);
  CHECK(text_of(layout) == "partial:tp,ep:rows");
  CHECK(text_of(Sharding{}) == "whole");
}

#include "models/network/collectives/group.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "sim/errors.hpp"

using namespace orrery;
using namespace orrery::models;

TEST_CASE("A tensor group of eight fills one node of eight alone") {
  const auto shape = shape_of({.stride = 1, .extent = 8, .world = 64, .gpus_per_node = 8});
  CHECK(shape ==
        GroupShape{
            .ranks = 8, .nodes = 1, .ranks_per_node = 8, .groups_per_node = 1, .node_stride = 1});
}

TEST_CASE("The data groups next to a tensor degree of eight put one rank on every node") {
  // 64 GPUs, tensor 8: rank r of data group t is node r; eight groups share each node.
  const auto shape = shape_of({.stride = 8, .extent = 8, .world = 64, .gpus_per_node = 8});
  CHECK(shape ==
        GroupShape{
            .ranks = 8, .nodes = 8, .ranks_per_node = 1, .groups_per_node = 8, .node_stride = 1});
}

TEST_CASE("The data groups next to a tensor degree of four put two ranks on every node") {
  // Ranks 0, 4, 8, ..., 28: nodes 0, 0, 1, 1, ..., 3, 3; groups 0-3 share each node.
  const auto shape = shape_of({.stride = 4, .extent = 8, .world = 64, .gpus_per_node = 8});
  CHECK(shape ==
        GroupShape{
            .ranks = 8, .nodes = 4, .ranks_per_node = 2, .groups_per_node = 4, .node_stride = 1});
}

TEST_CASE("An outer axis skips the nodes of the inner ones") {
  // Tensor 8, data 4, pipeline 4: a stage is 4 nodes, so an axis of stages strides 4 nodes.
  const auto shape = shape_of({.stride = 32, .extent = 4, .world = 128, .gpus_per_node = 8});
  CHECK(shape.nodes == 4);
  CHECK(shape.ranks_per_node == 1);
  CHECK(shape.node_stride == 4);
}

TEST_CASE("A world smaller than a node has only its own groups as siblings") {
  const auto shape = shape_of({.stride = 1, .extent = 2, .world = 4, .gpus_per_node = 8});
  CHECK(shape.nodes == 1);
  CHECK(shape.groups_per_node == 2);
}

TEST_CASE("A degree that does not divide the node is as bad as its worst group") {
  // Tensor 6 on nodes of 8, 24 ranks: 0-5 | 6-11 | 12-17 | 18-23. The second has 2 ranks on node 0
  // and 4 on node 1, the third 4 and 2: two nodes, two ranks on the emptier. Every node holds two.
  const auto shape = shape_of({.stride = 1, .extent = 6, .world = 24, .gpus_per_node = 8});
  CHECK(shape ==
        GroupShape{
            .ranks = 6, .nodes = 2, .ranks_per_node = 2, .groups_per_node = 2, .node_stride = 1});
}

TEST_CASE("Every member of every group is counted on some node") {
  // The law: ranks_per_node * nodes <= ranks, and siblings * ranks_per_node <= GPUs of a node.
  for (const int gpus : {1, 4, 8}) {
    for (int stride = 1; stride <= 12; ++stride) {
      for (int extent = 1; extent <= 12; ++extent) {
        const auto shape = shape_of({.stride = stride,
                                     .extent = extent,
                                     .world = 2 * stride * extent,
                                     .gpus_per_node = gpus});
        INFO("stride " << stride << " extent " << extent << " gpus " << gpus);
        CHECK(shape.ranks == extent);
        CHECK(shape.ranks_per_node * shape.nodes <= extent);
        CHECK((extent + shape.nodes - 1) / shape.nodes <= gpus);
        CHECK(shape.groups_per_node >= 1);
        CHECK(shape.groups_per_node <= gpus);
      }
    }
  }
}

TEST_CASE("The worst group of a world that repeats itself is that of all its groups") {
  for (const int gpus : {4, 8, 72}) {
    for (const int stride : {1, 2, 3, 6}) {
      for (const int extent : {2, 3, 5, 6, 7, 12}) {
        const int block = stride * extent;
        const int world = 5 * std::lcm(block, gpus) + block;
        const Axis axis{.stride = stride, .extent = extent, .world = world, .gpus_per_node = gpus};
        int nodes = 0;
        for (int i = 0; i < world; ++i) {
          if (i % block >= stride) continue;  // not the first of its group
          std::set<int> own;
          for (int member = 0; member < extent; ++member) own.insert((i + member * stride) / gpus);
          nodes = std::max(nodes, static_cast<int>(own.size()));
        }
        INFO("stride " << stride << " extent " << extent << " gpus " << gpus);
        CHECK(shape_of(axis).nodes == nodes);
        CHECK(neighbours_of(axis).nodes == std::min(2, nodes));
        Axis once = axis;
        once.world = std::lcm(block, gpus);
        CHECK(shape_of(axis) == shape_of(once));
      }
    }
  }
}

TEST_CASE("Pipeline neighbours on other nodes send from every GPU at once") {
  // Tensor 8: the stage's eight ranks of a node all send to the next node.
  const auto pair = neighbours_of({.stride = 8, .extent = 4, .world = 32, .gpus_per_node = 8});
  CHECK(pair ==
        GroupShape{
            .ranks = 2, .nodes = 2, .ranks_per_node = 1, .groups_per_node = 8, .node_stride = 1});
}

TEST_CASE("Of two stages to a node only the last one's ranks send to the next node") {
  // Tensor 4, pipeline 4 on nodes of 8: ranks 4-7 send to 8-11; 0-3 send inside the node.
  const auto pair = neighbours_of({.stride = 4, .extent = 4, .world = 16, .gpus_per_node = 8});
  CHECK(pair.nodes == 2);
  CHECK(pair.groups_per_node == 4);
}

TEST_CASE("A pipeline inside one node sends over its links") {
  const auto pair = neighbours_of({.stride = 2, .extent = 4, .world = 8, .gpus_per_node = 8});
  CHECK(pair.ranks == 2);
  CHECK(pair.nodes == 1);
}

TEST_CASE("An axis alone in its pipeline has no neighbour") {
  CHECK(neighbours_of({.stride = 8, .extent = 1, .world = 8, .gpus_per_node = 8}).ranks == 1);
}

TEST_CASE("An axis that does not divide its world breaks the contract") {
  CHECK_THROWS_WITH(shape_of({.stride = 1, .extent = 3, .world = 8, .gpus_per_node = 8}),
                    "the ranks of a world are a multiple of an axis' stride times its extent");
  CHECK_THROWS_AS(shape_of({.stride = 0, .extent = 3, .world = 8, .gpus_per_node = 8}),
                  ContractError);
}

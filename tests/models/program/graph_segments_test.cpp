#include "models/program/graph_segments.hpp"

#include <catch2/catch.hpp>

#include "tests/models/evaluation/programs.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

using GraphSegments = std::vector<GraphSegment>;

/// Segments of operations as they would be in a layer's forward block.
GraphSegments cut(std::vector<Operation> operations) {
  Program program;
  program.graphs = true;
  program.kinds.push_back({.name = "layer", .forward = 0, .backward = 1});
  program.blocks.push_back(block_of("layer.forward"));
  program.blocks[0].operations = std::move(operations);
  return graph_segments(program, layer_forward);
}

Operation kernel(std::vector<OpId> after = {}) {
  return operation_on(Lane::compute, std::move(after), false);
}

Operation collective(std::vector<OpId> after) {
  return operation_on(Lane::tensor, std::move(after), false);
}

TEST_CASE("Kernels in a row are one segment, a collective between them makes two") {
  CHECK(cut({kernel(), kernel({block_input}), kernel()}) == GraphSegments{{0, 3}});
  CHECK(cut({kernel(), kernel(), collective({1}), kernel({2})}) == GraphSegments{{0, 2}, {3, 4}});
  CHECK(cut({}).empty());
}

TEST_CASE("What waits for a collective begins a segment, what comes after does not wait again") {
  // The sum is launched after kernel 0; kernel 2 runs concurrently with it, kernel 3 needs it, and
  // so do kernels 4 and 5, for which it is there.
  CHECK(cut({kernel(), collective({0}), kernel(), kernel({1}), kernel({1}), kernel({1})}) ==
        GraphSegments{{0, 1}, {2, 3}, {3, 6}});
  // Who waits for the second of two has waited for the first.
  CHECK(cut({kernel(), collective({0}), collective({0}), kernel({2}), kernel({1})}) ==
        GraphSegments{{0, 1}, {3, 5}});
  CHECK(cut({kernel(), collective({0}), collective({0}), kernel({1}), kernel({2})}) ==
        GraphSegments{{0, 1}, {3, 4}, {4, 5}});
}

TEST_CASE("A kernel on which the host waits is launched alone") {
  Operation awaited = kernel();
  awaited.host_waits = true;
  CHECK(cut({kernel(), awaited, kernel()}) == GraphSegments{{0, 1}, {2, 3}});
}

/// Does an operation after the first wait for one of another queue that nothing before it awaits?
bool waits_inside(const Block& block, const GraphSegment& segment) {
  for (std::size_t i = segment.first + 1; i < segment.end; ++i) {
    for (const OpId id : block.operations[i].after) {
      if (id == block_input || block.operations[id].queue == Lane::compute) continue;
      bool known = false;
      for (std::size_t j = 0; j < i; ++j) {
        if (block.operations[j].queue != Lane::compute) continue;
        for (const OpId other : block.operations[j].after) {
          known = known || (other != block_input && other >= id &&
                            block.operations[other].queue == block.operations[id].queue);
        }
      }
      if (!known) return true;
    }
  }
  return false;
}

TEST_CASE("Every kernel of a block of the model is in one segment, and no collective is") {
  for (const char* software : {"megatron-lm", "orrery-cuda", "pytorch-eager"}) {
    for (const char* plan : {"tensor=1", "tensor=4,sequence=true,recompute=selective",
                             "tensor=8,recompute=full", "tensor=2,zero=3"}) {
      Question asked = question("gpt3-175b", "dgx-a100-80gb", plan, software);
      asked.plan.kernels.graphs = true;
      const Program program = lower(asked);
      INFO(software << " " << plan);
      for (std::size_t b = 0; b < program.blocks.size(); ++b) {
        const Block& block = program.blocks[b];
        std::vector<int> held(block.operations.size());
        for (const GraphSegment& each : graph_segments(program, b)) {
          for (std::size_t i = each.first; i < each.end; ++i) ++held[i];
          CHECK_FALSE(waits_inside(block, each));
        }
        for (std::size_t i = 0; i < held.size(); ++i) {
          const bool kernel = block.operations[i].queue == Lane::compute && b < first_step_block;
          CHECK(held[i] == (kernel ? 1 : 0));
        }
      }
    }
  }
}

TEST_CASE("Without tensor parallelism a block is one segment; without cuda_graphs there are none") {
  Plan plan;
  plan.kernels.graphs = true;
  const Program program = tiny_program(plan, 2);
  for (std::size_t b = 0; b < first_step_block; ++b) {
    CHECK(graph_segments(program, b) == GraphSegments{{0, program.blocks[b].operations.size()}});
  }
  for (std::size_t b = first_step_block; b < program.blocks.size(); ++b) {
    CHECK(graph_segments(program, b).empty());
  }
  CHECK(graph_segments(tiny_program({}, 2), layer_forward).empty());
}

}  // namespace
}  // namespace orrery::models

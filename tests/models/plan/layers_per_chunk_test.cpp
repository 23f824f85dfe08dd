#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "models/plan/layers_per_chunk.hpp"
#include "models/plan/plan.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

using Layers = std::vector<std::int64_t>;

Layers split(std::int64_t layers, std::int64_t pipeline, std::int64_t virtual_stages = 1,
             bool embedding_counts = false) {
  const Model model = tiny_gpt(layers);
  Plan plan;
  plan.pipeline = pipeline;
  plan.stages.virtual_stages = virtual_stages;
  plan.stages.embedding_counts = embedding_counts;
  return layers_per_chunk(plan, model);
}

}  // namespace

TEST_CASE("Layers that divide evenly are split evenly") {
  CHECK(split(96, 8) == Layers(8, 12));
  CHECK(split(96, 8, 3) == Layers(24, 4));
  CHECK(split(12, 1) == Layers{12});
}

TEST_CASE("Layers that remain go to the chunks after the first") {
  CHECK(split(34, 4) == Layers{8, 9, 9, 8});
  CHECK(split(33, 4) == Layers{8, 9, 8, 8});
  CHECK(split(35, 4) == Layers{9, 9, 9, 8});  // the first only when all between have one
  CHECK(split(7, 2) == Layers{4, 3});
}

TEST_CASE("A layer that predicts a further token takes a layer's slot on the last stage") {
  Model model = tiny_gpt(14);
  model.prediction_layers = 1;
  Plan plan;
  CHECK(layers_per_chunk(plan, model) == Layers{14});
  plan.pipeline = 4;  // 15 slots: 3 4 4 4, or 4 4 4 3, of which the last is one's
  CHECK(layers_per_chunk(plan, model) == Layers{4, 4, 4, 2});
  plan.pipeline = 5;  // 15 slots: 3 each
  CHECK(layers_per_chunk(plan, model) == Layers{3, 3, 3, 3, 2});
}

TEST_CASE("Llama 3 405B has one layer less on the first and the last of 16 stages") {
  // arXiv 2407.21783, section 3.3.2: 126 layers, so that both ends have room for tables.
  Layers expected(16, 8);
  expected.front() = expected.back() = 7;
  CHECK(split(126, 16, 1, true) == expected);
  CHECK(split(126, 16) == expected);  // 126 = 16 * 7 + 14: the rest fills the middle
}

TEST_CASE("Embedding and head take a layer's slot each") {
  CHECK(split(30, 4, 1, true) == Layers{7, 8, 8, 7});
  CHECK(split(32, 8, 1, true) == Layers{3, 5, 5, 4, 4, 4, 4, 3});
  CHECK(split(30, 4, 2, true) == Layers{3, 4, 4, 4, 4, 4, 4, 3});
  CHECK(split(5, 1, 1, true) == Layers{5});
}

TEST_CASE("Layers given by stage are taken as they stand") {
  const Model model = tiny_gpt(6);
  Plan plan;
  plan.pipeline = 2;
  plan.stages.layers = {2, 4};
  CHECK(layers_per_chunk(plan, model) == Layers{2, 4});
}

TEST_CASE("No layer is lost and no two chunks differ by more than one slot") {
  for (std::int64_t layers = 1; layers <= 60; ++layers) {
    for (std::int64_t chunks = 1; chunks <= layers; ++chunks) {
      const Layers even = split(layers, chunks);
      CHECK(std::accumulate(even.begin(), even.end(), std::int64_t{0}) == layers);
      const auto [least, most] = std::minmax_element(even.begin(), even.end());
      CHECK(*most - *least <= 1);
      Layers slots = split(layers, chunks, 1, true);
      slots.front() += 1;
      slots.back() += 1;
      CHECK(std::accumulate(slots.begin(), slots.end(), std::int64_t{0}) == layers + 2);
    }
  }
}

}  // namespace orrery::models

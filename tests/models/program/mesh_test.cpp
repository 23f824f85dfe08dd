#include "models/program/mesh.hpp"

#include <catch2/catch.hpp>

namespace orrery::models {
namespace {

using Ranks = std::vector<std::int64_t>;

TEST_CASE("Tensor ranks are next to each other, then context, data and stages") {
  // 2 tensor x 3 context x 2 data x 2 stages: rank 17 = 1 + 2 (2 + 3 (0 + 2 * 1)).
  const Mesh mesh{2, 2, 2, 3};
  CHECK(mesh.ranks() == 24);
  CHECK(mesh.coordinate(17, MeshAxis::tensor) == 1);
  CHECK(mesh.coordinate(17, MeshAxis::context) == 2);
  CHECK(mesh.coordinate(17, MeshAxis::data) == 0);
  CHECK(mesh.stage_of(17) == 1);
  CHECK(mesh.stride(MeshAxis::data) == 6);
  CHECK(mesh.moved(17, MeshAxis::data, 1) == 23);
  CHECK(mesh.first_rank(1) == 12);
}

TEST_CASE("Members agree with a rank on the axes that are not spanned") {
  const Mesh mesh{2, 3, 4};
  CHECK(mesh.members(9, MeshAxis::tensor) == Ranks{8, 9});
  CHECK(mesh.members(9, MeshAxis::data) == Ranks{7, 9, 11});
  CHECK(mesh.members(9, MeshAxis::pipeline) == Ranks{3, 9, 15, 21});
  CHECK(mesh.members(9, {MeshAxis::tensor, MeshAxis::pipeline}).size() == 8);
  const Ranks ends{0, 3};
  CHECK(mesh.members(9, MeshAxis::pipeline, ends) == Ranks{3, 21});
  const Ranks alone{0, 0};
  CHECK(Mesh{2, 3, 1}.members(4, MeshAxis::pipeline, alone) == Ranks{4});
}

TEST_CASE("The experts' view has as many ranks of a stage as the dense one") {
  const Mesh mesh{2, 3, 2, 2};
  const AxisSet experts{MeshAxis::expert_tensor, MeshAxis::expert, MeshAxis::expert_data};
  CHECK(mesh.degree(experts) == mesh.stage_ranks());
  CHECK(mesh.members(13, experts) ==
        mesh.members(13, {MeshAxis::tensor, MeshAxis::context, MeshAxis::data}));
}

TEST_CASE("Every rank is a member of its own groups, and each group is one group") {
  const Mesh mesh{3, 2, 2, 2};
  for (const AxisRow& row : axes) {
    for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      const Ranks group = mesh.members(rank, row.axis);
      REQUIRE(std::ssize(group) == mesh.degree(row.axis));
      for (const std::int64_t other : group) CHECK(mesh.members(other, row.axis) == group);
    }
  }
}

}  // namespace
}  // namespace orrery::models

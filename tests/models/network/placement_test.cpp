#include "models/network/placement.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace orrery::models {
namespace {

using enum MeshAxis;
using Ranks = std::vector<std::int64_t>;

/// Megatron's "tp-cp-ep-dp-pp" and the like, as indices into those five.
AxisOrder order_of(const std::vector<int>& names) {
  const std::vector<std::vector<MeshAxis>> axes{{tensor, expert_tensor},
                                                {context_heads, context},
                                                {expert},
                                                {data, replica, expert_data},
                                                {pipeline}};
  std::vector<MeshAxis> all;
  for (const int name : names) {
    const std::vector<MeshAxis>& of = axes[static_cast<std::size_t>(name)];
    all.insert(all.end(), of.begin(), of.end());
  }
  return AxisOrder{all};
}

/// Groups of places that differ along one of five axes of these sizes alone.
std::set<Ranks> groups_by(const std::vector<int>& names, const std::vector<int>& sizes, int along) {
  int world = 1;
  for (const int size : sizes) world *= size;
  std::map<std::vector<int>, Ranks> found;
  for (int place = 0; place < world; ++place) {
    std::vector<int> others;
    int left = place;
    for (const int name : names) {
      const int size = sizes[static_cast<std::size_t>(name)];
      others.push_back(name == along ? 0 : left % size);
      left /= size;
    }
    found[others].push_back(place);
  }
  std::set<Ranks> groups;
  for (const auto& [key, group] : found) groups.insert(group);
  return groups;
}

std::set<Ranks> groups_of(const AxisOrder& order, const Mesh& mesh, MeshAxis along) {
  std::set<Ranks> groups;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    Ranks places;
    for (const std::int64_t each : order.members(mesh, rank, along)) {
      places.push_back(order.place(mesh, each));
    }
    std::sort(places.begin(), places.end());
    groups.insert(places);
  }
  return groups;
}

TEST_CASE("Experts' groups are those of an order, by hand") {
  // 2 tensor x 4 data ranks; 2 experts' groups, whole experts.
  const Mesh mesh = Mesh{2, 4, 1}.with_experts(2, 1);
  CHECK(groups_of(AxisOrder{}, mesh, expert) == std::set<Ranks>{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  const AxisOrder data_first = order_of({0, 1, 3, 2, 4});  // tp-cp-dp-ep-pp
  CHECK(groups_of(data_first, mesh, expert) == std::set<Ranks>{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(groups_of(data_first, mesh, expert_data) == std::set<Ranks>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(groups_of(data_first, mesh, tensor) == std::set<Ranks>{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
}

TEST_CASE("Both views are counted by the same order") {
  const Mesh mesh = Mesh{2, 4, 3, 2}.with_experts(4, 1);
  const std::vector<int> dense{2, 2, 1, 4, 3}, experts{1, 1, 4, 4, 3};
  std::vector<int> names{0, 1, 2, 3, 4};
  int orders = 0;
  do {
    const AxisOrder order = order_of(names);
    if (!order.keeps_stages(mesh)) {
      CHECK(names.back() != 4);
      continue;
    }
    ++orders;
    CHECK(groups_of(order, mesh, tensor) == groups_by(names, dense, 0));
    CHECK(groups_of(order, mesh, data) == groups_by(names, dense, 3));
    CHECK(groups_of(order, mesh, expert) == groups_by(names, experts, 2));
    CHECK(groups_of(order, mesh, expert_data) == groups_by(names, experts, 3));
    CHECK(groups_of(order, mesh, pipeline) == groups_by(names, dense, 4));
  } while (std::next_permutation(names.begin(), names.end()));
  CHECK(orders >= 24);  // those that end with pp, and more
}

TEST_CASE("Stages that two views count apart are seen") {
  const Mesh mesh = Mesh{2, 8, 2}.with_experts(8, 1);
  CHECK(order_of({0, 1, 2, 3, 4}).keeps_stages(mesh));
  CHECK(!order_of({0, 1, 2, 4, 3}).keeps_stages(mesh));  // 2 ranks before pp, and 8
  CHECK(order_of({0, 1, 2, 4, 3}).keeps_stages(Mesh{8, 2, 2}.with_experts(8, 1)));
}

TEST_CASE("A line of experts' ranks lies as the order says") {
  const Mesh mesh = Mesh{1, 16, 1}.with_experts(4, 1);
  const Communicator along{.name = "ep", .axes = expert};
  const GroupShape near = shape_of(mesh, along, 4);
  CHECK(near.nodes == 1);
  const GroupShape far = shape_of(mesh, along, 4, order_of({0, 1, 3, 2, 4}));
  CHECK(far.ranks == 4);
  CHECK(far.nodes == 4);  // 0, 4, 8, 12: one on each node
}

}  // namespace
}  // namespace orrery::models

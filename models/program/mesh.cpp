#include "models/program/mesh.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::models {

Mesh::Mesh(const Degrees& of) : Mesh{} {
  degrees_[index(MeshAxis::tensor)] = degrees_[index(MeshAxis::expert_tensor)] = of.tensor;
  degrees_[index(MeshAxis::context_heads)] = of.context_heads;
  degrees_[index(MeshAxis::context)] = of.context;
  degrees_[index(MeshAxis::data)] = of.data;
  degrees_[index(MeshAxis::replica)] = of.replica;
  degrees_[index(MeshAxis::expert_data)] = of.context_heads * of.context * of.data * of.replica;
  degrees_[index(MeshAxis::pipeline)] = of.pipeline;
}

Mesh Mesh::with_experts(std::int64_t expert, std::int64_t expert_tensor) const {
  ensure(stage_ranks() % (expert * expert_tensor) == 0,
         "experts are cut over a divisor of a stage's ranks");
  Mesh folded = *this;
  folded.degrees_[index(MeshAxis::expert_tensor)] = expert_tensor;
  folded.degrees_[index(MeshAxis::expert)] = expert;
  folded.degrees_[index(MeshAxis::expert_data)] = stage_ranks() / (expert * expert_tensor);
  return folded;
}

std::int64_t Mesh::degree(AxisSet set) const {
  std::int64_t product = 1;
  for (const AxisRow& each : axes) product *= set.has(each.axis) ? degree(each.axis) : 1;
  return product;
}

std::int64_t Mesh::stride(MeshAxis axis) const {
  if (axis == MeshAxis::pipeline) return stage_ranks();
  std::int64_t product = 1;
  for (const AxisRow& faster : axes) {
    if (faster.axis == axis) break;
    if (faster.view == row_of(axis).view) product *= degree(faster.axis);
  }
  return product;
}

std::vector<std::int64_t> Mesh::members(std::int64_t rank, AxisSet set,
                                        std::span<const std::int64_t> stages) const {
  std::vector<std::int64_t> found{rank};
  for (const AxisRow& each : axes) {
    if (!set.has(each.axis)) continue;
    std::vector<std::int64_t> places(stages.begin(), stages.end());
    if (each.axis != MeshAxis::pipeline || stages.empty()) {
      places.clear();
      for (std::int64_t i = 0; i < degree(each.axis); ++i) places.push_back(i);
    }
    std::vector<std::int64_t> wider;
    for (const std::int64_t to : places) {
      for (const std::int64_t from : found) wider.push_back(moved(from, each.axis, to));
    }
    found = std::move(wider);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace orrery::models

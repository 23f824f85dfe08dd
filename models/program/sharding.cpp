#include "models/program/sharding.hpp"

#include <algorithm>
#include <string_view>

#include "sim/errors.hpp"

namespace orrery::models {

namespace {

bool is_along(const std::optional<Cut>& cut, Dimension dimension) {
  return cut && cut->dimension == dimension;
}

}  // namespace

Sharding::Sharding(MeshAxis axis, Dimension dimension, std::int64_t unit) {
  ensure(unit > 0 && unit <= 0xffff, "the unit of a cut has 16 bits");
  cut(axis) = Cut{dimension, static_cast<std::uint16_t>(unit)};
}

AxisSet Sharding::axes(Dimension dimension) const {
  AxisSet set;
  for (const AxisRow& each : models::axes) {
    if (is_along(cut(each.axis), dimension)) set = set | each.axis;
  }
  return set;
}

AxisSet Sharding::axes() const {
  return axes(Dimension::matrices) | axes(Dimension::rows) | axes(Dimension::columns);
}

Sharding Sharding::on(const Mesh& mesh) const {
  Sharding here = *this;
  for (const AxisRow& each : models::axes) {
    if (mesh.degree(each.axis) > 1) continue;
    here.cut(each.axis).reset();
    here.partial = here.partial.without(each.axis);
  }
  if (here.axes(Dimension::columns).empty()) here.column_groups = {};
  return here;
}

std::int64_t local_extent(std::int64_t extent, const Sharding& sharding, Dimension dimension,
                          const Mesh& mesh) {
  std::int64_t unit = 1;
  for (const std::optional<Cut>& each : sharding.cuts) {
    if (is_along(each, dimension)) unit = std::max<std::int64_t>(unit, each->unit);
  }
  const std::int64_t of_all = unit * mesh.degree(sharding.axes(dimension));
  return (extent + of_all - 1) / of_all * unit;
}

Shape local_shape(const Shape& uncut, const Sharding& sharding, const Mesh& mesh) {
  Shape local = uncut;
  for (const Dimension each : {Dimension::matrices, Dimension::rows, Dimension::columns}) {
    if (sharding.axes(each).empty()) continue;
    std::int64_t& extent = local[static_cast<std::size_t>(each)];
    if (each != Dimension::columns || !sharding.grouped()) {
      extent = local_extent(extent, sharding, each, mesh);
      continue;
    }
    extent = 0;
    for (const std::int64_t group : sharding.column_groups) {
      extent += local_extent(group, sharding, each, mesh);
    }
  }
  return local;
}

std::int64_t shard_of(std::int64_t rank, const Sharding& sharding, Dimension dimension,
                      const Mesh& mesh) {
  std::int64_t index = 0;
  for (auto each = models::axes.rbegin(); each != models::axes.rend(); ++each) {
    if (!is_along(sharding.cut(each->axis), dimension)) continue;
    index = index * mesh.degree(each->axis) + mesh.coordinate(rank, each->axis);
  }
  return index;
}

std::string text_of(const Sharding& sharding) {
  constexpr std::string_view dimensions[] = {"matrices", "rows", "columns"};
  std::string text;
  const auto add = [&](std::string_view first, std::string_view second) {
    if (!text.empty()) text += ',';
    text.append(first).append(":").append(second);
  };
  for (const AxisRow& each : axes) {
    const std::optional<Cut>& cut = sharding.cut(each.axis);
    if (cut) add(each.short_name, dimensions[static_cast<int>(cut->dimension)]);
    if (sharding.partial.has(each.axis)) add("partial", each.short_name);
  }
  return text.empty() ? "whole" : text;
}

}  // namespace orrery::models

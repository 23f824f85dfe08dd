#pragma once
// How an operand is cut over the axes of the mesh: which axis cuts which dimension, and over which
// axes the ranks hold partial sums. Along all other axes it is replicated. The shape on one rank
// follows from the uncut shape, the sharding and the mesh. The data axes are left out: a block
// describes one replica.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "models/program/mesh.hpp"

namespace orrery::models {

using Shape = std::array<std::int64_t, 3>;
/// The dimensions of a Shape, in order.
enum class Dimension : std::uint8_t { matrices, rows, columns };

/// One axis's cut of a dimension.
struct Cut {
  Dimension dimension = Dimension::rows;
  /// Shards are whole multiples of it (a head's width; the vocabulary's 128), the last ones padded.
  std::uint16_t unit = 1;
  friend constexpr bool operator==(const Cut&, const Cut&) = default;
};

struct Sharding {
  std::array<std::optional<Cut>, axis_count> cuts{};  // by axis; of one dimension, the last axis
                                                      // is the outermost
  AxisSet partial;  // axes over whose ranks the operand is held as partial sums
  /// Columns that are cut group by group (queries, keys and values; gate and up): a rank holds a
  /// shard of every group. None: the columns are cut as a whole.
  std::array<std::int64_t, 3> column_groups{};

  Sharding() = default;  // whole: cut on no axis
  Sharding(MeshAxis axis, Dimension dimension, std::int64_t unit = 1);

  const std::optional<Cut>& cut(MeshAxis axis) const { return cuts[static_cast<unsigned>(axis)]; }
  std::optional<Cut>& cut(MeshAxis axis) { return cuts[static_cast<unsigned>(axis)]; }
  bool grouped() const { return column_groups[0] > 0; }
  /// The axes that cut this dimension; the axes that cut any dimension.
  AxisSet axes(Dimension dimension) const;
  AxisSet axes() const;
  /// The same sharding on this mesh: axes of degree 1 are dropped.
  Sharding on(const Mesh& mesh) const;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

/// Elements that one rank holds along a dimension of `extent` elements, padding included.
std::int64_t local_extent(std::int64_t extent, const Sharding& sharding, Dimension dimension,
                          const Mesh& mesh);
Shape local_shape(const Shape& uncut, const Sharding& sharding, const Mesh& mesh);

/// Index of the shard of a dimension that a rank holds.
std::int64_t shard_of(std::int64_t rank, const Sharding& sharding, Dimension dimension,
                      const Mesh& mesh);

/// "tp:rows", "partial:tp"; "whole" where nothing is cut.
std::string text_of(const Sharding& sharding);

}  // namespace orrery::models

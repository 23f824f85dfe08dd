#pragma once
// Ranks as coordinates on named axes. The ranks of one stage are seen in two ways, as Megatron
// folds them: dense layers by tensor x context x data, experts by expert tensor x expert x expert
// data. The products are equal, the factors need not be; the pipeline is outside both.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/program/ids.hpp"

namespace orrery::models {

/// In each view the fastest first; the pipeline is slowest.
enum class MeshAxis : std::uint8_t {
  tensor,
  context,
  data,
  expert_tensor,
  expert,
  expert_data,
  pipeline
};
inline constexpr int axis_count = 7;

enum class MeshView : std::uint8_t { dense, experts, stages };

/// One row per axis: everything that is particular to it.
struct AxisRow {
  MeshAxis axis;
  std::string_view key;         // "tensor": as plans and texts write it
  std::string_view short_name;  // "tp"
  TimeClass time_class;         // of collectives along it
  MeshView view;
};
inline constexpr std::array<AxisRow, axis_count> axes{{
    {MeshAxis::tensor, "tensor", "tp", TimeClass::tp, MeshView::dense},
    {MeshAxis::context, "context", "cp", TimeClass::other_comm, MeshView::dense},
    {MeshAxis::data, "data", "dp", TimeClass::dp, MeshView::dense},
    {MeshAxis::expert_tensor, "expert_tensor", "etp", TimeClass::tp, MeshView::experts},
    {MeshAxis::expert, "expert", "ep", TimeClass::other_comm, MeshView::experts},
    {MeshAxis::expert_data, "expert_data", "edp", TimeClass::dp, MeshView::experts},
    {MeshAxis::pipeline, "pipeline", "pp", TimeClass::pp, MeshView::stages},
}};
constexpr const AxisRow& row_of(MeshAxis axis) {
  return axes[static_cast<std::size_t>(axis)];
}

/// Any of the axes.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  template <class... Axes>
  constexpr AxisSet(MeshAxis first, Axes... more) {  // an axis is a set of one
    for (const MeshAxis each : {first, more...}) bits_ |= bit(each);
  }

  constexpr bool has(MeshAxis axis) const { return (bits_ & bit(axis)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool includes(AxisSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr AxisSet without(AxisSet other) const {
    AxisSet set;
    set.bits_ = static_cast<std::uint8_t>(bits_ & ~other.bits_);
    return set;
  }
  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(AxisSet, AxisSet) = default;

 private:
  static constexpr std::uint8_t bit(MeshAxis axis) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(axis));
  }
  std::uint8_t bits_ = 0;
};

/// Degrees of the axes, and ranks as their coordinates.
class Mesh {
 public:
  Mesh() { degrees_.fill(1); }
  /// Without experts: all ranks of a stage hold the same experts' part, in the order of the dense
  /// view.
  Mesh(std::int64_t tensor, std::int64_t data, std::int64_t pipeline, std::int64_t context = 1);

  std::int64_t degree(MeshAxis axis) const { return degrees_[index(axis)]; }
  /// Product of the degrees: how many ranks differ in these coordinates alone.
  std::int64_t degree(AxisSet set) const;
  /// Ranks from one coordinate of an axis to the next.
  std::int64_t stride(MeshAxis axis) const;
  std::int64_t ranks() const { return stage_ranks() * degree(MeshAxis::pipeline); }
  std::int64_t stage_ranks() const {
    return degree(MeshAxis::tensor) * degree(MeshAxis::context) * degree(MeshAxis::data);
  }

  std::int64_t coordinate(std::int64_t rank, MeshAxis axis) const {
    return rank / stride(axis) % degree(axis);
  }
  std::int64_t stage_of(std::int64_t rank) const { return coordinate(rank, MeshAxis::pipeline); }
  /// The rank that differs from this one in one coordinate.
  std::int64_t moved(std::int64_t rank, MeshAxis axis, std::int64_t to) const {
    return rank + (to - coordinate(rank, axis)) * stride(axis);
  }
  std::int64_t first_rank(std::int64_t stage) const { return stage * stage_ranks(); }
  /// Ranks that agree with `rank` on all other axes of the same view, ascending. `stages` names
  /// the coordinates of the pipeline axis, where it is spanned and not all of it is meant.
  std::vector<std::int64_t> members(std::int64_t rank, AxisSet set,
                                    std::span<const std::int64_t> stages = {}) const;

 private:
  static constexpr std::size_t index(MeshAxis axis) { return static_cast<std::size_t>(axis); }

  std::array<std::int64_t, axis_count> degrees_{};
};

/// A group of ranks named by the axes that it spans; members follow from a rank's coordinates.
struct Communicator {
  std::string name;  // "tp", "dp", "world", "tie", "pp_f"
  CommunicatorRole role = CommunicatorRole::tensor;
  AxisSet axes;
  std::vector<std::int64_t> stages = {};  // of the pipeline axis; empty: all of them
  Lane lane = Lane::data;                 // of its collectives; transfers have a wire of their own
  TimeClass time_class = TimeClass::other_comm;
};

}  // namespace orrery::models

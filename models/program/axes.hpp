#pragma once
// The axes of parallelism, as a table of names and time classes, and sets of axes. Degrees are in
// mesh.hpp.

#include <array>
#include <cstdint>
#include <string_view>

#include "models/program/ids.hpp"

namespace orrery::models {

/// Within each view the fastest-varying axis comes first; the pipeline varies slowest.
enum class MeshAxis : std::uint8_t {
  tensor,
  context_heads,
  context,
  data,
  replica,
  expert_tensor,
  expert,
  expert_data,
  pipeline
};
inline constexpr int axis_count = 9;

/// How the ranks of a stage are factored into axes: for dense layers, for experts. The pipeline is
/// outside both.
enum class MeshView : std::uint8_t { dense, experts, stages };

/// One row per axis: everything that is particular to it.
struct AxisRow {
  MeshAxis axis;
  std::string_view key;         // "tensor": as plans and program texts write it
  std::string_view short_name;  // "tp"
  TimeClass time_class;         // of collectives along this axis
  MeshView view;
};
inline constexpr std::array<AxisRow, axis_count> axes{{
    {MeshAxis::tensor, "tensor", "tp", TimeClass::tp, MeshView::dense},
    {MeshAxis::context_heads, "context_heads", "cph", TimeClass::cp, MeshView::dense},
    {MeshAxis::context, "context", "cp", TimeClass::cp, MeshView::dense},
    {MeshAxis::data, "data", "dp", TimeClass::dp, MeshView::dense},
    {MeshAxis::replica, "replica", "rep", TimeClass::dp, MeshView::dense},
    {MeshAxis::expert_tensor, "expert_tensor", "etp", TimeClass::tp, MeshView::experts},
    {MeshAxis::expert, "expert", "ep", TimeClass::ep, MeshView::experts},
    {MeshAxis::expert_data, "expert_data", "edp", TimeClass::dp, MeshView::experts},
    {MeshAxis::pipeline, "pipeline", "pp", TimeClass::pp, MeshView::stages},
}};
constexpr const AxisRow& row_of(MeshAxis axis) {
  return axes[static_cast<std::size_t>(axis)];
}

/// A set of axes.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  template <class... Axes>
  constexpr AxisSet(MeshAxis first, Axes... more) {  // implicit: an axis is a set of one
    for (const MeshAxis each : {first, more...}) bits_ |= bit(each);
  }

  constexpr bool has(MeshAxis axis) const { return (bits_ & bit(axis)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool includes(AxisSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr AxisSet without(AxisSet other) const {
    AxisSet set;
    set.bits_ = static_cast<std::uint16_t>(bits_ & ~other.bits_);
    return set;
  }
  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(AxisSet, AxisSet) = default;

 private:
  static constexpr std::uint16_t bit(MeshAxis axis) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(axis));
  }
  std::uint16_t bits_ = 0;
};

/// Axes that span all ranks of a stage.
inline constexpr AxisSet dense_axes{MeshAxis::tensor, MeshAxis::context_heads, MeshAxis::context,
                                    MeshAxis::data, MeshAxis::replica};
/// Axes that cut the sequence.
inline constexpr AxisSet context_axes{MeshAxis::context_heads, MeshAxis::context};
/// Axes of data parallelism: ranks along them hold copies of the parameters, or shards of a copy.
inline constexpr AxisSet data_axes{MeshAxis::data, MeshAxis::replica};

}  // namespace orrery::models

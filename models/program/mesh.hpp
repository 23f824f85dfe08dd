#pragma once
// Ranks as coordinates on named axes. The ranks of one stage are seen in two ways, as Megatron
// folds them: dense layers by tensor x context x data, experts by expert tensor x expert x expert
// data. The products are equal, the factors need not be; the pipeline is outside both. Context and
// data are two axes each: a group's sequence is cut between ranks that trade it for heads, and
// along them; state is sharded between some replicas, and copied along the others.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/program/axes.hpp"

namespace orrery::models {

/// Degrees of the axes, and ranks as their coordinates.
class Mesh {
 public:
  /// Without experts: all ranks of a stage hold the same experts' part, in the order of the dense
  /// view.
  struct Degrees {
    std::int64_t tensor = 1, context_heads = 1, context = 1, data = 1, replica = 1, pipeline = 1;
  };

  Mesh() { degrees_.fill(1); }
  explicit Mesh(const Degrees& degrees);
  Mesh(std::int64_t tensor, std::int64_t data, std::int64_t pipeline, std::int64_t context = 1)
      : Mesh{Degrees{.tensor = tensor, .context = context, .data = data, .pipeline = pipeline}} {}
  /// The same ranks with experts over `expert` of them, each cut over `expert_tensor`.
  /// Errors  their product does not divide the ranks of a stage: ContractError
  Mesh with_experts(std::int64_t expert, std::int64_t expert_tensor) const;

  std::int64_t degree(MeshAxis axis) const { return degrees_[index(axis)]; }
  /// Product of the degrees: how many ranks differ in these coordinates alone.
  std::int64_t degree(AxisSet set) const;
  /// Ranks from one coordinate of an axis to the next.
  std::int64_t stride(MeshAxis axis) const;
  std::int64_t ranks() const { return stage_ranks() * degree(MeshAxis::pipeline); }
  std::int64_t stage_ranks() const { return degree(dense_axes); }

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

/// The groups of ranks of a Program, one for each role: those that every one has, and those along
/// the axes of context and copies that are used. What replicas hold alike, context ranks do, too:
/// "dp" spans both, but not the copies of what is sharded.
/// Source  Megatron-LM, parallel_state.py: gradients are reduced over data and context together
std::vector<Communicator> communicators_of(const Mesh& mesh);

}  // namespace orrery::models

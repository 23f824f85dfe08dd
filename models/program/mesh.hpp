#pragma once
// Ranks as coordinates on named axes, and the communicators along them. The ranks of one stage are
// factored in two ways, as in Megatron's parallel folding: dense layers by tensor x context x data,
// experts by expert tensor x expert x expert data. The products are equal, the factors need not be;
// the pipeline is outside both. Context is two axes: `context_heads` ranks exchange sequence for
// heads (Ulysses), `context` ranks hold different pieces of the sequence. Data parallelism is two
// axes: state is sharded along `data` and copied along `replica` (HSDP). Where ranks are placed on
// nodes is left out.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/program/axes.hpp"

namespace orrery::models {

/// Degrees of the axes, and the mapping between ranks and coordinates.
class Mesh {
 public:
  /// Without expert parallelism: experts are cut over `tensor` and replicated over all other ranks
  /// of a stage.
  struct Degrees {
    std::int64_t tensor = 1, context_heads = 1, context = 1, data = 1, replica = 1, pipeline = 1;
  };

  Mesh() { degrees_.fill(1); }
  explicit Mesh(const Degrees& degrees);
  Mesh(std::int64_t tensor, std::int64_t data, std::int64_t pipeline, std::int64_t context = 1)
      : Mesh{Degrees{.tensor = tensor, .context = context, .data = data, .pipeline = pipeline}} {}
  /// The same ranks with experts distributed over `expert` ranks, each cut over `expert_tensor`.
  /// Errors  their product does not divide the ranks of a stage: ContractError
  Mesh with_experts(std::int64_t expert, std::int64_t expert_tensor) const;

  std::int64_t degree(MeshAxis axis) const { return degrees_[index(axis)]; }
  /// Product of the degrees: the size of a group of ranks along these axes.
  std::int64_t degree(AxisSet set) const;
  /// Difference in rank between neighbouring coordinates of an axis.
  std::int64_t stride(MeshAxis axis) const;
  std::int64_t ranks() const { return stage_ranks() * degree(MeshAxis::pipeline); }
  std::int64_t stage_ranks() const { return degree(dense_axes); }

  std::int64_t coordinate(std::int64_t rank, MeshAxis axis) const {
    return rank / stride(axis) % degree(axis);
  }
  std::int64_t stage_of(std::int64_t rank) const { return coordinate(rank, MeshAxis::pipeline); }
  /// The rank with coordinate `to` on `axis` and otherwise the coordinates of `rank`.
  std::int64_t moved(std::int64_t rank, MeshAxis axis, std::int64_t to) const {
    return rank + (to - coordinate(rank, axis)) * stride(axis);
  }
  std::int64_t first_rank(std::int64_t stage) const { return stage * stage_ranks(); }
  /// The group of `rank` along the axes of `set`, ascending: ranks with its coordinates on all
  /// other axes of the same view. `stages` restricts the pipeline axis, where `set` has it; empty:
  /// all.
  std::vector<std::int64_t> members(std::int64_t rank, AxisSet set,
                                    std::span<const std::int64_t> stages = {}) const;

 private:
  static constexpr std::size_t index(MeshAxis axis) { return static_cast<std::size_t>(axis); }

  std::array<std::int64_t, axis_count> degrees_{};
};

/// Elements of each of so many equal pieces, of which the last is padded.
constexpr std::int64_t equal_piece(std::int64_t elements, std::int64_t pieces) {
  return (elements + pieces - 1) / pieces;
}

/// Groups of ranks along a set of axes; the members of a group follow from a rank's coordinates.
struct Communicator {
  std::string name;  // "tp", "dp", "world", "tie", "pp_f"
  CommunicatorRole role = CommunicatorRole::tensor;
  AxisSet axes;
  std::vector<std::int64_t> stages = {};  // coordinates on the pipeline axis; empty: all of them
  Lane lane = Lane::data;  // of its collectives; transfers between stages have queues of their own
  TimeClass time_class = TimeClass::other_comm;
};

/// The communicators of a Program, one for each role: those that every Program has, and those along
/// context and replica axes with several ranks. "dp" spans data and context axes, because context
/// ranks replicate parameters, too; it does not span the replica axis of HSDP.
/// Source  Megatron-LM, parallel_state.py: gradients are reduced over data and context together
std::vector<Communicator> communicators_of(const Mesh& mesh);

}  // namespace orrery::models

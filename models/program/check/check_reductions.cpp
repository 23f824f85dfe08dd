#include <fmt/format.h>

#include <algorithm>

#include "models/program/check/check.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Checks the gradient reductions of one class.
class ReductionCheck : public ClassCheck {
 public:
  ReductionCheck(const Program& program, std::uint32_t c)
      : ClassCheck{program, c},
        rounds_{program.sharding.gradients ? program.step.micro_batches : 1} {}

  void run() {
    walk(program_, class_, *this);
    if (replicas() == 1 && expert_replicas() == 1) return;
    for (const std::uint32_t chunk : ranks_.chunks) {
      for (std::int64_t round = 0; round < rounds_; ++round) complete(chunk, round);
    }
    const std::int64_t due = due_elements() * rounds_;
    if (elements_ != due) {
      throw ContractError{fmt::format("stage {}: {} gradients are reduced, it has {}", ranks_.stage,
                                      elements_, due)};
    }
    final();
  }

  using ClassCheck::joint;
  void reduce_gradient(Token i, const Instruction& each) {
    const JointCollective& joint = program_.collectives[each.target];
    const Communicator& group = program_.communicators[joint.communicator];
    if (group.role == CommunicatorRole::replica) return between_copies(i, joint);
    if (program_.mesh.degree(group.axes) == 1) refuse(i, "there is only one replica");
    if (group.role != CommunicatorRole::data && group.role != CommunicatorRole::expert_data) {
      refuse(i, fmt::format("communicator {} does not span data-parallel replicas", group.name));
    }
    const bool moves = joint.kind == Collective::all_gather || joint.kind == Collective::all_to_all;
    const bool sums = !moves && !joint.low_rank_factor;
    const std::int64_t bytes = joint.elements * hardware::bits(joint.dtype) / 8;
    if (sums && joint.bytes.count() != bytes) {
      refuse(i, fmt::format("{} bytes for {} gradients, which have {}", joint.bytes.count(),
                            joint.elements, bytes));
    }
    elements_ += joint.elements;
    reductions_.push_back(i);
  }

 private:
  std::int64_t replicas() const { return program_.mesh.degree(program_.sharding.over); }
  std::int64_t expert_replicas() const {
    return program_.reduces_experts() ? program_.mesh.degree(MeshAxis::expert_data) : 1;
  }
  const LayerKind& kind_of(std::int64_t layer) const {
    return program_.kinds[program_.kind_of_layer[static_cast<std::size_t>(layer)]];
  }

  static std::int64_t trained(const LayerKind& kind, MeshView view) {
    const std::int64_t experts = kind.expert_parameters;
    return view == MeshView::experts ? experts : kind.parameters - experts;
  }

  /// Number of parameters that have replicas, so that their gradients must be reduced.
  std::int64_t due_elements() const {
    std::int64_t experts = 0;
    for (const std::uint32_t chunk : ranks_.chunks) {
      const Chunk& own = program_.chunks[chunk];
      for (std::int64_t i = 0; i < own.layers; ++i) {
        experts += kind_of(own.first_layer + i).expert_parameters;
      }
      if (own.has_head) experts += program_.kind(ModelPart::head).expert_parameters;
    }
    return (replicas() > 1 ? ranks_.parameters - experts : 0) +
           (expert_replicas() > 1 ? experts : 0);
  }
  const JointCollective& joint(Token i) const {
    return program_.collectives[ranks_.instructions[i].target];
  }
  /// A reduction between HSDP copies must cover the shards of the reduction before it.
  void between_copies(Token i, const JointCollective& copies) const {
    const std::int64_t shards = replicas();
    const bool pieces = !reductions_.empty() &&
                        joint(reductions_.back()).first_unit == copies.first_unit &&
                        equal_piece(joint(reductions_.back()).elements, shards) == copies.elements;
    if (!pieces) refuse(i, "does not cover the shards of the reduction before it");
  }

  /// Each layer of a chunk that trains something is in one reduced bucket, and so are its experts
  /// where they have replicas of their own: once in each micro-batch where gradients are sharded,
  /// otherwise once.
  void complete(std::uint32_t chunk, std::int64_t round) const {
    complete(chunk, round, MeshView::dense);
    if (expert_replicas() > 1) complete(chunk, round, MeshView::experts);
  }

  void complete(std::uint32_t chunk, std::int64_t round, MeshView view) const {
    if (view == MeshView::dense && replicas() == 1) return;
    const Chunk& own = program_.chunks[chunk];
    std::vector<int> times(static_cast<std::size_t>(own.layers), 0);
    for (const Token i : reductions_) {
      const Instruction& each = ranks_.instructions[i];
      if (program_.units[joint(i).first_unit].view != view) continue;
      if (each.chunk == chunk && (rounds_ == 1 || each.micro_batch == round)) count(i, own, times);
    }
    auto missed = times.begin();
    const auto lacks = [&] {
      const LayerKind& kind = kind_of(own.first_layer + (missed - times.begin()));
      return *missed == 0 && trained(kind, view) > 0;
    };
    while (missed != times.end() && !lacks()) ++missed;
    if (missed == times.end()) return;
    throw ContractError{fmt::format("stage {}: gradients of layer {} are never reduced",
                                    ranks_.stage, own.first_layer + (missed - times.begin()))};
  }

  void count(Token i, const Chunk& own, std::vector<int>& times) const {
    for (const Unit& unit : program_.units_of(joint(i))) {
      const std::int64_t layer = unit.layer;
      if (layer < 0) continue;
      if (layer < own.first_layer || layer >= own.first_layer + own.layers) {
        refuse(i, fmt::format("layer {} is not in c{}", layer, ranks_.instructions[i].chunk));
      }
      if (++times[static_cast<std::size_t>(layer - own.first_layer)] > 1) {
        refuse(i, fmt::format("layer {} is reduced twice", layer));
      }
    }
  }

  /// No backward or weight gradient adds to a bucket after its reduction. Goes through the list
  /// from its end; `adds` is, for each layer, the earliest later run that adds to its gradient.
  void final() const {
    std::vector<Token> adds(program_.kind_of_layer.size(), no_token);
    auto next = reductions_.rbegin();
    for (auto i = static_cast<Token>(ranks_.instructions.size()); i-- > 0;) {
      if (next == reductions_.rend()) return;
      const Instruction& each = ranks_.instructions[i];
      if (descends(each)) note(i, each, adds);
      if (i != *next) continue;
      ++next;
      for (const Unit& unit : program_.units_of(joint(i))) {
        const std::int64_t layer = unit.layer;
        const Token later = layer < 0 ? no_token : adds[static_cast<std::size_t>(layer)];
        if (later == no_token) continue;
        if (rounds_ > 1 && ranks_.instructions[later].micro_batch != each.micro_batch) continue;
        refuse(i, fmt::format("layer {} gets another gradient at {}", layer,
                              place(program_, class_, later)));
      }
    }
  }

  void note(Token i, const Instruction& each, std::vector<Token>& adds) const {
    for (const Invocation& run : program_.phases[each.target].invocations) {
      for (std::int64_t k = 0; k < run.count && run.first_layer >= 0; ++k) {
        adds[static_cast<std::size_t>(run.first_layer - k)] = i;
      }
    }
  }

  std::int64_t rounds_;  // how often each gradient is reduced
  std::vector<Token> reductions_;
  std::int64_t elements_ = 0;
};

}  // namespace

void check_reductions(const Program& program) {
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) ReductionCheck{program, c}.run();
}

}  // namespace orrery::models

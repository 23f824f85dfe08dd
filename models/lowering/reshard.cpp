#include "models/lowering/reshard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/lowering/lower.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// One collective of a conversion between layouts.
struct ReshardStep {
  Collective collective = Collective::all_reduce;
  MeshAxis axis = MeshAxis::tensor;
  Sharding after;
};

std::optional<Collective> conversion(const Sharding& from, const Sharding& to, MeshAxis axis) {
  const bool summed = from.partial.has(axis) && !to.partial.has(axis);
  const bool same_sum = from.partial.has(axis) == to.partial.has(axis);
  const auto& here = from.cut(axis);
  const auto& there = to.cut(axis);
  if (summed) return there ? Collective::reduce_scatter : Collective::all_reduce;
  if (same_sum && here && there && here->dimension != there->dimension) {
    return Collective::all_to_all;
  }
  if (same_sum && here && !there) return Collective::all_gather;
  if (same_sum && here.has_value() == there.has_value()) return std::nullopt;
  throw ContractError{fmt::format("no collective makes '{}' of '{}'", text_of(to), text_of(from))};
}

/// The collectives between two layouts. Sums come first, because they shrink what the others move.
/// Of the axes that cut one dimension, the innermost (the first) is gathered first and scattered
/// last, so that a rank's part stays contiguous.
std::vector<ReshardStep> steps_between(Sharding at, const Sharding& to) {
  std::vector<ReshardStep> steps;
  const auto add = [&](MeshAxis axis, std::initializer_list<Collective> kinds) {
    const auto kind = conversion(at, to, axis);
    if (!kind || std::ranges::find(kinds, *kind) == kinds.end()) return;
    at.partial = at.partial.without(axis);
    at.cut(axis) = to.cut(axis);
    at.column_groups =
        at.axes(Dimension::columns).empty() ? decltype(at.column_groups){} : to.column_groups;
    steps.push_back({*kind, axis, at});
  };
  for (auto each = axes.rbegin(); each != axes.rend(); ++each) {
    add(each->axis, {Collective::all_reduce, Collective::reduce_scatter});
  }
  for (const AxisRow& each : axes) add(each.axis, {Collective::all_to_all});
  for (const AxisRow& each : axes) add(each.axis, {Collective::all_gather});
  return steps;
}

std::string_view suffix_of(Collective kind) {
  switch (kind) {
    case Collective::all_reduce:
      return ".sum";
    case Collective::reduce_scatter:
      return ".scatter";
    case Collective::all_gather:
      return ".gather";
    default:
      return ".all_to_all";
  }
}

/// Rewrites one block, operation by operation.
class Resharder {
 public:
  Resharder(Block& block, const Resharding& how) : block_{block}, how_{how} {}

  void run() {
    std::vector<Operation> source = std::move(block_.operations);
    block_.operations.clear();
    for (Operation& op : source) {
      fetch(op);
      wait_if_serial(op);
      emit(std::move(op));
    }
    drop_replaced();
    link(block_);
    for (const auto& [waiter, awaited] : serial_) {
      block_.operations[waiter].after.push_back(static_cast<OpId>(awaited));
    }
  }

 private:
  bool keeps() const { return how_.gathered == Gathered::kept; }

  std::uint16_t communicator_of(MeshAxis axis) const {
    for (std::size_t i = 0; i < how_.communicators.size(); ++i) {
      if (how_.communicators[i].axes == AxisSet{axis}) return static_cast<std::uint16_t>(i);
    }
    throw ContractError{fmt::format("the axis {} has no communicator", row_of(axis).key)};
  }

  void push(std::string name, const ReshardStep& step, OperandId from, OperandId to, Pass pass) {
    Operation op;
    op.kind = OpKind::collective;
    op.mutable_communicator() = communicator_of(step.axis);
    op.queue = how_.communicators[op.communicator()].lane;
    op.time_class = row_of(step.axis).time_class;
    op.pass = pass;
    op.name = std::move(name);
    op.reads = {from};
    op.writes = {to};
    op.mutable_collective() = step.collective;
    op.module.adapter = adapter_;
    if (step.collective == Collective::all_to_all) {
      op.mutable_exchange().deduplicated = copies_;
      op.mutable_exchange().overlaps_micro_batch = overlaps_micro_batch_;
    }
    op.bytes = std::max(block_.operands[from].moved(), block_.operands[to].moved());
    block_.operations.push_back(std::move(op));
  }

  /// The operand in another layout, found by name or added.
  OperandId version(OperandId of, std::string_view suffix, const Sharding& sharding) {
    Operand made = block_.operands[of];
    made.name += suffix;
    made.role = Role::temporary;
    made.sharding = sharding;
    made.shape = local_shape(made.uncut, sharding, how_.mesh);
    return block_.add(std::move(made));
  }

  /// Sets the attributes that a collective takes from the operation that it is for.
  void copy_attributes(const Operation& op) {
    copies_ = op.exchange().deduplicated;
    adapter_ = op.module.adapter;
    overlaps_micro_batch_ = op.exchange().overlaps_micro_batch;
  }

  // --- needs --------------------------------------------------------------------------------

  /// A copy of an operand in another layout.
  struct Fetched {
    OperandId operand = 0, copy = 0;
    Sharding sharding;
  };

  void fetch(Operation& op) {
    // Only shards are kept from one pass to the next, so backward gathers again what recomputation
    // had gathered.
    if (op.pass != pass_ && !keeps()) fetched_.clear();
    pass_ = op.pass;
    copy_attributes(op);
    for (const OperandUse& need : op.needs) {
      const OperandId copy = fetch(need, op.pass);
      std::ranges::replace(op.reads, need.operand, copy);
    }
    op.needs.clear();
    for (const OperandId id : op.writes) {  // a stale copy is never read
      const auto stale = [id](const Fetched& each) { return each.operand == id; };
      fetched_.erase(std::remove_if(fetched_.begin(), fetched_.end(), stale), fetched_.end());
    }
  }

  OperandId fetch(const OperandUse& need, Pass pass) {
    for (const Fetched& each : fetched_) {
      if (each.operand == need.operand && each.sharding == need.sharding) return each.copy;
    }
    OperandId at = need.operand;
    for (const ReshardStep& step : steps_between(block_.operands[at].sharding, need.sharding)) {
      const bool gather = step.collective == Collective::all_gather;
      const std::string name = block_.operands[at].name + std::string{suffix_of(step.collective)} +
                               (pass == Pass::recompute ? ".again" : "");
      const OperandId next = version(at, gather ? ".full" : ".resharded", step.after);
      if (!gather || !leaves_for_backward(at, next, pass)) push(name, step, at, next, pass);
      at = next;
    }
    fetched_.push_back({need.operand, at, need.sharding});
    return at;
  }

  /// Where gathered inputs are kept, forward saves the gathered copy instead of the shard. True in
  /// backward, which reads that copy and needs no gather.
  bool leaves_for_backward(OperandId shard, OperandId gathered, Pass pass) {
    if (!keeps() || block_.operands[shard].role != Role::saved) return false;
    block_.operands[gathered].role = Role::saved;
    replaced_.push_back(shard);
    return pass == Pass::backward;
  }

  /// A saved shard that nothing but its gather reads becomes a temporary.
  void drop_replaced() {
    for (const OperandId id : replaced_) {
      const bool read = std::ranges::any_of(block_.operations, [id](const Operation& op) {
        return op.kind != OpKind::collective && std::ranges::find(op.reads, id) != op.reads.end();
      });
      if (!read) block_.operands[id].role = Role::temporary;
    }
  }

  // --- makes --------------------------------------------------------------------------------

  /// Appends the operation, which writes its result in the layout in which it makes it, and then
  /// the collectives that convert the result to the layout in which it is held.
  void emit(Operation op) {
    const std::vector<OperandUse> makes = std::move(op.makes);
    op.makes.clear();
    const std::string name = op.name;
    const Pass pass = op.pass;
    copy_attributes(op);
    std::vector<OperandId> written;
    for (const OperandUse& made : makes) {
      written.push_back(written_as(made));
      std::ranges::replace(op.writes, made.operand, written.back());
    }
    block_.operations.push_back(std::move(op));
    for (std::size_t i = 0; i < makes.size(); ++i) convert(makes[i], written[i], name, pass);
  }

  /// The operand that an operation writes before conversion: the held one if it has the same shape,
  /// as partial sums have that are all-reduced in place; otherwise one in the layout that is made.
  OperandId written_as(const OperandUse& made) {
    const Operand& held = block_.operands[made.operand];
    const bool in_place = local_shape(held.uncut, made.sharding, how_.mesh) == held.shape;
    if (in_place) return made.operand;
    return version(made.operand, made.sharding.partial.empty() ? ".shard" : ".partial",
                   made.sharding);
  }

  void convert(const OperandUse& made, OperandId at, const std::string& writer, Pass pass) {
    const std::vector<ReshardStep> steps =
        steps_between(made.sharding, block_.operands[made.operand].sharding);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const ReshardStep& step = steps[i];
      const bool sums = step.collective == Collective::all_reduce ||
                        step.collective == Collective::reduce_scatter;
      const std::string suffix{suffix_of(step.collective)};
      const OperandId next = i + 1 == steps.size() ? made.operand : version(at, suffix, step.after);
      push((sums ? writer : block_.operands[made.operand].name) + suffix, step, at, next, pass);
      if (sums) last_sum_ = block_.operations.size() - 1;
      at = next;
    }
  }

  /// Without overlap the weight gradient runs only after the input gradient has been reduced.
  void wait_if_serial(const Operation& op) {
    const bool weight_gradient = op.kind == OpKind::gemm && op.gemm().transpose_a;
    if (how_.serial && weight_gradient && last_sum_) {
      serial_.emplace_back(block_.operations.size(), *last_sum_);
    }
  }

  Block& block_;
  const Resharding& how_;
  std::vector<Fetched> fetched_;
  std::vector<OperandId> replaced_;  // shards whose gathered copies are kept
  Pass pass_ = Pass::forward;
  // Attributes of the operation that the collectives are for.
  TokenCopies copies_;
  bool adapter_ = false;
  bool overlaps_micro_batch_ = false;
  std::vector<std::pair<std::size_t, std::size_t>> serial_;
  std::optional<std::size_t> last_sum_;
};

}  // namespace

void reshard(Block& block, const Resharding& how) {
  Resharder{block, how}.run();
}

Program insert_collectives(Program program, bool overlap, Gathered gathered) {
  const Resharding how{program.mesh, program.communicators, !overlap, gathered};
  for (Block& block : program.blocks) reshard(block, how);
  return program;
}

}  // namespace orrery::models

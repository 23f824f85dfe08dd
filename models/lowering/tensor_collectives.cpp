#include <algorithm>
#include <map>
#include <string>

#include "models/lowering/lower.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Rewrites one block, operation by operation.
class TensorCutter {
 public:
  TensorCutter(Block& block, const Plan& plan, bool overlap, Gathered gathered)
      : block_{block}, plan_{plan}, overlap_{overlap}, kept_{gathered == Gathered::kept} {}

  void run() {
    std::vector<Operation> source = std::move(block_.operations);
    block_.operations.clear();
    for (Operation& op : source) {
      if (plan_.sequence_parallel) gather_inputs(op);
      if (op.kind == OpKind::cross_entropy_backward) op.reads.back() = all_statistics();
      const bool partial = op.partial_sum && !op.writes.empty();
      if (partial) {
        reduce_output(std::move(op));
      } else {
        wait_if_serial(op);
        block_.operations.push_back(std::move(op));
        if (block_.operations.back().kind == OpKind::cross_entropy) gather_statistics();
      }
    }
    drop_replaced_shards();
    mark_addends();
    link(block_);
    for (const auto& [waiter, awaited] : serial_) {
      block_.operations[waiter].after.push_back(static_cast<OpId>(awaited));
    }
  }

 private:
  static Operation collective(std::string name, Collective kind, OperandId from, OperandId to,
                              Pass pass, Bytes bytes) {
    Operation op;
    op.kind = OpKind::collective;
    op.queue = Lane::tensor;
    op.time_class = TimeClass::tp;
    op.pass = pass;
    op.name = std::move(name);
    op.reads = {from};
    op.writes = {to};
    op.collective = kind;
    op.communicator = tensor_group;
    op.bytes = bytes;
    return op;
  }

  /// A [T, h] version of a [S, h] operand.
  OperandId whole(OperandId shard, std::string_view suffix) {
    Operand full = block_.operands[shard];
    full.name += suffix;
    full.role = Role::temporary;
    full.shape[1] *= plan_.tensor;
    if (const auto known = block_.find(full.name)) return *known;
    block_.operands.push_back(full);
    return static_cast<OperandId>(block_.operands.size() - 1);
  }

  bool is_shard(OperandId id) const {
    const Operand& each = block_.operands[id];
    return each.shape[1] == plan_.micro_batch * plan_.seq_len / plan_.tensor;
  }

  /// Gathers what `op` must find whole and points its reads at the gathered copies.
  void gather_inputs(Operation& op) {
    // Backward gathers again what recomputation had gathered: forward keeps only shards.
    if (op.pass != pass_ && !kept_) gathered_.clear();
    pass_ = op.pass;
    for (const OperandId id : op.full_sequence) {
      if (!is_shard(id) || gathered_.count(id) > 0) continue;
      const OperandId full = whole(id, ".full");
      gathered_[id] = full;
      if (keeps(id)) {
        block_.operands[full].role = Role::saved;
        replaced_.push_back(id);
        if (op.pass == Pass::backward) continue;  // forward left it there
      }
      const std::string again = op.pass == Pass::recompute ? ".gather.again" : ".gather";
      block_.operations.push_back(collective(block_.operands[id].name + again,
                                             Collective::all_gather, id, full, op.pass,
                                             block_.operands[full].bytes()));
    }
    for (OperandId& id : op.reads) {
      const auto full = gathered_.find(id);
      const bool wanted = full != gathered_.end() && op.kind != OpKind::norm_backward &&
                          op.kind != OpKind::add && op.kind != OpKind::add_backward;
      if (!wanted) continue;
      op.bytes += block_.operands[full->second].bytes() - block_.operands[id].bytes();
      id = full->second;
    }
    for (const OperandId id : op.writes) gathered_.erase(id);  // a stale copy is never read
  }

  /// Is it the gathered tensor that forward leaves for backward, instead of the shard?
  bool keeps(OperandId shard) const { return kept_ && block_.operands[shard].role == Role::saved; }

  /// A saved shard that only its gathered copy is read of lives no longer than a temporary.
  void drop_replaced_shards() {
    for (const OperandId id : replaced_) {
      bool read = false;
      for (const Operation& op : block_.operations) {
        if (op.kind == OpKind::collective) continue;
        read = read || std::find(op.reads.begin(), op.reads.end(), id) != op.reads.end();
      }
      if (!read) block_.operands[id].role = Role::temporary;
    }
  }

  /// The operation writes an addend; the group's sum goes where it wrote before.
  void reduce_output(Operation op) {
    const OperandId sum = op.writes.front();
    OperandId addend = sum;
    if (plan_.sequence_parallel) addend = whole(sum, ".partial");
    op.writes.front() = addend;
    const Bytes bytes = block_.operands[addend].bytes();
    op.bytes += bytes - block_.operands[sum].bytes();
    const Pass pass = op.pass;
    const std::string name = op.name + (plan_.sequence_parallel ? ".scatter" : ".sum");
    block_.operations.push_back(std::move(op));
    block_.operations.push_back(collective(
        name, plan_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce, addend,
        sum, pass, bytes));
    last_sum_ = block_.operations.size() - 1;
  }

  /// A loss over vocabulary shards needs three numbers per token of every shard: the largest logit,
  /// the sum of exponentials and the label's logit.
  void gather_statistics() {
    const OperandId own = block_.operations.back().writes.back();
    const OperandId all = all_statistics();
    block_.operations.push_back(collective("loss.statistics.gather", Collective::all_gather, own,
                                           all, Pass::forward, block_.operands[all].bytes()));
  }

  /// [t, rows, 3]; a rank's own are then kept no longer than it takes to gather them.
  OperandId all_statistics() {
    const auto own = block_.find("loss.statistics");
    ensure(own.has_value(), "a loss has no statistics");
    Operand all = block_.operands[*own];
    block_.operands[*own].role = Role::temporary;
    all.name += ".all";
    all.role = Role::saved;
    all.shape[0] = plan_.tensor;
    block_.operands.push_back(std::move(all));
    return static_cast<OperandId>(block_.operands.size() - 1);
  }

  /// Norms, residual biases and positions work on a shard of the sequence; norms of queries and
  /// keys on a shard of the heads. Their parameters are whole on every rank.
  void mark_addends() {
    for (const Operation& op : block_.operations) {
      const bool of_rows = op.kind == OpKind::norm_backward || op.kind == OpKind::add_backward;
      const bool of_heads = of_rows && op.name == "qk_norm.backward";
      if (!of_heads && !(of_rows && plan_.sequence_parallel)) continue;
      for (const OperandId id : op.writes) {
        Operand& written = block_.operands[id];
        written.tensor_addend = written.role == Role::gradient;
      }
    }
  }

  /// Without overlap the weight gradient runs only after the input gradient's sum.
  void wait_if_serial(const Operation& op) {
    const bool weight_gradient = op.kind == OpKind::gemm && op.gemm.transpose_a;
    if (!overlap_ && weight_gradient && last_sum_ > 0) {
      serial_.emplace_back(block_.operations.size(), last_sum_);
    }
  }

  Block& block_;
  const Plan& plan_;
  bool overlap_;
  bool kept_;
  std::map<OperandId, OperandId> gathered_;
  std::vector<OperandId> replaced_;  // shards whose gathered copies are kept
  Pass pass_ = Pass::forward;
  std::vector<std::pair<std::size_t, std::size_t>> serial_;
  std::size_t last_sum_ = 0;
};

}  // namespace

Program insert_tensor_collectives(Program program, bool overlap, Gathered gathered) {
  if (program.plan.tensor == 1) return program;
  for (Block& block : program.blocks) TensorCutter{block, program.plan, overlap, gathered}.run();
  return program;
}

}  // namespace orrery::models

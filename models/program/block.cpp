#include "models/program/block.hpp"

#include <algorithm>

namespace orrery::models {

std::string_view name(OpKind kind) {
  constexpr std::string_view of[] = {"gemm",          "batched_gemm",
                                     "attention",     "attention_backward",
                                     "softmax",       "softmax_backward",
                                     "norm",          "norm_backward",
                                     "rotary",        "rotary_backward",
                                     "activation",    "activation_backward",
                                     "add",           "add_backward",
                                     "embedding",     "embedding_backward",
                                     "cross_entropy", "cross_entropy_backward",
                                     "quantise",      "accumulate",
                                     "squared_norm",  "adam",
                                     "cast",          "collective",
                                     "copy",          "top_k",
                                     "scatter_add",   "grouped_gemm",
                                     "route",         "route_backward",
                                     "permute",       "unpermute",
                                     "orthogonalise", "transpose",
                                     "scan",          "scan_backward",
                                     "convolution",   "kernel",
                                     "host_work"};
  return of[static_cast<int>(kind)];
}

std::string_view name(AttentionGemm product) {
  constexpr std::string_view of[] = {
      "none",           "scores",         "context",     "weights_gradient",
      "value_gradient", "query_gradient", "key_gradient"};
  return of[static_cast<int>(product)];
}

std::string_view name(RowMove move) {
  constexpr std::string_view of[] = {
      "none",      "dispatch", "combine", "combine_backward", "dispatch_backward",
      "by_expert", "by_rank"};
  return of[static_cast<int>(move)];
}

std::optional<OperandId> Block::find(std::string_view operand) const {
  const auto found = std::ranges::find(operands, operand, &Operand::name);
  if (found == operands.end()) return std::nullopt;
  return static_cast<OperandId>(found - operands.begin());
}

OperandId Block::add(Operand operand) {
  if (const auto known = find(operand.name)) return *known;
  operands.push_back(std::move(operand));
  return static_cast<OperandId>(operands.size() - 1);
}

void Block::keep(const std::vector<bool>& kept) {
  std::vector<OperandId> place(operands.size(), 0);
  std::size_t next = 0;
  for (std::size_t id = 0; id < place.size(); ++id) {
    if (!kept[id]) continue;
    place[id] = static_cast<OperandId>(next);
    if (next++ != id) operands[next - 1] = std::move(operands[id]);
  }
  operands.resize(next);
  for (Operation& op : operations) {
    move_operands(op, [&](OperandId id) { return place[id]; });
  }
}

Flops Block::flops() const {
  Flops sum{};
  for (const Operation& op : operations) sum += op.flops;
  return sum;
}

Bytes Block::bytes(Role role) const {
  Bytes sum{};
  for (const Operand& each : operands) {
    if (each.role == role) sum += each.bytes();
  }
  return sum;
}

Bytes Block::temporary_peak() const {
  // A temporary is alive from the first operation that uses it to the last, both included.
  const std::size_t n = operations.size();
  std::vector<std::size_t> first(operands.size(), n), last(operands.size(), 0);
  for (std::size_t i = 0; i < n; ++i) {
    const auto touch = [&](OperandId id) {
      first[id] = std::min(first[id], i);
      last[id] = std::max(last[id], i);
    };
    for (const OperandId id : operations[i].reads) touch(id);
    for (const OperandId id : operations[i].writes) touch(id);
  }
  std::vector<Bytes> begins(n + 1), ends(n + 1);
  for (std::size_t id = 0; id < operands.size(); ++id) {
    if (operands[id].role != Role::temporary || first[id] == n) continue;
    begins[first[id]] += operands[id].bytes();
    ends[last[id]] += operands[id].bytes();
  }
  Bytes peak{}, alive{};
  for (std::size_t i = 0; i < n; ++i) {
    alive += begins[i];
    peak = std::max(peak, alive);
    alive += ends[i] * -1;
  }
  return peak;
}

void drop_unsaved(Block& forward, const Block& backward) {
  for (Operand& each : forward.operands) {
    if (each.role != Role::saved) continue;
    const auto kept = backward.find(each.name);
    const bool saved = kept && backward.operands[*kept].role == Role::saved;
    if (!saved) each.role = Role::temporary;
  }
}

namespace {

/// The last writer of an operand, and its readers since then.
struct Touched {
  int writer = -1;
  std::vector<int> readers;
};

void wait_for(Operation& op, int earlier, const std::vector<Operation>& operations) {
  if (earlier < 0 || operations[static_cast<std::size_t>(earlier)].queue == op.queue) return;
  const auto id = static_cast<OpId>(earlier);
  if (std::ranges::find(op.after, id) == op.after.end()) op.after.push_back(id);
}

}  // namespace

void link(Block& block) {
  std::vector<Touched> touched(block.operands.size());
  int again = -1;  // the last kernel of recomputation
  for (std::size_t i = 0; i < block.operations.size(); ++i) {
    Operation& op = block.operations[i];
    op.after.clear();
    if (i == 0 && op.pass == Pass::recompute) op.after.push_back(block_input);
    for (const OperandId id : op.reads) {
      const bool from_outside = from_other_block(block.operands[id].role) && touched[id].writer < 0;
      const auto input = std::ranges::find(op.after, block_input);
      if (from_outside && input == op.after.end()) op.after.push_back(block_input);
      wait_for(op, touched[id].writer, block.operations);
      touched[id].readers.push_back(static_cast<int>(i));
    }
    for (const OperandId id : op.writes) {
      for (const int reader : touched[id].readers) {
        if (reader != static_cast<int>(i)) wait_for(op, reader, block.operations);
      }
      wait_for(op, touched[id].writer, block.operations);
      touched[id] = {static_cast<int>(i), {}};
    }
    // Recomputation hides no collective of backward, which waits for the kernels launched before
    // it. Source  NVIDIA/Megatron-LM core_v0.13.0, megatron/core/tensor_parallel/random.py:
    //         CheckpointFunction.backward runs forward again, then backward, on one stream;
    //         PyTorch v2.7.0, ProcessGroupNCCL.cpp, syncStream: NCCL waits for the current stream
    const bool collective = op.kind == OpKind::collective;
    if (collective && op.pass == Pass::backward) wait_for(op, again, block.operations);
    if (!collective && op.pass == Pass::recompute) again = static_cast<int>(i);
  }
}

}  // namespace orrery::models

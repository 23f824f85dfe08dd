// Writes blocks and phases as text.

#include "models/program/text.hpp"

namespace orrery::models {

namespace {

std::string_view word(Role role) {
  constexpr std::string_view of[] = {"input",  "output",  "parameter", "gradient", "optimizer",
                                     "saved",  "delayed", "temporary", "tokens",   "labels",
                                     "source", "carried", "on_host"};
  return of[static_cast<int>(role)];
}

std::string_view word(Pass pass) {
  constexpr std::string_view of[] = {"forward", "backward", "recompute", "step"};
  return of[static_cast<int>(pass)];
}

void put_operands(TextBuffer& text, std::string_view what, const std::vector<OperandId>& ids,
                  const Block& block) {
  if (ids.empty()) return;
  put(text, " {}=", what);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    put(text, "{}{}", i > 0 ? "," : "", block.operands[ids[i]].name);
  }
}

void put_uses(TextBuffer& text, std::string_view what, const std::vector<OperandUse>& uses,
              const Block& block) {
  for (const OperandUse& each : uses) {
    put(text, " {}={}:{}", what, block.operands[each.operand].name, text_of(each.sharding));
  }
}

/// An operand's shape on one rank, and its uncut shape and sharding where it is cut.
void put_operand(TextBuffer& text, const Operand& each) {
  put(text, "  operand {} {} {} {}x{}x{}", each.name, word(each.role), hardware::name(each.dtype),
      each.shape[0], each.shape[1], each.shape[2]);
  if (each.filled < 1) put(text, " filled={:.4g}", each.filled);
  if (each.sharding != Sharding{}) {
    put(text, " of={}x{}x{} cut={}", each.uncut[0], each.uncut[1], each.uncut[2],
        text_of(each.sharding));
  }
  if (each.tied()) put(text, " tied={}", each.tensor);
  if (each.transposed) put(text, " transposed");
  constexpr std::string_view initials[] = {"normal", "zeros", "ones"};
  if (each.role == Role::parameter) {
    put(text, " initial={}", initials[static_cast<int>(each.initial.kind)]);
  }
  text.push_back('\n');
}

void put_shape(TextBuffer& text, const Operation& op, const Program& program) {
  if (op.gemm().m > 0) {
    const GemmShape& shape = op.gemm();
    put(text, " m={} n={} k={}", shape.m, shape.n, shape.k);
    if (shape.batch > 1) put(text, " batch={}", shape.batch);
    if (shape.transpose_a) put(text, " transpose_a");
    if (shape.transpose_b) put(text, " transpose_b");
    if (shape.accumulate) put(text, " accumulate");
    if (shape.subtract) put(text, " subtract");
  }
  for (std::size_t e = 0; e < op.group_rows().size(); ++e) {
    put(text, "{}{}", e > 0 ? "," : " rows=", op.group_rows()[e]);
  }
  if (op.attention_gemm() != AttentionGemm::none)
    put(text, " product={}", name(op.attention_gemm()));
  if (op.kind == OpKind::activation || op.kind == OpKind::activation_backward) {
    put(text, " function={}", name(op.activation()));
    if (op.clamp() > 0) put(text, " clamp={}", op.clamp());
    if (op.gates() == GatedColumns::heads) put(text, " gates=heads");
    if (op.gates() == GatedColumns::rows) put(text, " gates=rows");
  }
  if (op.attention().seq > 0) {
    const AttentionShape& shape = op.attention();
    put(text, " b={} s={} heads={} kv_heads={} d={}{}", shape.batch, shape.seq, shape.heads,
        shape.kv_heads, shape.head_dim, shape.causal ? " causal" : "");
    if (shape.crosses) put(text, " keys={}", shape.keys);
    if (shape.window > 0) put(text, " window={}", shape.window);
    if (shape.chunk > 0) put(text, " chunk={}", shape.chunk);
    if (shape.gated) put(text, " gated");
    if (shape.sinks) put(text, " sinks");
  }
  if (op.kind == OpKind::collective) {
    put(text, " {} comm={}", name(op.collective()), program.communicators[op.communicator()].name);
  }
  const bool scored = op.routing() != Routing{};
  if (scored) {
    const Routing& of = op.routing();
    put(text, " {}{}{} scale={} groups={} of {} by {}",
        of.score == Routing::Score::sigmoid ? "sigmoid" : "softmax",
        of.normalised ? " normalised" : "", of.corrected ? " corrected" : "", of.scale,
        of.groups_kept, of.groups, of.best_of_group);
  }
  if (op.is<ConvolutionWork>()) {
    const GemmShape& of = op.convolution().gemm;
    put(text, " m={} n={} k={} groups={}", of.m, of.n, of.k, of.batch);
  }
  if (op.is<KernelWork>()) put(text, " key={}", op.named().key);
  if (op.is<HostWork>()) put(text, " time={}", op.host_time().count());
  if (op.scan().chunks > 0) {
    const ScanWork& of = op.scan();
    put(text, " chunks={} of {} taps={} heads={} by {} groups={} by {}", of.chunks, of.chunk,
        of.taps, of.heads, of.value_dim, of.groups, of.state);
    if (of.least_step > 0) put(text, " least_step={}", of.least_step);
  }
  if (op.epsilon() > 0) put(text, " epsilon={}", op.epsilon());
  if (op.offset() != 0) put(text, " offset={}", op.offset());
  if (op.multiplier() != 1) put(text, " times={:.6g}", op.multiplier());
  if (!op.frequencies().empty()) {
    put(text, " pairs={} slowest={:.6g}", op.frequencies().size(), op.frequencies().back());
  }
}

void put_operation(TextBuffer& text, std::size_t index, const Operation& op, const Block& block,
                   const Program& program) {
  put(text, "  o{} {} {} q={} pass={} class={} dtype={}", index, op.name, name(op.kind),
      name(op.queue), word(op.pass), name(op.time_class), hardware::name(op.dtype));
  put_operands(text, "reads", op.reads, block);
  put_operands(text, "writes", op.writes, block);
  put_uses(text, "needs", op.needs, block);
  put_uses(text, "makes", op.makes, block);
  put_shape(text, op, program);
  if (op.heads().dim > 0) {
    put(text, " queries={} keys={} width={}", op.heads().queries, op.heads().keys, op.heads().dim);
  }
  if (op.seq_len > 0) put(text, " seq_len={}", op.seq_len);
  if (op.by_position()) put(text, " by_position");
  if (op.gates_row()) put(text, " gated");
  if (op.first_column()) put(text, " first_column={}", *op.first_column());
  if (op.moves() != RowMove::none) put(text, " moves={}", name(op.moves()));
  if (op.source_ranks() > 1) put(text, " senders={}", op.source_ranks());
  if (op.drops()) put(text, " drops");
  if (op.module.attention_core) put(text, " attention_core");
  if (op.host_waits) put(text, " host_waits");
  for (std::size_t i = 0; i < op.after.size(); ++i) {
    text.append(std::string_view{i > 0 ? "," : " after="});
    if (op.after[i] == block_input) {
      put(text, "input");
    } else {
      put(text, "o{}", op.after[i]);
    }
  }
  put(text, " flops={} bytes={}\n", op.flops.count(), op.bytes.count());
}

}  // namespace

void put_block(TextBuffer& text, const Block& block, const Program& program) {
  put(text, "block {}\n", block.name);
  for (const Operand& each : block.operands) put_operand(text, each);
  for (std::size_t i = 0; i < block.operations.size(); ++i) {
    put_operation(text, i, block.operations[i], block, program);
  }
}

void put_phase(TextBuffer& text, const Phase& phase, const Program& program) {
  put(text, "phase {}:", phase.name);
  for (const Invocation& run : phase.invocations) {
    put(text, " {}", program.blocks[run.block].name);
    if (run.first_layer >= 0) put(text, "[layer {}, {} of them]", run.first_layer, run.count);
  }
  text.push_back('\n');
}

}  // namespace orrery::models

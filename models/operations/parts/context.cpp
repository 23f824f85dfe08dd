// Context parallelism: attention over a sequence that n ranks share.
//
//   ring        A rank has pieces i and 2n-1-i of the sequence's 2n, so that causal attention is
//               the same work on each of the n ranks. A rank first attends causally to its own
//               keys, then to those it receives, of which it needs half: all its queries with the
//               earlier piece, or its later queries with both. Keys and values travel round the
//               ring once in forward, and the last to arrive are saved instead of the rank's own;
//               in backward they and their gradients travel the other way round, so that both end
//               on the rank that owns them.
//   contiguous  An all-gather whose ranks have one contiguous piece each: the last rank, for which
//               all wait, has 2 - 1/n times the average work.
//   all-gather  Every rank gathers all keys and values, and attends with each of its two pieces of
//               queries to the keys before it; over the ranks these are half the sequence on
//               average. Backward gathers again and reduce-scatters the gradients.
//   all-to-all  (Ulysses) All-to-alls turn some tokens of all heads into all tokens of some heads
//               before attention, and back after it; within the groups of a ring: hierarchical.
//
// With n ranks of T tokens each, q query columns, 2k key and value columns and numbers of w bytes,
// a rank sends in forward
//   ring (n-1) 2k T w     all-gather the same     all-to-all (n-1)/n (2q + 2k) T w
// bytes, and in backward twice that (ring, all-gather) or as much again (all-to-all).
// Leaves out the first and last ranks' unequal shares of an all-gather's keys.
// Source  Liu et al. 2023, "Ring attention", arXiv 2310.01889; NVIDIA Transformer Engine,
//         attention/dot_product_attention/context_parallel.py; Jacobs et al. 2023, "DeepSpeed
//         Ulysses", arXiv 2309.14509

#include "models/operations/parts/context.hpp"

#include "models/plan/precision_formats.hpp"

namespace orrery::models {

void ContextAttention::forward(OperandId qkv, OperandId out) {
  return gathers_keys(inputs_.plan) ? gathered_forward(qkv, out) : ring_forward(qkv, out);
}

void ContextAttention::backward(OperandId qkv, OperandId out, OperandId gradient_out,
                                OperandId gradient_in) {
  return gathers_keys(inputs_.plan) ? gathered_backward(qkv, out, gradient_out, gradient_in)
                                    : ring_backward(qkv, out, gradient_out, gradient_in);
}

/// Keys and values without the queries: of one rank's tokens, or of the whole sequence.
OperandId ContextAttention::keys_and_values(const std::string& name, bool whole) {
  const std::int64_t columns = attention_.kv_heads * attention_.head_dim;
  Sharding layout = of_heads(by_columns(attention_.head_dim), Dimension::rows, Dimension::columns,
                             attention_.head_dim);
  layout.column_groups = {columns, columns, 0};
  if (whole) layout.cut(MeshAxis::context).reset();
  return block_.operand(name, Role::temporary, storage_, {1, tokens(), 2 * columns}, layout);
}

/// Attention of one of a rank's two pieces to `keys` that all of its tokens see (no causal mask).
AttentionShape ContextAttention::rectangle(std::int64_t keys) const {
  AttentionShape shape = attention_shape();
  shape.seq /= 2;
  shape.keys = keys;
  shape.causal = false;
  return shape;
}

Operation& ContextAttention::partial_forward(const std::string& name, const AttentionShape& shape,
                                             OperandId qkv, OperandId keys, OperandId out) {
  const OperandId sums =
      name == "attention" || gathers_keys(inputs_.plan)
          ? log_sum_exp()
          : block_.operand(name + ".lse", Role::temporary,
                           state_dtype(inputs_.plan.formats.precision),
                           {inputs_.plan.batch.micro, attention_.heads, inputs_.plan.batch.seq_len},
                           lse_layout());
  Operation& op = block_.add(OpKind::attention, name, {qkv, keys}, {out, sums});
  op.time_class = TimeClass::attention;
  op.mutable_attention() = shape;
  op.module.attention_core = true;
  op.flops = BlockBuilder::attention_flops(shape);
  return op;
}

Operation& ContextAttention::partial_backward(const std::string& name, const AttentionShape& shape,
                                              OperandId qkv, OperandId keys, OperandId out,
                                              OperandId gradient_out, OperandId gradient_in) {
  Operation& op = block_.add(OpKind::attention_backward, name,
                             {qkv, keys, out, log_sum_exp(), gradient_out}, {gradient_in});
  op.time_class = TimeClass::attention;
  op.mutable_attention() = shape;
  op.flops = Flops{BlockBuilder::attention_flops(shape).count() / 2} * 5;
  return op;
}

std::vector<AttentionShape> ContextAttention::gathered_parts() const {
  const std::int64_t all = inputs_.plan.batch.seq_len;
  if (inputs_.plan.context_exchange.form != ContextForm::contiguous) {
    return {rectangle(all / 2), rectangle(all / 2)};
  }
  AttentionShape last = attention_shape();
  last.keys = all - last.seq / 2;
  last.causal = false;
  return {last};
}

/// The i-th of `parts` parts of a rank's queries, which attends to the gathered keys.
SequencePart ContextAttention::gathered_part(std::size_t i, std::size_t parts) {
  using Queries = SequencePart::Queries;
  const Queries half = i == 0 ? Queries::early : Queries::late;
  return {.keys = SequencePart::Keys::gathered, .queries = parts == 1 ? Queries::all : half};
}

void ContextAttention::gathered_forward(OperandId qkv, OperandId out) {
  const OperandId all = keys_and_values("keys.all", true);
  Operation& gather =
      block_.collective(Collective::all_gather, "keys.gather", CommunicatorRole::context, qkv, all);
  gather.bytes = block_.at(all).bytes();
  gather.module.attention_core = true;
  const std::vector<AttentionShape> parts = gathered_parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const char* name = i == 0 ? "attention" : "attention.later";
    Operation& op = partial_forward(name, parts[i], qkv, all, out);
    op.mutable_sequence() = gathered_part(i, parts.size());
    read_sinks(op);
  }
}

void ContextAttention::gathered_backward(OperandId qkv, OperandId out, OperandId gradient_out,
                                         OperandId gradient_in) {
  const OperandId all = keys_and_values("keys.all", true);
  const OperandId sums = keys_and_values("keys.all.grad", true);
  Operation& gather = block_.collective(Collective::all_gather, "keys.gather.backward",
                                        CommunicatorRole::context, qkv, all);
  block_.read(gather, gradient_out);  // not issued before backward reaches this layer
  gather.bytes = block_.at(all).bytes();
  const std::vector<AttentionShape> parts = gathered_parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const char* name = i == 0 ? "attention.backward" : "attention.later.backward";
    Operation& op = partial_backward(name, parts[i], qkv, all, out, gradient_out, gradient_in);
    block_.write(op, sums);
    op.mutable_sequence() = gathered_part(i, parts.size());
    write_sinks_gradient(op, gradient_out);
  }
  block_
      .collective(Collective::reduce_scatter, "keys.grad.scatter", CommunicatorRole::context, sums,
                  gradient_in)
      .bytes = block_.at(sums).bytes();
}

/// Sends a rank's keys and values to the rank `ahead` places after it in the ring.
Operation& ContextAttention::pass_keys(const std::string& name, OperandId from, OperandId to,
                                       std::int64_t ahead) {
  Operation& pass =
      block_.collective(Collective::send_receive, name, CommunicatorRole::context, from, to);
  pass.bytes = block_.at(to).bytes();
  pass.mutable_sequence().ahead = ahead;
  return pass;
}

/// Merges the output of attention to other keys into `out`, weighted by the log-sum-exps of both;
/// only the outputs count as traffic.
void ContextAttention::merge(const std::string& number, OperandId out, OperandId part) {
  Operation& op = block_.add(OpKind::add, "attention.combine" + number, {out, part}, {out});
  op.module.attention_core = true;
  op.mutable_sequence().merges = true;
  op.mutable_attention() = attention_shape();
  const auto sums = block_.find("attention" + number + ".lse");
  ensure(sums.has_value(), "an attention leaves no sums");
  op.reads.insert(op.reads.end(), {log_sum_exp(), *sums});
  op.writes.push_back(log_sum_exp());
}

void ContextAttention::ring_forward(OperandId qkv, OperandId out) {
  const std::int64_t steps = split().pieces;
  const AttentionShape own = attention_shape();
  OperandId keys = qkv;
  for (std::int64_t step = 0; step < steps; ++step) {
    const OperandId here = keys;
    const std::string number = "." + std::to_string(step);
    if (step + 1 < steps) {
      keys = keys_and_values("keys." + std::to_string(step + 1), false);
      pass_keys("keys.pass" + number, here, keys, 1).module.attention_core = true;
    }
    if (step == 0) {
      read_sinks(partial_forward("attention", own, qkv, here, out));
      continue;
    }
    const OperandId part = block_.operand("attention.out" + number, Role::temporary, storage_,
                                          block_.at(out).uncut, block_.at(out).sharding);
    partial_forward("attention" + number, rectangle(own.seq), qkv, here, part)
        .mutable_sequence() = {.keys = SequencePart::Keys::passed,
                               .ahead = steps - step,
                               .leaves_keys = step + 1 == steps};
    merge(number, out, part);
  }
}

void ContextAttention::ring_backward(OperandId qkv, OperandId out, OperandId gradient_out,
                                     OperandId gradient_in) {
  const std::int64_t steps = split().pieces;
  const AttentionShape own = attention_shape();
  OperandId keys = qkv;
  for (std::int64_t step = 0; step < steps; ++step) {
    const OperandId here = keys;
    const std::string number = "." + std::to_string(step);
    if (step + 1 < steps) {
      keys = keys_and_values("keys.back." + std::to_string(step + 1), false);
      Operation& pass = pass_keys("keys.pass.backward" + number, here, keys, -1);
      if (step == 0) pass.reads.push_back(gradient_out);  // not sent before backward gets here
    }
    const SequencePart whose{.keys = SequencePart::Keys::passed, .ahead = (step + 1) % steps};
    if (step == 0) {
      partial_backward("attention.backward", rectangle(own.seq), qkv, here, out, gradient_out,
                       gradient_in)
          .mutable_sequence() = whose;
      continue;
    }
    const OperandId part =
        block_.operand("attention.grad" + number, Role::temporary, storage_,
                       block_.at(gradient_in).uncut, block_.at(gradient_in).sharding);
    const OperandId arrived = keys_and_values("keys.grad" + number, false);
    pass_keys("keys.grad.pass" + number, gradient_in, arrived, -1);
    const bool last = step + 1 == steps;
    Operation& op = partial_backward("attention.backward" + number, last ? own : rectangle(own.seq),
                                     qkv, here, out, gradient_out, part);
    op.mutable_sequence() = whose;
    if (last) write_sinks_gradient(op, gradient_out);
    block_
        .add(OpKind::add, "attention.grad.add" + number, {gradient_in, part, arrived},
             {gradient_in})
        .mutable_sequence()
        .merges = true;
  }
}

}  // namespace orrery::models

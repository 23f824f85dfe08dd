// The experts of a layer: dispatch, grouped GEMMs and combine.
//
// T tokens of a rank become k T rows, one for each expert that a token is sent to. The rows are
// permuted into the order of their experts, sent to the ranks that hold those (all-to-all over the
// expert axis; all-gather over the expert tensor axis), sorted by local expert, multiplied, and
// returned the same way. Only the layouts are stated here, `at_senders` and `at_experts` of
// layouts.hpp; the collectives follow from them (lowering/reshard.hpp). Every expert is given the
// same number of rows: with uneven dropless routing, that of the busiest rank. Buffers have slots
// for `expert_room` or `capacity` times the mean; only occupied slots are sent and multiplied,
// unless they are padded.
//
// Permutations are counted in passes over the rows: one kernel each where they are fused, otherwise
// as Megatron-Core runs them. Unpermute's backward reads the rows again for the gradients of the
// router's weights:
//                                                         not fused         fused, and tokens once
//   permute     index_select; index_add back              2 fwd,  3 bwd     1 fwd, 1 bwd
//   sort, back  split and cat by expert                   2 fwd,  2 bwd     the same
//   unpermute   times probability in fp32, and added up   9 fwd, 11 bwd     1 fwd, 2 bwd
//   biases      of the second GEMM, where experts have    6 fwd,  8 bwd     the same
//               them: times probability, added
//               expert by expert, and concatenated
//   clamps      of gates and values before the activation, in separate kernels: two clamps and a
//               concatenation forward, 8 times the bytes of the activation's 16-bit output;
//               backward comparisons to bytes, two selections and a concatenation, 15 times; more
//               where a profile says that the activation is not fused either
// Source  Megatron-Core 0.12, transformer/moe/moe_utils.py, token_dispatcher.py, and experts.py
//         (TEGroupedMLP._apply_bias), and from 0.14 fusions/fused_bias_geglu.py
//         (weighted_bias_quick_geglu_impl, clamp_value); Transformer Engine 2.1,
//         common/triton/permutation.py (moe_permute_fusion)

#include <algorithm>
#include <cmath>

#include "models/operations/layer.hpp"

namespace orrery::models {

namespace {

/// Slots of an expert's buffer over the mean number of an expert's rows.
double slots_of_expert(const Plan& plan) {
  return plan.experts.capacity > 0 ? plan.experts.capacity
                                   : std::max(plan.experts.imbalance, plan.experts.room);
}

/// The share of the slots that is sent and multiplied: all if padded, otherwise the slots that hold
/// a row. With a capacity, routing is taken as even: the mean, or the capacity if that is less.
double filled_slots(const Plan& plan) {
  if (plan.experts.capacity == 0) return plan.experts.imbalance / slots_of_expert(plan);
  return plan.experts.pad_to_capacity ? 1 : std::min(1.0, 1 / plan.experts.capacity);
}

}  // namespace

/// Slots of one expert for the rows of one rank, rounded up: T k / E times slots_of_expert.
std::int64_t LayerBuilder::rows_of_expert(OperandId tokens) const {
  const Plan& plan = inputs_.plan;
  const Model& model = inputs_.model;
  const double uneven = slots_of_expert(plan);
  const auto copies = static_cast<double>(block_.at(tokens).shape[1] * model.experts.per_token);
  const double rows = std::ceil(copies * uneven / static_cast<double>(model.experts.count));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(rows));
}

OperandId LayerBuilder::expert_rows(std::string_view name, Role role, OperandId tokens,
                                    std::int64_t columns, const Sharding& layout) {
  const std::int64_t senders = block_.mesh().degree({MeshAxis::expert, MeshAxis::expert_tensor});
  const OperandId slots = block_.operand(
      name, role, storage_,
      {inputs_.model.experts.count, rows_of_expert(tokens) * senders, columns}, layout);
  block_.fill(slots, filled_slots(inputs_.plan));
  return slots;
}

/// The experts' outputs for a rank's tokens, saved for backward.
OperandId LayerBuilder::kept_outputs(OperandId tokens) {
  return expert_rows("experts.kept", Role::saved, tokens, inputs_.model.hidden, at_senders());
}

Sharding LayerBuilder::expert_up_layout() const {
  Sharding layout = expert_columns();
  const std::int64_t f = inputs_.model.mlp.width;
  if (inputs_.model.mlp.gated) layout.column_groups = {f, f, 0};
  return layout;
}

/// Bytes of the rows that a rank sends to experts, or receives back.
Bytes LayerBuilder::rows_sent(OperandId rows) const {
  Operand sent = block_.at(rows);
  sent.shape = block_.shape(rows, at_senders());
  return sent.moved();
}

Linear LayerBuilder::expert_up() const {
  const Model& model = inputs_.model;
  return {.name = "experts.up",
          .in = model.hidden,
          .out = model.mlp.width * (model.mlp.gated ? 2 : 1),
          .bias = model.mlp.bias,
          .sharding = expert_up_layout(),
          .experts = model.experts.count,
          .target = LoraTarget::up};
}

Linear LayerBuilder::expert_down() const {
  const Model& model = inputs_.model;
  Sharding layout = at_experts();
  layout.cut(MeshAxis::expert_tensor) = Cut{Dimension::rows};
  return {.name = "experts.down",
          .in = model.mlp.width,
          .out = model.hidden,
          .bias = model.mlp.bias,
          .sharding = layout,
          .experts = model.experts.count,
          .target = LoraTarget::down};
}

/// Must received rows be sorted? They arrive by rank and then by expert; a rank with one expert
/// needs no sort.
bool LayerBuilder::sorts() const {
  const Mesh& mesh = block_.mesh();
  const bool sent = mesh.degree({MeshAxis::expert, MeshAxis::expert_tensor}) > 1;
  return sent && inputs_.model.experts.count > mesh.degree(MeshAxis::expert);
}

TokenCopies LayerBuilder::copies_to_nodes() const {
  if (inputs_.plan.experts.dispatcher == Dispatcher::all_to_all) return {};
  const Model& model = inputs_.model;
  return {model.experts.per_token, model.experts.routing.groups, model.experts.routing.groups_kept};
}

/// Passes of a permutation over the rows that are sent: separate kernels, or one fused kernel.
std::int64_t LayerBuilder::passes(std::int64_t apart, std::int64_t fused) const {
  return inputs_.plan.experts.permute_fusion ? fused : apart;
}

Operation& LayerBuilder::permute(RowMove move, const std::string& name, OperandId in,
                                 OperandId out) {
  const bool adds_up = move == RowMove::combine || move == RowMove::dispatch_backward;
  Operation& op = block_.add(adds_up ? OpKind::unpermute : OpKind::permute, name, {in}, {out});
  op.mutable_moves() = move;
  op.mutable_fused() = inputs_.plan.experts.permute_fusion;
  op.dtype = storage_;
  op.mutable_exchange().deduplicated = copies_to_nodes();
  op.mutable_exchange().overlaps_micro_batch =
      inputs_.plan.experts.overlap == ExpertOverlap::micro_batches;
  return op;
}

/// Sorts rows from the order of their source ranks to that of local experts, or back.
void LayerBuilder::sort(RowMove move, const std::string& name, OperandId in, OperandId out) {
  Operation& op = permute(move, name, in, out);
  op.mutable_source_ranks() = block_.mesh().degree({MeshAxis::expert, MeshAxis::expert_tensor});
}

/// Traffic of so many passes over the activation's output.
Bytes LayerBuilder::clamp_traffic(OperandId active, double passes) const {
  return nearest_count<Bytes>(passes * static_cast<double>(block_.at(active).moved().count()));
}

/// The MLPs of the local experts: rows sorted by expert in, partial sums of their outputs out.
void LayerBuilder::local_experts_forward(OperandId tokens, OperandId rows) {
  const Model& model = inputs_.model;
  const OperandId inner =
      expert_rows("experts.up.out", role_of_inner(), tokens, expert_up().out, expert_up_layout());
  const OperandId active =
      expert_rows("experts.activation.out", Role::saved, tokens, model.mlp.width, expert_columns());
  linear_.forward(expert_up(), rows, inner);
  keep_inner(inner);
  Operation& activation = block_.add(OpKind::activation, "experts.activation", {inner}, {active});
  activation.mutable_activation() = model.mlp.activation;
  if (model.mlp.clamped) {
    activation.bytes += clamp_traffic(active, inputs_.software.kernels.clamped_forward_passes);
  }
  linear_.forward(expert_down(), active,
                  expert_rows("experts.out", Role::temporary, tokens, model.hidden, expert_sums()));
}

void LayerBuilder::combine(OperandId tokens, OperandId back, OperandId routed) {
  Operation& sum = permute(RowMove::combine, "unpermute", back, routed);
  block_.need(sum, back, at_senders());
  const std::int64_t biases = inputs_.model.mlp.bias ? 6 : 0;
  sum.bytes = (passes(9, 1) + biases) * rows_sent(back) + block_.at(routed).bytes();
  block_.read(sum, weights());
  block_.read(sum, chosen());
  if (keeps_outputs()) block_.write(sum, kept_outputs(tokens));
}

void LayerBuilder::experts_forward(OperandId in, OperandId out) {
  const Model& model = inputs_.model;
  const bool shares = model.experts.shared_width > 0;
  const bool overlaps = inputs_.plan.experts.overlap == ExpertOverlap::shared;
  const OperandId shared_out = shares ? rows("shared.out", Role::temporary) : out;
  const OperandId routed = shares ? rows("experts.sum", Role::temporary) : out;
  const std::size_t first = block_.size();
  route(in);
  if (shares && !overlaps) mlp_forward(shared(), in, shared_out);
  OperandId arrived =
      expert_rows(sorts() ? "dispatched" : "experts.in", sorts() ? Role::temporary : Role::saved,
                  in, model.hidden, at_experts());
  Operation& dispatch = permute(RowMove::dispatch, "permute", in, arrived);
  block_.make(dispatch, arrived, at_senders());
  dispatch.bytes = passes(2, 1) * rows_sent(arrived);
  if (inputs_.plan.experts.permute_fusion) dispatch.bytes += block_.at(in).bytes();
  dispatch.mutable_drops() = inputs_.plan.experts.capacity > 0;
  block_.read(dispatch, chosen());
  if (shares && overlaps) mlp_forward(shared(), in, shared_out);
  if (sorts()) {
    const OperandId sorted = expert_rows("experts.in", Role::saved, in, model.hidden, at_experts());
    sort(RowMove::by_expert, "sort", arrived, sorted);
    arrived = sorted;
  }
  local_experts_forward(in, arrived);
  OperandId back = expert_rows("experts.out", Role::temporary, in, model.hidden, expert_sums());
  if (sorts()) {
    const OperandId unsorted =
        expert_rows("returned", Role::temporary, in, model.hidden, expert_sums());
    sort(RowMove::by_rank, "sort.back", back, unsorted);
    back = unsorted;
  }
  combine(in, back, routed);
  if (shares) block_.add(OpKind::add, "experts.add", {routed, shared_out}, {out});
  for (Operation& each : block_.since(first)) each.module.moe = true;
}

void LayerBuilder::local_experts_backward(OperandId tokens, OperandId gradient,
                                          OperandId rows_gradient) {
  const Model& model = inputs_.model;
  const OperandId inner =
      expert_rows("experts.up.out", role_of_inner(), tokens, expert_up().out, expert_up_layout());
  const OperandId active =
      expert_rows("experts.activation.out", Role::saved, tokens, model.mlp.width, expert_columns());
  const OperandId d_inner = expert_rows("experts.up.out.grad", Role::temporary, tokens,
                                        expert_up().out, expert_up_layout());
  const OperandId d_active = expert_rows("experts.activation.out.grad", Role::temporary, tokens,
                                         model.mlp.width, expert_columns());
  linear_.backward(expert_down(), active, gradient, d_active);
  restore_inner(inner);
  Operation& activation = block_.add(OpKind::activation_backward, "experts.activation.backward",
                                     {d_active, inner}, {d_inner});
  activation.mutable_activation() = model.mlp.activation;
  if (model.mlp.clamped) {
    activation.bytes += clamp_traffic(active, inputs_.software.kernels.clamped_backward_passes);
  }
  linear_.backward(expert_up(),
                   expert_rows("experts.in", Role::saved, tokens, model.hidden, at_experts()),
                   d_inner, rows_gradient);
}

/// Backward of combine, on the ranks that own the tokens: the gradients of the experts' outputs,
/// and of the router's weights where the stack keeps those outputs.
void LayerBuilder::combine_backward(OperandId tokens, OperandId gradient, OperandId rows_gradient) {
  Operation& spread =
      permute(RowMove::combine_backward, "unpermute.backward", gradient, rows_gradient);
  block_.make(spread, rows_gradient, at_senders());
  const std::int64_t biases = inputs_.model.mlp.bias ? 8 : 0;
  spread.bytes = (passes(11, 2) + biases) * rows_sent(rows_gradient);
  if (inputs_.plan.experts.permute_fusion) spread.bytes += block_.at(gradient).bytes();
  block_.read(spread, weights());
  if (!keeps_outputs()) return;
  block_.read(spread, chosen());
  block_.read(spread, kept_outputs(tokens));
  block_.write(spread, weights_gradient());
}

void LayerBuilder::experts_backward(OperandId saved_in, OperandId gradient_out,
                                    OperandId gradient_in) {
  const std::int64_t h = inputs_.model.hidden;
  const bool shares = inputs_.model.experts.shared_width > 0;
  const auto named = [&](std::string_view name, const Sharding& layout) {
    return expert_rows(name, Role::temporary, saved_in, h, layout);
  };
  OperandId down_gradient = named(sorts() ? "returned.grad" : "experts.out.grad", at_experts());
  combine_backward(saved_in, gradient_out, down_gradient);
  const OperandId d_shared = rows("shared.in.grad", Role::temporary);
  if (shares) mlp_backward(shared(), saved_in, gradient_out, d_shared);
  if (sorts()) {
    const OperandId sorted = named("experts.out.grad", at_experts());
    sort(RowMove::by_expert, "sort.back.backward", down_gradient, sorted);
    down_gradient = sorted;
  }
  OperandId up_gradient = named("experts.in.grad", expert_sums());
  local_experts_backward(saved_in, down_gradient, up_gradient);
  if (sorts()) {
    const OperandId unsorted = named("dispatched.grad", expert_sums());
    sort(RowMove::by_rank, "sort.backward", up_gradient, unsorted);
    up_gradient = unsorted;
  }
  const OperandId d_rows = rows("permute.in.grad", Role::temporary);
  const OperandId d_router = rows("router.in.grad", Role::temporary);
  Operation& sum = permute(RowMove::dispatch_backward, "permute.backward", up_gradient, d_rows);
  block_.need(sum, up_gradient, at_senders());
  sum.bytes = passes(3, 1) * rows_sent(up_gradient) + block_.at(d_rows).bytes();
  block_.read(sum, chosen());
  route_backward(saved_in, d_router);
  Operation& add = block_.add(OpKind::add, "experts.in.add", {d_rows, d_router}, {gradient_in});
  if (shares) block_.read(add, d_shared);
}

}  // namespace orrery::models

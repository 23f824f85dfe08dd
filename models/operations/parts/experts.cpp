// The experts of a layer: router, dispatch, grouped GEMMs and combine.
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
// Experts one by one (expert_gemms): each has kernels of its own for its GEMMs and activation.
//   sequential  the rows are permuted and sent as above
//   loop        eager transformers: for each expert its tokens are found (`where`, three kernels
//               around a wait of the host) and selected; gate and up are GEMMs of their own;
//               silu and product are; outputs are multiplied by selected weights and added up. In
//               16 bits forward moves 2 passes over the rows to select and 5 to weigh and add,
//               backward 6 to spread; and backward of each selection clears a gradient of all
//               tokens, which is added to that of the other experts: 4 passes over the tokens for
//               each expert.
// Source  SequentialMLP of Megatron-Core, transformer/moe/experts.py; MixtralSparseMoeBlock of
//         Hugging Face's transformers 4.40, models/mixtral/modeling_mixtral.py; index_backward of
//         PyTorch's derivatives.yaml: index_put_ on new zeros
// Source  Megatron-Core 0.12, transformer/moe/moe_utils.py, token_dispatcher.py, and experts.py
//         (TEGroupedMLP._apply_bias), and from 0.14 fusions/fused_bias_geglu.py
//         (weighted_bias_quick_geglu_impl, clamp_value); Transformer Engine 2.1,
//         common/triton/permutation.py (moe_permute_fusion)

#include <algorithm>
#include <cmath>

#include "models/operations/parts/mlp.hpp"
#include "models/plan/derived.hpp"

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

class ExpertsBuilder : public ChannelBuilder, private TransformerBuilder {
 public:
  ExpertsBuilder(BlockScope& scope, const ExpertsPart& experts)
      : TransformerBuilder{scope}, experts_{experts}, shared_{scope, experts.shared(), "shared."} {}

  void forward(OperandId in, OperandId out) override;
  void backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) override;
  /// That of the shared experts; the others add theirs in their GEMMs.
  bool has_bias() const override { return shares() && experts_.mlp.bias; }

 private:
  bool shares() const { return experts_.shared_width > 0; }
  /// Columns of the tokens that experts are sent.
  std::int64_t width() const { return experts_.narrow > 0 ? experts_.narrow : hidden(); }
  OperandId sent_tokens(std::string_view name, Role role) {
    return features(name, role, width(), rows_layout(inputs_.plan));
  }
  Linear whole(std::string_view name) const {
    Linear layer = linear_of(matrix_of(matrices_of(experts_, hidden()), name), {});
    layer.low_precision = false;
    return layer;
  }
  /// Rows of experts, as wide as the tokens that they are sent.
  OperandId of_width(std::string_view name, Role role, OperandId tokens, const Sharding& layout) {
    return expert_rows(name, role, tokens, width(), layout);
  }
  const char* arrival() const { return sorts() ? "dispatched" : "experts.in"; }
  OperandId narrowed(OperandId in);
  OperandId sum_gradient(OperandId gradient_out);
  OperandId gate_columns(std::string_view name, Role role) {
    return features(name, role, 1, rows_layout(inputs_.plan));
  }
  void shared_forward(OperandId in, OperandId out);
  void shared_backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in);
  void routed_forward(OperandId sent, OperandId routed);
  void dispatch_backward(OperandId saved_in, OperandId up_gradient, OperandId d_tokens);
  std::int64_t rows_of_expert(OperandId tokens) const;
  OperandId expert_rows(std::string_view name, Role role, OperandId tokens, std::int64_t columns,
                        const Sharding& layout);
  OperandId kept_outputs(OperandId tokens);
  /// What an unfused gated activation saves besides its input and output.
  OperandId activated_gate(OperandId tokens) {
    return expert_rows("experts.activation.gate", Role::saved, tokens, experts_.mlp.width,
                       expert_columns());
  }
  ExpertGemms gemms() const { return inputs_.plan.experts.gemms; }
  bool loops() const { return gemms() == ExpertGemms::loop; }
  void launch_one_by_one(std::size_t first);
  bool keeps_outputs() const { return inputs_.software.runs.keeps_expert_outputs; }
  Linear of_experts(std::string_view name, const Sharding& sharding) const;
  Linear expert_up() const { return of_experts("experts.up", expert_up_layout()); }
  Linear expert_down() const;
  Sharding expert_up_layout() const;
  Bytes rows_sent(OperandId rows) const;
  std::int64_t passes(std::int64_t apart, std::int64_t fused) const;
  bool sorts() const;
  TokenCopies copies_to_nodes() const;
  Bytes clamp_traffic(OperandId active, double passes) const;
  Operation& permute(RowMove move, const std::string& name, OperandId in, OperandId out);
  void sort(RowMove move, const std::string& name, OperandId in, OperandId out);
  void combine(OperandId tokens, OperandId back, OperandId routed);
  void combine_backward(OperandId tokens, OperandId gradient, OperandId rows_gradient);
  void local_forward(OperandId tokens, OperandId rows);
  void local_backward(OperandId tokens, OperandId gradient, OperandId rows_gradient);

  // The router: a GEMM to logits, and the choice of each token's experts and their weights.
  OperandId routing(std::string_view name, Role role, DType dtype);
  OperandId chosen() { return routing("router.chosen", Role::saved, DType::int32); }
  OperandId logits(std::string_view name, Role role) {
    return features(name, role, experts_.count, rows_layout(inputs_.plan));
  }
  OperandId weights() { return routing("router.probabilities", Role::saved, weights_dtype()); }
  OperandId weights_gradient() {
    return routing("router.probabilities.grad", Role::temporary, weights_dtype());
  }
  /// Weights of the chosen experts are in fp32, or fp64 where the plan computes in fp64.
  DType weights_dtype() const { return storage_ == DType::fp64 ? DType::fp64 : DType::fp32; }
  Linear router() const;
  void route(OperandId in);
  void route_backward(OperandId saved_in, OperandId gradient_in);

  const ExpertsPart& experts_;
  MlpBuilder shared_;
};

/// Slots of one expert for the rows of one rank, rounded up: T k / E times slots_of_expert.
std::int64_t ExpertsBuilder::rows_of_expert(OperandId tokens) const {
  const double uneven = slots_of_expert(inputs_.plan);
  const auto copies = static_cast<double>(block_.at(tokens).shape[1] * experts_.per_token);
  const double rows = std::ceil(copies * uneven / static_cast<double>(experts_.count));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(rows));
}

OperandId ExpertsBuilder::expert_rows(std::string_view name, Role role, OperandId tokens,
                                      std::int64_t columns, const Sharding& layout) {
  const std::int64_t senders = block_.mesh().degree({MeshAxis::expert, MeshAxis::expert_tensor});
  const OperandId slots = block_.operand(
      name, role, storage_, {experts_.count, rows_of_expert(tokens) * senders, columns}, layout);
  block_.fill(slots, filled_slots(inputs_.plan));
  return slots;
}

/// The experts' outputs for a rank's tokens, saved for backward.
OperandId ExpertsBuilder::kept_outputs(OperandId tokens) {
  return of_width("experts.kept", Role::saved, tokens, at_senders());
}

Sharding ExpertsBuilder::expert_up_layout() const {
  Sharding layout = expert_columns();
  const std::int64_t f = experts_.mlp.width;
  if (experts_.mlp.gated) layout.column_groups = {f, f, 0};
  return layout;
}

/// Bytes of the rows that a rank sends to experts, or receives back.
Bytes ExpertsBuilder::rows_sent(OperandId rows) const {
  Operand sent = block_.at(rows);
  sent.shape = block_.shape(rows, at_senders());
  return sent.moved();
}

Linear ExpertsBuilder::of_experts(std::string_view name, const Sharding& sharding) const {
  Linear layer = linear_of(matrix_of(matrices_of(experts_, hidden()), name), sharding);
  layer.experts = experts_.count;
  return layer;
}

Linear ExpertsBuilder::expert_down() const {
  Sharding layout = at_experts();
  layout.cut(MeshAxis::expert_tensor) = Cut{Dimension::rows};
  return of_experts("experts.down", layout);
}

/// Must received rows be sorted? They arrive by rank and then by expert; a rank with one expert
/// needs no sort.
bool ExpertsBuilder::sorts() const {
  const Mesh& mesh = block_.mesh();
  const bool sent = mesh.degree({MeshAxis::expert, MeshAxis::expert_tensor}) > 1;
  return sent && experts_.count > mesh.degree(MeshAxis::expert);
}

TokenCopies ExpertsBuilder::copies_to_nodes() const {
  if (inputs_.plan.experts.dispatcher == Dispatcher::all_to_all) return {};
  return {experts_.per_token, experts_.routing.groups, experts_.routing.groups_kept};
}

/// Passes of a permutation over the rows that are sent: separate kernels, or one fused kernel.
std::int64_t ExpertsBuilder::passes(std::int64_t apart, std::int64_t fused) const {
  return inputs_.plan.experts.permute_fusion ? fused : apart;
}

Operation& ExpertsBuilder::permute(RowMove move, const std::string& name, OperandId in,
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

/// Kernels of a loop over experts, for each expert.
std::int64_t kernels_in_loop(const Operation& op) {
  switch (op.kind) {
    case OpKind::permute:  // finds tokens in three kernels, and selects; backward of a sum
      return op.pass == Pass::forward ? 4 : 3;
    case OpKind::unpermute:  // selects weights, multiplies, adds; backward of a selection
      return 3;
    case OpKind::activation:
    case OpKind::activation_backward:  // silu, and the product with up
      return 2;
    default:
      return 1;
  }
}

/// Marks what runs expert by expert among the operations from `first` on.
void ExpertsBuilder::launch_one_by_one(std::size_t first) {
  if (gemms() == ExpertGemms::grouped) return;
  const std::int64_t here = experts_.count / block_.mesh().degree(MeshAxis::expert);
  for (Operation& op : block_.since(first)) {
    const bool moves = op.kind == OpKind::permute || op.kind == OpKind::unpermute;
    const bool multiplies = op.kind == OpKind::grouped_gemm;
    const bool acts = (op.kind == OpKind::activation || op.kind == OpKind::activation_backward) &&
                      op.name.starts_with("experts.");
    if (!(multiplies || acts || (moves && loops()))) continue;
    const bool halves = loops() && multiplies && experts_.mlp.gated &&
                        op.name.starts_with("experts.up");  // gate and up
    const std::int64_t each = (loops() ? kernels_in_loop(op) : 1) * (halves ? 2 : 1);
    op.module.kernels = static_cast<std::int16_t>(std::min<std::int64_t>(here * each, 1 << 14));
    op.host_waits = op.host_waits || (loops() && op.moves() == RowMove::dispatch);
  }
}

/// Sorts rows from the order of their source ranks to that of local experts, or back.
void ExpertsBuilder::sort(RowMove move, const std::string& name, OperandId in, OperandId out) {
  Operation& op = permute(move, name, in, out);
  op.mutable_source_ranks() = block_.mesh().degree({MeshAxis::expert, MeshAxis::expert_tensor});
}

/// Traffic of so many passes over the activation's output.
Bytes ExpertsBuilder::clamp_traffic(OperandId active, double passes) const {
  return nearest_count<Bytes>(passes * static_cast<double>(block_.at(active).moved().count()));
}

/// The MLPs of the local experts: rows sorted by expert in, partial sums of their outputs out.
void ExpertsBuilder::local_forward(OperandId tokens, OperandId rows) {
  const OperandId inner =
      expert_rows("experts.up.out", role_of_inner(), tokens, expert_up().out, expert_up_layout());
  const OperandId active = expert_rows("experts.activation.out", Role::saved, tokens,
                                       experts_.mlp.width, expert_columns());
  linear_.forward(expert_up(), rows, inner);
  keep_inner(inner);
  Operation& activation = block_.add(OpKind::activation, "experts.activation", {inner}, {active});
  activation.mutable_activation() = experts_.mlp.activation;
  if (saves_unfused() && experts_.mlp.gated) save_besides(activation, activated_gate(tokens));
  if (experts_.mlp.clamped) {
    activation.mutable_clamp() = experts_.mlp.limit;
    activation.bytes += clamp_traffic(active, inputs_.software.kernels.clamped_forward_passes);
  }
  linear_.forward(expert_down(), active,
                  of_width("experts.out", Role::temporary, tokens, expert_sums()));
}

void ExpertsBuilder::combine(OperandId tokens, OperandId back, OperandId routed) {
  Operation& sum = permute(RowMove::combine, "unpermute", back, routed);
  block_.need(sum, back, at_senders());
  const std::int64_t biases = experts_.mlp.bias ? 6 : 0;
  sum.bytes = (passes(loops() ? 5 : 9, 1) + biases) * rows_sent(back) + block_.at(routed).bytes();
  block_.read(sum, weights());
  block_.read(sum, chosen());
  if (keeps_outputs()) block_.write(sum, kept_outputs(tokens));
}

/// Tokens as experts are sent them.
OperandId ExpertsBuilder::narrowed(OperandId in) {
  if (experts_.narrow == 0) return in;
  const OperandId sent = sent_tokens("experts.narrow.out", Role::temporary);
  linear_.forward(whole("experts.narrow"), in, sent);
  return sent;
}

/// The shared experts' output, and the logit of their gate.
void ExpertsBuilder::shared_forward(OperandId in, OperandId out) {
  shared_.forward(in, out);
  if (!experts_.shared_gate) return;
  linear_.forward(whole("shared.gate"), in, gate_columns("shared.gate.out", Role::saved));
}

void ExpertsBuilder::routed_forward(OperandId sent, OperandId routed) {
  OperandId arrived =
      of_width(arrival(), sorts() ? Role::temporary : Role::saved, sent, at_experts());
  if (sorts()) {
    const OperandId sorted = of_width("experts.in", Role::saved, sent, at_experts());
    sort(RowMove::by_expert, "sort", arrived, sorted);
    arrived = sorted;
  }
  local_forward(sent, arrived);
  OperandId back = of_width("experts.out", Role::temporary, sent, expert_sums());
  if (sorts()) {
    const OperandId unsorted = of_width("returned", Role::temporary, sent, expert_sums());
    sort(RowMove::by_rank, "sort.back", back, unsorted);
    back = unsorted;
  }
  if (experts_.narrow == 0) return combine(sent, back, routed);
  const OperandId sum = sent_tokens("experts.widen.in", Role::saved);
  combine(sent, back, sum);
  linear_.forward(whole("experts.widen"), sum, routed);
}

void ExpertsBuilder::forward(OperandId in, OperandId out) {
  const bool overlaps = inputs_.plan.experts.overlap == ExpertOverlap::shared;
  const Role kept = experts_.shared_gate ? Role::saved : Role::temporary;
  const OperandId shared_out = shares() ? rows("shared.out", kept) : out;
  const OperandId routed = shares() ? rows("experts.sum", Role::temporary) : out;
  const std::size_t first = block_.size();
  route(in);
  if (shares() && !overlaps) shared_forward(in, shared_out);
  const OperandId sent = narrowed(in);
  const OperandId arrived =
      of_width(arrival(), sorts() ? Role::temporary : Role::saved, sent, at_experts());
  Operation& dispatch = permute(RowMove::dispatch, "permute", sent, arrived);
  block_.make(dispatch, arrived, at_senders());
  dispatch.bytes = passes(2, 1) * rows_sent(arrived);
  if (inputs_.plan.experts.permute_fusion) dispatch.bytes += block_.at(sent).bytes();
  dispatch.mutable_drops() = inputs_.plan.experts.capacity > 0;
  block_.read(dispatch, chosen());
  if (shares() && overlaps) shared_forward(in, shared_out);
  routed_forward(sent, routed);
  if (shares()) {
    Operation& add = block_.add(OpKind::add, "experts.add", {routed, shared_out}, {out});
    if (experts_.shared_gate) {
      block_.read(add, gate_columns("shared.gate.out", Role::saved));
      add.mutable_gates_row() = true;
    }
  }
  for (Operation& each : block_.since(first)) each.module.moe = true;
  launch_one_by_one(first);
}

void ExpertsBuilder::local_backward(OperandId tokens, OperandId gradient, OperandId rows_gradient) {
  const OperandId inner =
      expert_rows("experts.up.out", role_of_inner(), tokens, expert_up().out, expert_up_layout());
  const OperandId active = expert_rows("experts.activation.out", Role::saved, tokens,
                                       experts_.mlp.width, expert_columns());
  const OperandId d_inner = expert_rows("experts.up.out.grad", Role::temporary, tokens,
                                        expert_up().out, expert_up_layout());
  const OperandId d_active = expert_rows("experts.activation.out.grad", Role::temporary, tokens,
                                         experts_.mlp.width, expert_columns());
  linear_.backward(expert_down(), active, gradient, d_active);
  restore_inner(inner);
  Operation& activation = block_.add(OpKind::activation_backward, "experts.activation.backward",
                                     {d_active, inner}, {d_inner});
  activation.mutable_activation() = experts_.mlp.activation;
  if (saves_unfused() && experts_.mlp.gated) read_besides(activation, activated_gate(tokens));
  if (experts_.mlp.clamped) {
    activation.mutable_clamp() = experts_.mlp.limit;
    activation.bytes += clamp_traffic(active, inputs_.software.kernels.clamped_backward_passes);
  }
  linear_.backward(expert_up(), of_width("experts.in", Role::saved, tokens, at_experts()), d_inner,
                   rows_gradient);
}

/// Backward of combine, on the ranks that own the tokens: the gradients of the experts' outputs,
/// and of the router's weights where the stack keeps those outputs.
void ExpertsBuilder::combine_backward(OperandId tokens, OperandId gradient,
                                      OperandId rows_gradient) {
  Operation& spread =
      permute(RowMove::combine_backward, "unpermute.backward", gradient, rows_gradient);
  block_.make(spread, rows_gradient, at_senders());
  const std::int64_t biases = experts_.mlp.bias ? 8 : 0;
  spread.bytes = (passes(loops() ? 6 : 11, 2) + biases) * rows_sent(rows_gradient);
  if (inputs_.plan.experts.permute_fusion) spread.bytes += block_.at(gradient).bytes();
  block_.read(spread, weights());
  if (!keeps_outputs()) return;
  block_.read(spread, chosen());
  block_.read(spread, kept_outputs(tokens));
  block_.write(spread, weights_gradient());
}

/// Gradient of the shared experts' input: through their gate, if they have one.
void ExpertsBuilder::shared_backward(OperandId saved_in, OperandId gradient_out,
                                     OperandId gradient_in) {
  if (!experts_.shared_gate) return shared_.backward(saved_in, gradient_out, gradient_in);
  const OperandId d_out = rows("shared.out.grad", Role::temporary);
  const OperandId d_gate = gate_columns("shared.gate.out.grad", Role::temporary);
  Operation& op = block_.add(
      OpKind::activation_backward, "shared.gate.backward",
      {gradient_out, rows("shared.out", Role::saved), gate_columns("shared.gate.out", Role::saved)},
      {d_out, d_gate});
  op.dtype = storage_;
  op.mutable_gates() = GatedColumns::rows;
  const OperandId of_gate = rows("shared.gate.in.grad", Role::temporary);
  const OperandId of_mlp = rows("shared.mlp.in.grad", Role::temporary);
  shared_.backward(saved_in, d_out, of_mlp);
  linear_.backward(whole("shared.gate"), saved_in, d_gate, of_gate);
  block_.add(OpKind::add, "shared.in.add", {of_mlp, of_gate}, {gradient_in});
}

/// The gradient that leaves the experts' weighted sum.
OperandId ExpertsBuilder::sum_gradient(OperandId gradient_out) {
  if (experts_.narrow == 0) return gradient_out;
  const OperandId d_sum = sent_tokens("experts.widen.in.grad", Role::temporary);
  linear_.backward(whole("experts.widen"), sent_tokens("experts.widen.in", Role::saved),
                   gradient_out, d_sum);
  return d_sum;
}

/// Sends the gradients of dispatched rows back to their tokens.
void ExpertsBuilder::dispatch_backward(OperandId saved_in, OperandId up_gradient,
                                       OperandId d_tokens) {
  const bool narrow = experts_.narrow > 0;
  const OperandId d_sent =
      narrow ? sent_tokens("experts.narrow.out.grad", Role::temporary) : d_tokens;
  Operation& sum = permute(RowMove::dispatch_backward, "permute.backward", up_gradient, d_sent);
  block_.need(sum, up_gradient, at_senders());
  sum.bytes = passes(3, 1) * rows_sent(up_gradient) + block_.at(d_sent).bytes();
  if (loops()) sum.bytes += block_.at(d_sent).bytes() * 4 * experts_.count;
  block_.read(sum, chosen());
  if (narrow) linear_.backward(whole("experts.narrow"), saved_in, d_sent, d_tokens);
}

void ExpertsBuilder::backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) {
  const auto named = [&](std::string_view name, const Sharding& layout) {
    return of_width(name, Role::temporary, saved_in, layout);
  };
  const std::size_t first = block_.size();
  const OperandId d_sum = sum_gradient(gradient_out);
  OperandId down_gradient = named(sorts() ? "returned.grad" : "experts.out.grad", at_experts());
  combine_backward(saved_in, d_sum, down_gradient);
  const OperandId d_shared = rows("shared.in.grad", Role::temporary);
  if (shares()) shared_backward(saved_in, gradient_out, d_shared);
  if (sorts()) {
    const OperandId sorted = named("experts.out.grad", at_experts());
    sort(RowMove::by_expert, "sort.back.backward", down_gradient, sorted);
    down_gradient = sorted;
  }
  OperandId up_gradient = named("experts.in.grad", expert_sums());
  local_backward(saved_in, down_gradient, up_gradient);
  if (sorts()) {
    const OperandId unsorted = named("dispatched.grad", expert_sums());
    sort(RowMove::by_rank, "sort.backward", up_gradient, unsorted);
    up_gradient = unsorted;
  }
  const OperandId d_rows = rows("permute.in.grad", Role::temporary);
  const OperandId d_router = rows("router.in.grad", Role::temporary);
  dispatch_backward(saved_in, up_gradient, d_rows);
  route_backward(saved_in, d_router);
  Operation& add = block_.add(OpKind::add, "experts.in.add", {d_rows, d_router}, {gradient_in});
  if (shares()) block_.read(add, d_shared);
  launch_one_by_one(first);
}

/// [T, k]: indices or weights of the experts that each token is sent to.
OperandId ExpertsBuilder::routing(std::string_view name, Role role, DType dtype) {
  return block_.operand(name, role, dtype, {1, tokens(), experts_.per_token},
                        rows_layout(inputs_.plan));
}

Linear ExpertsBuilder::router() const {
  Linear layer = linear_of(matrix_of(matrices_of(experts_, hidden()), "router"), {});
  layer.bias = experts_.router_bias;
  layer.low_precision = false;
  return layer;
}

void ExpertsBuilder::route(OperandId in) {
  const OperandId scores = logits("router.out", Role::saved);
  linear_.forward(router(), in, scores);
  Operation& op = block_.add(OpKind::route, "route", {scores}, {weights(), chosen()});
  op.mutable_routing() = experts_.routing;
  if (!op.routing().corrected) return;
  block_.read(op, parameter({.name = "router.correction",
                             .uncut = {1, 1, experts_.count},
                             .initial = {Initial::Kind::zeros},
                             .frozen = true}));
}

void ExpertsBuilder::route_backward(OperandId saved_in, OperandId gradient_in) {
  const OperandId scores = logits("router.out", Role::saved);
  const OperandId d_scores = logits("router.out.grad", Role::temporary);
  Operation& op = block_.add(OpKind::route_backward, "route.backward",
                             {scores, weights(), chosen()}, {d_scores});
  op.dtype = storage_;
  op.mutable_routing() = experts_.routing;
  if (keeps_outputs()) block_.read(op, weights_gradient());
  linear_.backward(router(), saved_in, d_scores, gradient_in);
}

}  // namespace

std::unique_ptr<ChannelBuilder> experts_builder(BlockScope& scope, const ExpertsPart& experts) {
  return std::make_unique<ExpertsBuilder>(scope, experts);
}

}  // namespace orrery::models

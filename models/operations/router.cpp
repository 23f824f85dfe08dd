// The router of a layer with experts: a GEMM to logits, and the choice of each token's experts and
// their weights.

#include "models/operations/layer.hpp"

namespace orrery::models {

/// [T, k]: indices or weights of the experts that each token is sent to.
OperandId LayerBuilder::routing(std::string_view name, Role role, DType dtype) {
  return block_.operand(name, role, dtype, {1, tokens(), inputs_.model.experts.per_token},
                        rows_layout(inputs_.plan));
}

OperandId LayerBuilder::chosen() {
  return routing("router.chosen", Role::saved, DType::int32);
}

/// Weights of the chosen experts, in fp32, or fp64 where the plan computes in fp64.
OperandId LayerBuilder::weights() {
  return routing("router.probabilities", Role::saved, weights_dtype());
}

OperandId LayerBuilder::weights_gradient() {
  return routing("router.probabilities.grad", Role::temporary, weights_dtype());
}

DType LayerBuilder::weights_dtype() const {
  return storage_ == DType::fp64 ? DType::fp64 : DType::fp32;
}

Linear LayerBuilder::router() const {
  const Model& model = inputs_.model;
  return {.name = "router",
          .in = model.hidden,
          .out = model.experts.count,
          .bias = model.experts.router_bias,
          .low_precision = false};
}

void LayerBuilder::route(OperandId in) {
  const OperandId logits =
      features("router.out", Role::saved, inputs_.model.experts.count, rows_layout(inputs_.plan));
  linear_.forward(router(), in, logits);
  Operation& op = block_.add(OpKind::route, "route", {logits}, {weights(), chosen()});
  op.mutable_routing() = inputs_.model.experts.routing;
  if (!op.routing().corrected) return;
  block_.read(op, parameter({.name = "router.correction",
                             .uncut = {1, 1, inputs_.model.experts.count},
                             .initial = {Initial::Kind::zeros},
                             .frozen = true}));
}

void LayerBuilder::route_backward(OperandId saved_in, OperandId gradient_in) {
  const Sharding layout = rows_layout(inputs_.plan);
  const OperandId logits = features("router.out", Role::saved, inputs_.model.experts.count, layout);
  const OperandId d_logits =
      features("router.out.grad", Role::temporary, inputs_.model.experts.count, layout);
  Operation& op = block_.add(OpKind::route_backward, "route.backward",
                             {logits, weights(), chosen()}, {d_logits});
  op.dtype = storage_;
  op.mutable_routing() = inputs_.model.experts.routing;
  if (keeps_outputs()) block_.read(op, weights_gradient());
  linear_.backward(router(), saved_in, d_logits, gradient_in);
}

}  // namespace orrery::models

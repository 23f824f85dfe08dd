// Source of tiles: Bekman et al. 2025, "Arctic Long Sequence Training", arXiv 2506.13996, section
// 3.1.2; TiledMLP of DeepSpeed, runtime/sequence_parallel/ulysses_sp.py: forward without a graph
// tile by tile; backward runs each tile's forward again, output included, and its backward.

#include "models/operations/parts/mlp.hpp"

#include <algorithm>

namespace orrery::models {

Linear MlpBuilder::up() const {
  return linear_of(matrix_of(matrices_of(mlp_, hidden(), prefix_), prefix_ + "up"),
                   mlp_layout(mlp_));
}

Linear MlpBuilder::down() const {
  return linear_of(matrix_of(matrices_of(mlp_, hidden(), prefix_), prefix_ + "down"), by_rows());
}

/// Tiles of a layer's own MLP; shared experts are computed whole.
std::int64_t MlpBuilder::tiles() const {
  return prefix_.empty() ? inputs_.plan.kernels.mlp_tiles : 1;
}

/// [T / tiles, columns]: one tile exists at a time, and none is kept for backward.
OperandId MlpBuilder::of_tile(std::string_view name, Role role, std::int64_t columns,
                              const Sharding& layout) {
  const std::string own = prefix_ + std::string{name};
  if (tiles() == 1) return features(own, role, columns, layout);
  const std::int64_t rows = (tokens() + tiles() - 1) / tiles();
  return block_.operand(own, Role::temporary, storage_, {1, rows, columns}, of_tokens(layout));
}

void MlpBuilder::compute(OperandId in, OperandId out) {
  const OperandId inner = up_columns("up.out", role_of_inner());
  const OperandId active = inner_columns("activation.out", Role::saved);
  linear_.forward(up(), in, inner);
  keep_inner(inner);
  Operation& op = block_.add(OpKind::activation, prefix_ + "activation", {inner}, {active});
  act(op);
  if (saves_gate()) save_besides(op, inner_columns("activation.gate", Role::saved));
  linear_.forward(down(), active, out);
}

/// States what the operations from `first` on do in all tiles: GEMMs over all tokens, weights and
/// their gradients read and written once for each tile, everything else once for each token.
void MlpBuilder::count_tiles(std::size_t first, Operands whole) {
  if (tiles() == 1) return;
  const std::int64_t all = block_.at(*whole.begin()).shape[1];
  for (Operation& op : block_.since(first)) {
    op.module.kernels = static_cast<std::int16_t>(tiles());
    op.bytes = Bytes{};
    const auto move = [&](OperandId id) {
      const bool once = std::ranges::find(whole, id) != whole.end();
      op.bytes += block_.at(id).bytes() * (once ? 1 : tiles());
    };
    for (const OperandId id : op.reads) move(id);
    for (const OperandId id : op.writes) move(id);
    if (!is_gemm(op.kind)) continue;
    GemmShape& shape = op.mutable_gemm();
    (shape.transpose_a ? shape.k : shape.m) = all;
    if (shape.accumulate) op.bytes += block_.at(op.writes.front()).bytes() * tiles();
    op.flops = multiplied<Flops>(2, shape.m, shape.n, shape.k);
  }
}

void MlpBuilder::forward(OperandId in, OperandId out) {
  const std::size_t first = block_.size();
  compute(in, out);
  for (Operation& each : block_.since(first)) each.module.mlp = prefix_.empty();
  count_tiles(first, {in, out});
}

void MlpBuilder::backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) {
  const std::size_t first = block_.size();
  if (tiles() > 1) {  // each tile is computed again, its output included
    const OperandId again = of_tile("mlp.out", Role::temporary, hidden(), {});
    compute(saved_in, again);
    for (Operation& each : block_.since(first)) {
      each.pass = Pass::recompute;
      each.name += ".of_tile";
    }
    count_tiles(first, {saved_in});
  }
  const std::size_t second = block_.size();
  const OperandId inner = up_columns("up.out", role_of_inner());
  const OperandId active = inner_columns("activation.out", Role::saved);
  const OperandId d_active = inner_columns("activation.out.grad", Role::temporary);
  const OperandId d_inner = up_columns("up.out.grad", Role::temporary);
  linear_.backward(down(), active, gradient_out, d_active);
  restore_inner(inner);
  Operation& op = block_.add(OpKind::activation_backward, prefix_ + "activation.backward",
                             {d_active, inner}, {d_inner});
  act(op);
  if (saves_gate()) read_besides(op, inner_columns("activation.gate", Role::saved));
  linear_.backward(up(), saved_in, d_inner, gradient_in);
  count_tiles(second, {saved_in, gradient_out, gradient_in});
}

}  // namespace orrery::models

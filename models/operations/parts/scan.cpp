// Mamba-2 and the gated delta rule as a layer's mixer: a projection to all that the recurrence
// reads, the recurrence (a convolution along the sequence, a scan chunk by chunk, a gated norm) as
// one operation, and the output projection. Forward saves what the projection wrote and what the
// recurrence wrote; backward makes everything between again, and has four times forward's FLOPs:
// FLA's on H200 runs at 39 TFLOP/s of forward's FLOPs, where forward reaches 145. Tensor
// parallelism cuts heads, and leaves the number of chunks as it is. The projection's columns are
// in an order in which each rank's are together:
//   Mamba-2   gate and value of each head;  both sides of the state of each group;  step of each
//             head. Convolved are the values of all heads, then both sides of each group
//   delta     query, key and values of each key head;  gate of each value head;  write strength and
//             step of each. Convolved are the first
//
// Kimi's delta rule reads a decay for each channel and the gate of its output as well, each from
// the input through two matrices with few columns between them.
//
// Memory traffic of one token forward, in 16 bits, with d inner columns, C convolved ones, g groups
// of states s, Q tokens a chunk, H heads; backward three times that, which nobody measured:
//   convolution  4 C  read and written once, by a kernel of its own
//   Mamba-2      2 (d + H)  projected;  4 C  convolved, read twice;  8 Q g  the product of both
//                sides of the state, and 16 s d / Q the states, in fp32;  8 d  the output and norm
//                with several sequences a micro-batch, Megatron's copies besides (reordered)
//   delta        6 v  norm of the values. The scan's own traffic is in its measured time
//                (pricing/kernel_time.cpp)
// Source  state-spaces/mamba v2.2, ssd_combined.py (mamba_split_conv1d_scan_combined);
//         fla-org/flash-linear-attention, ops/gated_delta_rule/chunk.py

#include "models/operations/parts/part.hpp"

namespace orrery::models {

namespace {

/// One recurrence, before any cut.
struct Scan {
  ScanRule rule = ScanRule::mamba2;
  std::vector<LayerMatrix> matrices;
  Sharding projected{};                  // layout of the projection's columns
  Sharding convolution{};                // of the convolved columns
  std::int64_t columns = 0;              // of its output
  std::int64_t convolved = 0, rows = 0;  // rows of the convolution: its taps, and a bias or not
  std::int64_t heads = 0, of_head = 0;   // vectors of numbers for each head
  std::int64_t norm = 0;                 // weights of the gated norm
  bool norm_is_cut = false;
  std::int64_t flops = 0, bytes = 0;  // of one token forward, bytes without the convolution's
  std::int64_t kept = 0;              // further columns that are saved
  ScanWork work{};                    // before any cut, without the number of chunks
  bool gates = false;                 // the decay and the output's gate have own matrices
};

Scan scan_of(const Mamba2Part& part, std::int64_t hidden) {
  const std::int64_t d = part.inner(), sides = 2 * part.groups * part.state;
  Sharding cut = by_columns(), convolution = by_columns();
  cut.column_groups = {2 * d, sides, part.heads};
  convolution.column_groups = {d, sides, 0};
  return {.rule = ScanRule::mamba2,
          .matrices = matrices_of(part, hidden),
          .projected = cut,
          .convolution = convolution,
          .columns = d,
          .convolved = part.convolved(),
          .rows = part.taps + 1,
          .heads = part.heads,
          .of_head = 3,
          .norm = d,
          .norm_is_cut = true,
          .flops = scan_flops(part),
          .bytes = 2 * (d + part.heads) + 4 * part.convolved() + 8 * part.chunk * part.groups +
                   16 * part.state * d / part.chunk + 8 * d,
          .work = {.chunk = part.chunk,
                   .taps = part.taps,
                   .heads = part.heads,
                   .value_dim = part.head_dim,
                   .groups = part.groups,
                   .state = part.state,
                   .least_step = part.least_step}};
}

Scan scan_of(const DeltaPart& part, std::int64_t hidden) {
  const bool kimi = part.gate_rank > 0;
  Sharding cut = by_columns();
  cut.column_groups = {part.convolved(), kimi ? 0 : part.values(),
                       (kimi ? 1 : 2) * part.value_heads};
  return {.rule = kimi ? ScanRule::kimi : ScanRule::delta,
          .matrices = matrices_of(part, hidden),
          .projected = cut,
          .convolution = by_columns(),
          .columns = part.values(),
          .convolved = part.convolved(),
          .rows = part.taps,
          .heads = part.value_heads,
          .of_head = kimi ? part.key_dim + 1 : 2,
          .norm = part.value_dim,
          .flops = scan_flops(part),
          .bytes = 6 * part.values(),
          .kept = DeltaPart::chunk * part.value_heads,  // the inverse of each chunk's matrix
          .work = {.chunk = DeltaPart::chunk,
                   .taps = part.taps,
                   .heads = part.value_heads,
                   .value_dim = part.value_dim,
                   .groups = part.key_heads,
                   .state = part.key_dim},
          .gates = kimi};
}

class ScanBuilder : public MixerBuilder, private TransformerBuilder {
 public:
  ScanBuilder(BlockScope& scope, Scan scan) : TransformerBuilder{scope}, scan_{std::move(scan)} {}

  void mix(OperandId in) override {
    const OperandId projected = columns("mixer.in.out", Role::saved);
    linear_.forward(in_projection(), in, projected);
    for (const char* gate : gates()) {
      linear_.forward(down(gate), in, narrow(gate, Role::saved));
      linear_.forward(up(gate), narrow(gate, Role::saved), wide(gate, Role::saved));
    }
    Operation& op = block_.add(OpKind::scan, "mixer.scan", {projected},
                               {output("mixer.scan.out", Role::saved)});
    for (const char* gate : gates()) block_.read(op, wide(gate, Role::saved));
    for (const ModelTensor& each : tensors()) op.reads.push_back(parameter(each));
    if (scan_.kept > 0) op.writes.push_back(kept());
    count(op, 1, 1);
  }

  void project(OperandId out) override {
    linear_.forward(out_projection(), output("mixer.scan.out", Role::saved), out);
  }

  void backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) override {
    const OperandId out = output("mixer.scan.out", Role::saved);
    const OperandId d_out = output("mixer.scan.out.grad", Role::temporary);
    const OperandId d_projected = columns("mixer.in.out.grad", Role::temporary);
    linear_.backward(out_projection(), out, gradient_out, d_out);
    Operation& op = block_.add(OpKind::scan_backward, "mixer.scan.backward",
                               {d_out, columns("mixer.in.out", Role::saved), out}, {d_projected});
    op.dtype = storage_;
    if (scan_.kept > 0) op.reads.push_back(kept());
    for (const char* gate : gates()) {
      block_.read(op, wide(gate, Role::saved));
      block_.write(op, wide_gradient(gate));
    }
    for (const ModelTensor& each : tensors()) {
      op.reads.push_back(parameter(each));
      op.writes.push_back(gradient_of(each, d_out));
    }
    count(op, 4, 3);
    if (!scan_.gates) {
      return linear_.backward(in_projection(), saved_in, d_projected, gradient_in);
    }
    const OperandId d_in = rows("mixer.in.grad", Role::temporary);
    linear_.backward(in_projection(), saved_in, d_projected, d_in);
    std::vector<OperandId> parts{d_in};
    for (const char* gate : gates()) {
      const OperandId d_narrow = features(named(gate, "_down.out.grad"), Role::temporary,
                                          down(gate).out, rows_layout(inputs_.plan));
      linear_.backward(up(gate), narrow(gate, Role::saved), wide_gradient(gate), d_narrow);
      parts.push_back(rows(named(gate, "_down.in.grad"), Role::temporary));
      linear_.backward(down(gate), saved_in, d_narrow, parts.back());
    }
    block_.add(OpKind::add, "mixer.in.add", {parts[0], parts[1], parts[2]}, {gradient_in});
  }

  bool has_bias() const override { return false; }

 private:
  OperandId columns(std::string_view name, Role role) {
    return features(name, role, in_projection().out, scan_.projected);
  }
  OperandId output(std::string_view name, Role role) { return features(name, role, scan_.columns); }

  // Kimi's decay and gate of the output.
  std::vector<const char*> gates() const {
    return scan_.gates ? std::vector<const char*>{"decay", "gate"} : std::vector<const char*>{};
  }
  static std::string named(const char* gate, const char* suffix) {
    return "mixer." + std::string{gate} + suffix;
  }
  Linear down(const char* gate) const {
    return linear_of(matrix_of(scan_.matrices, named(gate, "_down")), {});
  }
  Linear up(const char* gate) const {
    return linear_of(matrix_of(scan_.matrices, named(gate, "_up")), by_columns());
  }
  OperandId narrow(const char* gate, Role role) {
    return features(named(gate, "_down.out"), role, down(gate).out, rows_layout(inputs_.plan));
  }
  OperandId wide(const char* gate, Role role) {
    return features(named(gate, "_up.out"), role, scan_.columns);
  }
  OperandId wide_gradient(const char* gate) {
    return features(named(gate, "_up.out.grad"), Role::temporary, scan_.columns);
  }
  OperandId kept() { return features("mixer.scan.kept", Role::saved, scan_.kept); }
  Linear in_projection() const {
    return linear_of(matrix_of(scan_.matrices, "mixer.in"), scan_.projected);
  }
  Linear out_projection() const {
    return linear_of(matrix_of(scan_.matrices, "mixer.out"), by_rows());
  }
  /// Convolution, numbers of each head, gated norm.
  std::vector<ModelTensor> tensors() const {
    return {{.name = "mixer.convolution",
             .uncut = {1, scan_.rows, scan_.convolved},
             .sharding = scan_.convolution,
             .initial = {.deviation = inputs_.model.initial_deviation}},
            {.name = "mixer.heads",
             .uncut = {1, scan_.of_head, scan_.heads},
             .sharding = by_columns(),
             .initial = {Initial::Kind::ones}},
            {.name = "mixer.norm.weight",
             .uncut = {1, 1, scan_.norm},
             .sharding = scan_.norm_is_cut ? by_columns() : Sharding{},
             .initial = {Initial::Kind::ones}}};
  }
  /// Ranks have partial sums along the axes that cut the output and not the tensor.
  OperandId gradient_of(const ModelTensor& tensor, OperandId d_out) {
    if (tensor.sharding == Sharding{}) return gradient(tensor, d_out);
    return block_.gradient(tensor, gradient_, block_.at(d_out).sharding.axes(Dimension::rows));
  }
  /// Bytes of a token's columns that are copied into another order, in either direction: Megatron
  /// keeps a position's sequences together, Mamba-2's kernels a sequence's positions.
  /// Source  NVIDIA/Megatron-LM, megatron/core/ssm/mamba_mixer.py (_ssm_training: rearrange and
  ///         contiguous, of what the kernels read and of what they write)
  std::int64_t reordered() const {
    const bool apart = inputs_.software.lineage == "megatron" && inputs_.plan.batch.micro > 1;
    if (!apart || scan_.rule != ScanRule::mamba2) return 0;
    return 4 * (in_projection().out + scan_.columns);
  }
  void count(Operation& op, std::int64_t work, std::int64_t passes) const {
    const std::int64_t ranks = block_.mesh().degree(MeshAxis::tensor);
    const std::int64_t width = std::max(1, bits(storage_) / 16);
    op.flops = multiplied<Flops>(tokens(), work, scan_.flops / ranks);
    op.bytes = multiplied<Bytes>(tokens(), passes * width, scan_.bytes / ranks);
    ScanWork own = scan_.work;
    own.rule = scan_.rule;
    own.chunks = (inputs_.plan.batch.seq_len + own.chunk - 1) / own.chunk;
    own.heads /= ranks;
    own.groups /= ranks;
    own.epsilon = inputs_.model.norms.epsilon;
    own.convolved = multiplied<Bytes>(tokens(), passes * width, 4 * scan_.convolved / ranks);
    op.mutable_scan() = own;
    op.bytes += own.convolved + multiplied<Bytes>(tokens(), width, reordered() / ranks);
  }

  Scan scan_;
};

}  // namespace

std::unique_ptr<MixerBuilder> scan_builder(BlockScope& scope, const Mamba2Part& mamba) {
  return std::make_unique<ScanBuilder>(scope, scan_of(mamba, scope.inputs.model.hidden));
}

std::unique_ptr<MixerBuilder> scan_builder(BlockScope& scope, const DeltaPart& delta) {
  return std::make_unique<ScanBuilder>(scope, scan_of(delta, scope.inputs.model.hidden));
}

}  // namespace orrery::models

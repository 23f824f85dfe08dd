// Takes a step's tokens to the device, and computes its loss from the softmax statistics that the
// head leaves for its backward.

#include "executor/run/samples.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>

#include "executor/run/reducer/reducer.hpp"
#include "executor/run/weights/masks.hpp"
#include "models/operations/tables.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

/// The operand of the head's forward with the statistics of every vocabulary shard, which the
/// loss's backward reads.
std::size_t statistics_of(const models::Program& program, const models::LayerKind& head) {
  for (const std::uint32_t block : {head.backward, head.forward}) {
    for (const models::Operation& op : program.blocks[block].operations) {
      if (op.kind != models::OpKind::cross_entropy_backward) continue;
      const std::string& name = program.blocks[block].operands[op.reads[2]].name;
      const auto id = program.blocks[head.forward].find(name);
      ensure(id.has_value(), "a loss keeps no statistics");
      return *id;
    }
  }
  throw ContractError{"a head has no loss"};
}

/// Sum of -log softmax at the label, from each shard's statistics [shards, rows, 3]: the largest
/// logit, the sum of exponentials relative to it, and the label's logit.
template <class T>
double loss_of(const T* statistics, std::int64_t shards, std::int64_t rows) {
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    double largest = -std::numeric_limits<double>::infinity(), label = largest;
    for (std::int64_t s = 0; s < shards; ++s) {
      const T* of = statistics + (s * rows + row) * 3;
      largest = std::max(largest, static_cast<double>(of[0]));
      label = std::max(label, static_cast<double>(of[2]));
    }
    double exponentials = 0;
    for (std::int64_t s = 0; s < shards; ++s) {
      const T* of = statistics + (s * rows + row) * 3;
      exponentials += static_cast<double>(of[1]) * std::exp(static_cast<double>(of[0]) - largest);
    }
    sum += largest + std::log(exponentials) - label;
  }
  return sum;
}

std::uint64_t ring_loss_of(const std::uint64_t* statistics, std::int64_t count) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += statistics[3 * i + 1];
  return sum;
}

}  // namespace

Samples::Samples(const RankContext& rank, HeldMemory& memory)
    : rank_{rank},
      own_{rank.settings.tokens == nullptr
               ? synthetic_tokens(rank.settings.seed, rank.program.vocabulary)
               : nullptr},
      source_{own_ ? *own_ : *rank.settings.tokens} {
  const models::Program& program = rank_.program;
  const std::vector<std::uint32_t>& chunks = rank_.ranks.chunks;
  const auto any = [&](auto is) { return std::any_of(chunks.begin(), chunks.end(), is); };
  const bool has_embedding = any([&](std::uint32_t c) { return program.chunks[c].has_embedding; });
  const bool has_head = any([&](std::uint32_t c) { return program.chunks[c].has_head; });
  const std::int64_t micro_batches = program.step.micro_batches;
  const models::Block& head_forward = program.blocks[program.kind(models::ModelPart::head).forward];
  fills_in_ = head_forward.find(models::masked_labels).has_value();
  if (has_embedding || has_head) {
    batch_ = memory.hold(models::BufferKind::staging,
                         micro_batches * (2 * tokens() + source_tokens()) * 8);
    reader_ = std::make_unique<Reader>(source_, shape(), rank_.settings.ahead);
  }
  if (!has_head) return;
  const models::LayerKind& head = program.kind(models::ModelPart::head);
  operand_ = statistics_of(program, head);
  view_ = rank_.plan.blocks()[head.forward].views[*operand_];
  statistics_ = memory.hold(models::BufferKind::staging,
                            micro_batches * view_.elements() * width_of(view_.dtype));
}

double Samples::weight() const {
  const models::Program& program = rank_.program;
  const models::StepShape& of = program.step;
  return 1.0 / static_cast<double>(of.micro_batches * of.sequences * labelled() *
                                   program.mesh.degree(models::data_axes));
}

std::int64_t Samples::labelled() const {
  const std::int64_t all = rank_.program.step.seq_len;
  return fills_in_ ? masked_tokens(all) : all;
}

BatchShape Samples::shape() const {
  const models::StepShape& of = rank_.program.step;
  const models::Mesh& mesh = rank_.program.mesh;
  const std::int64_t samples = of.micro_batches * of.sequences;
  const std::int64_t replica =
      mesh.coordinate(rank_.rank, models::MeshAxis::data) +
      mesh.coordinate(rank_.rank, models::MeshAxis::replica) * mesh.degree(models::MeshAxis::data);
  return {.samples = samples,
          .first = replica * samples,
          .seq_len = of.seq_len,
          .source_len = of.source_len,
          .places = rank_.tokens.places,
          .masked = fills_in_,
          .seed = rank_.settings.seed,
          .vocabulary = rank_.program.vocabulary};
}

void Samples::load(std::int64_t step) {
  if (!reader_) return;
  const Batch& batch = reader_->take(step, rank_.settings.alive);
  times_ = batch.times;
  const auto begin = std::chrono::steady_clock::now();
  rank_.device.write(batch.values.data(), batch_, Bytes{std::ssize(batch.values) * 8});
  times_.copy =
      from_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

/// Copies the statistics aside, because the loss is computed only when the step has ended.
void Samples::keep_statistics(std::int64_t micro_batch, const std::vector<View>& operands) {
  const std::int64_t bytes = view_.elements() * width_of(view_.dtype);
  rank_.device.copy(operands[*operand_].data, statistics_ + micro_batch * bytes, Bytes{bytes},
                    models::Lane::compute);
}

/// Only the first rank of each tensor group with a head returns its loss; all others return 0.
std::uint64_t Samples::known_loss() const {
  const bool first = rank_.program.mesh.coordinate(rank_.rank, models::MeshAxis::tensor) == 0;
  const bool ring = rank_.settings.arithmetic == Arithmetic::ring;
  if (!operand_ || !first) return 0;  // the bits of 0.0, too
  const std::int64_t each = view_.elements() * width_of(view_.dtype), rows = view_.shape[1];
  std::vector<std::byte> host(static_cast<std::size_t>(rank_.program.step.micro_batches * each));
  rank_.device.read(statistics_, host.data(), Bytes{std::ssize(host)});
  double loss = 0;
  std::uint64_t known = 0;
  const models::Program& program = rank_.program;
  const auto holder = std::find_if(rank_.ranks.chunks.begin(), rank_.ranks.chunks.end(),
                                   [&](auto c) { return program.chunks[c].has_head; });
  for (std::int64_t mb = 0; mb < program.step.micro_batches; ++mb) {
    if (!program.runs(program.chunks[*holder], mb)) continue;
    const std::byte* const at = host.data() + mb * each;
    if (ring) {
      known += ring_loss_of(reinterpret_cast<const std::uint64_t*>(at), view_.elements() / 3);
    } else if (width_of(view_.dtype) == 8) {
      loss += loss_of(reinterpret_cast<const double*>(at), view_.shape[0], rows);
    } else {
      loss += loss_of(reinterpret_cast<const float*>(at), view_.shape[0], rows);
    }
  }
  return ring ? known : std::bit_cast<std::uint64_t>(loss * weight());
}

/// Sums the loss over all ranks. This is not part of the step: the Program has no such collective.
void Samples::report(Reducer& reducer, StepOutcome& outcome) const {
  std::uint64_t loss = known_loss();
  const bool ring = rank_.settings.arithmetic == Arithmetic::ring;
  const std::uint16_t world = rank_.program.communicator(models::CommunicatorRole::world);
  if (rank_.program.mesh.ranks() > 1) {
    rank_.device.write(&loss, reducer.number(), Bytes{8});
    reducer.sum_number(world, models::DType::fp64);
    rank_.device.read(reducer.number(), &loss, Bytes{8});
  }
  if (ring) {
    outcome.ring_loss = loss;
  } else {
    outcome.loss = std::bit_cast<double>(loss);
  }
}

}  // namespace orrery::executor

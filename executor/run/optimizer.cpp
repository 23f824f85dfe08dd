#include "executor/run/optimizer.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "executor/errors.hpp"

namespace orrery::executor {

namespace {

using models::DType;
using models::Token;

LossScale scale_of(const RunSettings& settings, const models::Formats& formats) {
  if (settings.loss_scale) return LossScale{*settings.loss_scale};
  return formats.storage == DType::fp16 ? LossScale{first_loss_scale} : LossScale{};
}

}  // namespace

Optimizer::Optimizer(const RankContext& rank, Weights& weights, Reducer& reducer)
    : rank_{rank},
      weights_{weights},
      reducer_{reducer},
      scale_{scale_of(rank.settings, rank.program.formats)} {}

void Optimizer::begin_step(std::int64_t step) {
  step_ = step;
  gradients_seen_ = false;
}

void Optimizer::report(StepOutcome& outcome) const {
  outcome.gradient_norm = norm_;
  outcome.ring_norm = ring_norm_;
  outcome.skipped = scale_.state().skipped;
}

/// The host takes the root of the sum of squares, and the loss's scale out of it.
void Optimizer::norm(Token i) {
  const DType state = weights_.formats().state;
  reducer_.sum_number(rank_.joint(i).communicator, state, i);
  rank_.device.finish();
  std::array<std::byte, 8> bytes{};
  rank_.device.read(reducer_.number(), bytes.data(), Bytes{width_of(state)});
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  };
  if (rank_.settings.arithmetic == Arithmetic::ring) {
    ring_norm_ = as(std::uint64_t{});
  } else {
    const double sum = width_of(state) == 8 ? as(double{}) : static_cast<double>(as(float{}));
    norm_ = std::sqrt(sum) / scale_.value();
  }
}

void Optimizer::run(Token i) {
  reducer_.wait_for_all();
  if (!gradients_seen_ && rank_.settings.before_update) {
    rank_.device.finish();
    rank_.settings.before_update();
  }
  gradients_seen_ = true;
  for (const models::Invocation& run : rank_.invocations(i)) {
    const std::vector<models::Operation>& operations = rank_.program.blocks[run.block].operations;
    for (std::size_t n = 0; n < operations.size(); ++n) {
      const models::Operation& op = operations[n];
      const std::size_t entry = rank_.recording.begin_either(i, op.queue, run.block, n);
      op.kind == models::OpKind::adam ? adam(op) : squared_norm(op);
      rank_.recording.end(entry, op.queue);
    }
  }
}

void Optimizer::squared_norm(const models::Operation& op) {
  const models::Formats& formats = weights_.formats();
  rank_.device.zero(reducer_.number(), Bytes{8});
  const View sum = row_of(reducer_.number(), formats.state, 1);
  for (const Span& span : rank_.layout.counted()) {
    const View range = row_of(weights_.owned_gradient(span.first), formats.gradient, span.count);
    run_on(rank_.device, op, {&range, 1}, {&sum, 1});
  }
}

/// As if the step had not been; every rank has the same norm, and so does the same.
void Optimizer::leave_out_update() {
  weights_.clear_gradients();
  if (!scale_.hopeless()) return;
  throw RunFailure{
      Exit::invalid_program,
      fmt::format("the gradients of steps {} to {} are not finite, so none of them was "
                  "an update: the training has diverged; start from an earlier "
                  "checkpoint, with a lower learning rate or a wider precision",
                  step_ + 2 - most_without_remedy, step_ + 1)};
}

/// The owned piece of each bucket; all of them at once where they follow each other.
void Optimizer::adam(const models::Operation& op) {
  const Layout& layout = rank_.layout;
  const models::StateSharding& sharding = rank_.program.sharding;
  const double clip = rank_.settings.clip;
  AdamStep numbers = rank_.settings.adam;
  const bool clips = clip > 0 && norm_ > clip;
  numbers.gradient_scale = (clips ? clip / norm_ : 1.0) / scale_.value();
  if (!scale_.accept(norm_)) return leave_out_update();
  numbers.step = ++updates_;
  const bool in_a_row = !layout.sharded() || (sharding.parameters && sharding.gradients);
  if (in_a_row) return update(op, numbers, 0, layout.owned());
  for (const Bucket& bucket : layout.buckets()) update(op, numbers, bucket.owned, bucket.piece);
  // What other ranks own holds partial sums still.
  if (!sharding.gradients) weights_.clear_gradients();
}

void Optimizer::update(const models::Operation& op, const AdamStep& numbers, std::int64_t local,
                       std::int64_t count) {
  if (count == 0) return;
  const models::Formats& formats = weights_.formats();
  const auto view = [&](StateKind kind, DType type) {
    return row_of(weights_.state(kind, local), type, count);
  };
  const View sums = view(StateKind::gradient, formats.gradient);
  const View master = view(StateKind::parameter, formats.state);
  const View first = view(StateKind::first_moment, formats.state);
  const View second = view(StateKind::second_moment, formats.state);
  const View working = row_of(weights_.working(local), formats.storage, count);
  const std::array<View, 4> reads{sums, master, first, second};
  const std::array<View, 5> writes{master, first, second, sums, working};
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = {writes.data(), weights_.separate_master() ? 5U : 4U};
  kernel.adam = numbers;
  rank_.device.run(kernel);
}

}  // namespace orrery::executor

#include "executor/run/weights/optimizer.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "executor/errors.hpp"
#include "sim/errors.hpp"

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

/// The host takes the square root of the sum and divides it by the loss scale.
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
      in_order(op.queue);
      const std::size_t entry = rank_.recording.begin_either(i, op.queue, run.block, n);
      this->run(op, rank_.program.blocks[run.block]);
      rank_.recording.end(entry, op.queue);
    }
  }
}

/// Runs operations one after another, whatever their queues: `queue` waits for the last one.
void Optimizer::in_order(models::Lane queue) {
  const models::Lane last = std::exchange(queue_, queue);
  if (last != queue && !rank_.device.synchronous()) {
    rank_.device.wait(queue, rank_.device.mark(last));
  }
}

void Optimizer::run(const models::Operation& op, const models::Block& block) {
  if (op.kind == models::OpKind::adam) return adam(op);
  if (op.kind == models::OpKind::squared_norm) return squared_norm(op);
  ensure(op.kind == models::OpKind::copy, "an optimizer's operation of no known kind");
  const bool leaves = block.operands[op.reads[0]].role == models::Role::input;
  leaves ? to_host(op) : to_device(op);
}

/// Copies the gradients of the elements that this rank owns to the host.
void Optimizer::to_host(const models::Operation& op) {
  const std::int64_t width = width_of(weights_.formats().gradient);
  for (const Span& range : updated_ranges()) {
    rank_.device.copy(weights_.state(StateKind::gradient, range.first),
                      weights_.arrived(range.first), Bytes{range.count * width}, op.queue);
  }
}

/// Copies the working weights that the host updated to the device, and clears the gradients, which
/// are no longer needed.
void Optimizer::to_device(const models::Operation& op) {
  weights_.clear_gradients();
  if (skipped_) return;
  const std::int64_t width = width_of(weights_.formats().storage);
  for (const Span& range : updated_ranges()) {
    rank_.device.copy(weights_.leaving(range.first), weights_.working(range.first),
                      Bytes{range.count * width}, op.queue);
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

/// Leaves the state as it was before the step. Every rank has the same norm and decides the same.
void Optimizer::skip_update() {
  skipped_ = true;
  reducer_.forget_compressed();
  if (!rank_.program.sharding.optimizer_on_host) weights_.clear_gradients();
  if (!scale_.diverged()) return;
  throw RunFailure{
      Exit::invalid_program,
      fmt::format("the gradients of steps {} to {} are not finite, so none of them updated the "
                  "weights: the training has diverged; start from an earlier checkpoint, with a "
                  "lower learning rate or a wider precision",
                  step_ + 2 - most_unfixable, step_ + 1)};
}

/// The owned piece of each bucket; one range for all of them where they are contiguous.
std::vector<Span> Optimizer::updated_ranges() const {
  const Layout& layout = rank_.layout;
  const models::StateSharding& sharding = rank_.program.sharding;
  const bool follow = !layout.sharded() || (sharding.parameters && sharding.gradients);
  if (follow && !weights_.moments().in_blocks()) return {{0, layout.owned()}};
  std::vector<Span> ranges;
  for (const Bucket& bucket : layout.buckets()) ranges.push_back({bucket.owned, bucket.piece});
  return ranges;
}

void Optimizer::adam(const models::Operation& op) {
  const models::StateSharding& sharding = rank_.program.sharding;
  const double clip = rank_.settings.clip;
  AdamStep numbers = rank_.settings.adam;
  const bool clips = clip > 0 && norm_ > clip;
  numbers.gradient_scale = (clips ? clip / norm_ : 1.0) / scale_.value();
  if (!scale_.accept(norm_)) return skip_update();
  numbers.step = ++updates_;
  skipped_ = false;
  for (const Span& range : updated_ranges()) update(op, numbers, range);
  // The gradients of elements that other ranks own still hold partial sums.
  const bool partial = rank_.layout.sharded() && !sharding.gradients;
  if (partial && !sharding.optimizer_on_host) weights_.clear_gradients();
}

void Optimizer::update(const models::Operation& op, const AdamStep& numbers, const Span& range) {
  const auto [local, count] = range;
  if (count == 0) return;
  const models::Formats& formats = weights_.formats();
  const bool on_host = rank_.program.sharding.optimizer_on_host;
  const auto view = [&, local = local, count = count](StateKind kind, DType type) {
    return row_of(weights_.state(kind, local), type, count);
  };
  const View sums = on_host ? row_of(weights_.arrived(local), formats.gradient, count)
                            : view(StateKind::gradient, formats.gradient);
  const View master = view(StateKind::parameter, formats.master);
  const OptimizerMoments& moments = weights_.moments();
  const View first = moments.numbers(StateKind::first_moment, local, count);
  const View second = moments.numbers(StateKind::second_moment, local, count);
  std::byte* const copy = on_host ? weights_.leaving(local) : weights_.working(local);
  std::vector<View> reads{sums, master, first, second}, writes{master, first, second, sums};
  if (weights_.separate_master()) writes.push_back(row_of(copy, formats.storage, count));
  if (moments.in_blocks()) {
    for (const StateKind kind : {StateKind::first_moment, StateKind::second_moment}) {
      reads.push_back(moments.scales(kind, local));
      writes.push_back(moments.scales(kind, local));
    }
  }
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = writes;
  kernel.adam = numbers;
  rank_.device.run(kernel);
}

}  // namespace orrery::executor

// The end of a step: the gradients' norm, the update of what a rank owns, and its way to the
// others.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "executor/errors.hpp"
#include "executor/run/interpreter.hpp"

namespace orrery::executor {

namespace {

using models::Collective;
using models::DType;
using models::Lane;

}  // namespace

std::byte* Runner::Interpreter::owned_gradient_at(std::int64_t at) const {
  if (!shards_sums_) return gradients_.data() + at * width_of(gradient_);
  const Bucket& bucket = layout_.buckets()[layout_.bucket_at(at)];
  const std::int64_t owned = bucket.owned + at - layout_.piece_of(bucket);
  return gradients_.data() + owned * width_of(gradient_);
}

void Runner::Interpreter::norm(std::uint32_t i) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  CollectiveCall call;
  call.send = call.receive = scalars_.data();
  call.count = 1;
  call.element = element(state_);
  const std::size_t entry = begin_joint(i);
  collective(i, joint.communicator, call, entry);
  wait_for_data();
  device_.finish();
  read_norm();
}

/// The host takes the root of the sum of squares, and the loss's scale out of it.
void Runner::Interpreter::read_norm() {
  std::array<std::byte, 8> bytes{};
  device_.read(scalars_.data(), bytes.data(), Bytes{width_of(state_)});
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  };
  if (settings_.arithmetic == Arithmetic::ring) {
    ring_norm_ = as(std::uint64_t{});
  } else {
    const double sum = width_of(state_) == 8 ? as(double{}) : static_cast<double>(as(float{}));
    norm_ = std::sqrt(sum) / scale_.value();
  }
}

void Runner::Interpreter::optimize(std::uint32_t i) {
  wait_for_data();
  if (!gradients_seen_ && settings_.before_update) {
    device_.finish();
    settings_.before_update();
  }
  gradients_seen_ = true;
  for (const models::Invocation& run : program_.phases[ranks_.instructions[i].target].invocations) {
    const models::Block& block = program_.blocks[run.block];
    for (std::size_t op = 0; op < block.operations.size(); ++op) {
      const models::Operation& operation = block.operations[op];
      std::size_t entry = not_recorded;
      if (recording_.operations()) {
        entry = recording_.add(i, device_.mark(operation.queue), run.block, -1, op);
      } else if (recording_.instructions()) {
        entry = recording_.add(i, device_.mark(operation.queue));
      }
      operation.kind == models::OpKind::adam ? adam(operation) : squared_norm(operation);
      if (entry != not_recorded) recording_.end(entry, device_.mark(operation.queue));
    }
  }
}

void Runner::Interpreter::squared_norm(const models::Operation& op) {
  device_.zero(scalars_.data(), Bytes{8});
  const View sum{scalars_.data(), state_, {1, 1, 1}};
  for (const Span& span : layout_.counted()) {
    const View range{owned_gradient_at(span.first), gradient_, {1, 1, span.count}};
    Kernel kernel;
    kernel.operation = &op;
    kernel.reads = {&range, 1};
    kernel.writes = {&sum, 1};
    device_.run(kernel);
  }
}

/// As if the step had not been; every rank has the same norm, and so does the same.
void Runner::Interpreter::leave_out_update() {
  device_.zero(gradients_.data(), gradients_.bytes());
  if (!scale_.hopeless()) return;
  const std::int64_t last = at_.step.load(std::memory_order_relaxed) + 1;
  throw RunFailure{
      Exit::invalid_program,
      fmt::format("the gradients of steps {} to {} are not finite, so none of them was "
                  "an update: the training has diverged; start from an earlier "
                  "checkpoint, with a lower learning rate or a wider precision",
                  last - most_without_remedy + 1, last)};
}

/// The owned piece of each bucket; all of them at once where they follow each other.
void Runner::Interpreter::adam(const models::Operation& op) {
  AdamStep numbers = settings_.adam;
  const bool clips = settings_.clip > 0 && norm_ > settings_.clip;
  numbers.gradient_scale = (clips ? settings_.clip / norm_ : 1.0) / scale_.value();
  if (!scale_.accept(norm_)) return leave_out_update();
  numbers.step = ++updates_;
  const bool in_a_row = !layout_.sharded() || shards_weights_;
  if (in_a_row) {
    return update(op, numbers, gradients_.data(), parameters_.data(), 0, layout_.owned());
  }
  for (const Bucket& bucket : layout_.buckets()) {
    const std::int64_t piece = layout_.piece_of(bucket);
    update(op, numbers, owned_gradient_at(piece), parameters_.data() + piece * width_of(storage_),
           bucket.owned, bucket.piece);
  }
  // What other ranks own holds partial sums still.
  if (!shards_sums_) device_.zero(gradients_.data(), gradients_.bytes());
}

void Runner::Interpreter::update(const models::Operation& op, const AdamStep& numbers,
                                 std::byte* gradient, std::byte* working, std::int64_t owned,
                                 std::int64_t count) {
  if (count == 0) return;
  const auto view = [&](std::byte* data, DType type) { return View{data, type, {1, 1, count}}; };
  const View sums = view(gradient, gradient_);
  const View master = view(state_at(StateKind::parameter, owned), state_);
  const View first = view(state_at(StateKind::first_moment, owned), state_);
  const View second = view(state_at(StateKind::second_moment, owned), state_);
  const std::array<View, 4> reads{sums, master, first, second};
  const std::array<View, 5> writes{master, first, second, sums, view(working, storage_)};
  Kernel kernel;
  kernel.operation = &op;
  kernel.reads = reads;
  kernel.writes = {writes.data(), separate_master_ ? 5U : 4U};
  kernel.adam = numbers;
  device_.run(kernel);
}

void Runner::Interpreter::gather(std::uint32_t i) {
  const models::JointCollective& joint = program_.collectives[ranks_.instructions[i].target];
  const std::size_t entry = begin_joint(i);
  gather_parameters(joint.communicator, joint.kind, entry, i);
}

/// Each bucket from its owners, piece by piece: all at once, or one owner after another.
void Runner::Interpreter::gather_parameters(std::uint16_t communicator, Collective kind,
                                            std::size_t entry, std::uint32_t i) {
  const int owners = kind == Collective::broadcast ? static_cast<int>(program_.shards()) : 1;
  for (const Bucket& bucket : layout_.buckets()) {
    for (int owner = 0; owner < owners; ++owner) {
      CollectiveCall call;
      call.kind = kind;
      call.count = bucket.piece;
      call.element = element(storage_);
      call.root = owner;
      call.receive = parameters_.data() + bucket.first * width_of(storage_);
      call.send = parameters_.data() + layout_.piece_of(bucket) * width_of(storage_);
      if (kind == Collective::broadcast) {
        call.receive += owner * bucket.piece * width_of(storage_);
        call.send = call.receive;
      }
      collective(i, communicator, call, entry);
    }
  }
}

}  // namespace orrery::executor

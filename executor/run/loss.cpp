// The loss of a step, from the statistics that the head leaves for its backward.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "executor/run/interpreter.hpp"

namespace orrery::executor {

const View& Runner::Interpreter::statistics_view() const {
  const models::LayerKind& head = program_.kind(models::ModelPart::head);
  return blocks_[head.forward].views[static_cast<std::size_t>(statistics_operand_)];
}

/// The loss is worked out when the step has ended: what it is made of is copied aside.
void Runner::Interpreter::keep_statistics(std::uint32_t micro_batch) {
  const View& view = views_[static_cast<std::size_t>(statistics_operand_)];
  const std::int64_t bytes = view.elements() * bits(view.dtype) / 8;
  device_.copy(view.data, statistics_.data() + micro_batch * bytes, Bytes{bytes},
               models::Lane::compute);
}

namespace {

/// Sum of -log softmax at the label, from each shard's statistics [shards, rows, 3].
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

/// One rank of each tensor group of the last stage knows its micro-batches' loss; all ranks add
/// up what they know. Not a part of the step: the Program has no such collective.
void Runner::Interpreter::report(StepOutcome& outcome) {
  const bool ring = settings_.arithmetic == Arithmetic::ring;
  double loss = 0;
  std::uint64_t known = 0;
  if (statistics_.data() != nullptr && tensor_ == 0) {
    const View& view = statistics_view();
    std::vector<std::byte> host(static_cast<std::size_t>(statistics_.bytes().count()));
    device_.read(statistics_.data(), host.data(), statistics_.bytes());
    const std::int64_t each = view.elements(), width = bits(view.dtype) / 8;
    for (std::int64_t m = 0; m < program_.step.micro_batches; ++m) {
      const std::byte* at = host.data() + m * each * width;
      if (ring) {
        known += ring_loss_of(reinterpret_cast<const std::uint64_t*>(at), each / 3);
      } else if (width == 8) {
        loss += loss_of(reinterpret_cast<const double*>(at), view.shape[0], view.shape[1]);
      } else {
        loss += loss_of(reinterpret_cast<const float*>(at), view.shape[0], view.shape[1]);
      }
    }
  }
  loss *= mean_;
  if (!ring) std::memcpy(&known, &loss, sizeof loss);
  const std::uint16_t world = program_.communicator(models::CommunicatorRole::world);
  if (!groups_[world].alone()) {
    device_.write(&known, scalars_.data(), Bytes{8});
    CollectiveCall call;
    call.send = call.receive = scalars_.data();
    call.count = 1;
    call.element = ring ? Element::ring : Element::fp64;
    collective(static_cast<std::uint32_t>(ranks_.instructions.size()), world, call, not_recorded);
    wait_for_data();
    device_.read(scalars_.data(), &known, Bytes{8});
  }
  if (ring) {
    outcome.ring_loss = known;
  } else {
    std::memcpy(&outcome.loss, &known, sizeof known);
  }
}

}  // namespace orrery::executor
